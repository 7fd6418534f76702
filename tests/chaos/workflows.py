"""What the stock SDK runs: activities and timers, signals, children. Each completes only when nothing of it was lost."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

SIGNALS = 3
ACTIVITY_S = timedelta(seconds=3)


@activity.defn
async def echo(text: str) -> str:
    return text


@workflow.defn(name="ChaosOrder")
class Order:
    """Two activities with a timer between them."""

    @workflow.run
    async def run(self, text: str) -> str:
        first = await workflow.execute_activity(echo, text, start_to_close_timeout=ACTIVITY_S)
        await workflow.sleep(timedelta(milliseconds=50))
        return await workflow.execute_activity(echo, first, start_to_close_timeout=ACTIVITY_S)


@workflow.defn(name="ChaosListener")
class Listener:
    """Waits for every signal of `SIGNALS`; a signal whose answer was lost may come twice."""

    def __init__(self) -> None:
        self._heard: set[int] = set()

    @workflow.signal
    def say(self, number: int) -> None:
        self._heard.add(number)

    @workflow.run
    async def run(self, text: str) -> str:
        await workflow.wait_condition(lambda: len(self._heard) == SIGNALS)
        return text


@workflow.defn(name="ChaosParent")
class Parent:
    """Its child is in another shard more often than not."""

    @workflow.run
    async def run(self, text: str) -> str:
        return await workflow.execute_child_workflow(
            Order.run, text, id=f"{workflow.info().workflow_id}-child", task_timeout=timedelta(seconds=3)
        )


WORKFLOWS = [Order, Listener, Parent]
