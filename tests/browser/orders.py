"""What the browser tests look at: orders that try again, wait, have a child, and end when they are told to."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

SHORT = timedelta(seconds=30)
AGAIN = RetryPolicy(initial_interval=timedelta(milliseconds=300), backoff_coefficient=1, maximum_attempts=5)


@activity.defn
async def reserve(item: str) -> str:
    """Fails twice."""
    if activity.info().attempt < 3:
        raise ApplicationError(f"the warehouse does not answer about {item}", type="Away")
    return f"{item} is reserved"


@activity.defn
async def charge(amount: float) -> dict[str, float]:
    return {"charged": amount}


@workflow.defn
class Parcel:
    @workflow.run
    async def run(self, item: str) -> str:
        await workflow.sleep(timedelta(milliseconds=200))
        return f"{item} is packed"


@workflow.defn
class Order:
    def __init__(self) -> None:
        self.is_shipped = False

    @workflow.signal
    def ship(self) -> None:
        self.is_shipped = True

    @workflow.query
    def shipped(self) -> bool:
        return self.is_shipped

    @workflow.run
    async def run(self, item: str) -> dict[str, float]:
        await workflow.execute_activity(reserve, item, start_to_close_timeout=SHORT, retry_policy=AGAIN)
        await workflow.sleep(timedelta(milliseconds=300))
        charged = await workflow.execute_activity(charge, 12.5, start_to_close_timeout=SHORT)
        await workflow.execute_child_workflow(Parcel.run, item, id=f"{workflow.info().workflow_id}-parcel")
        await workflow.wait_condition(lambda: self.is_shipped)
        return charged


WORKFLOWS = [Order, Parcel]
ACTIVITIES = [reserve, charge]
