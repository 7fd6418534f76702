"""Workflows that take days, for the tests of a server that can skip them."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import nexusrpc
import nexusrpc.handler
from temporalio import activity, nexus, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BRIEF = timedelta(seconds=20)


@workflow.defn
class Sleeper:
    @workflow.run
    async def run(self, days: int) -> float:
        """How many seconds passed by its own clock."""
        began = workflow.now()
        for _ in range(days):
            await workflow.sleep(DAY)
        return (workflow.now() - began).total_seconds()

    @workflow.update
    async def rest(self) -> str:
        await workflow.sleep(DAY)
        return "rested"


@workflow.defn
class Parent:
    @workflow.run
    async def run(self) -> float:
        return await workflow.execute_child_workflow(Sleeper.run, 2)


@workflow.defn
class Patient:
    """Waits ten days for a word."""

    def __init__(self) -> None:
        self.word = ""

    @workflow.run
    async def run(self) -> str:
        began = workflow.now()
        try:
            await workflow.wait_condition(lambda: bool(self.word), timeout=10 * DAY)
        except TimeoutError:
            return "nobody spoke"
        return f"{self.word} after {(workflow.now() - began) // DAY} days"

    @workflow.signal
    def speak(self, word: str) -> None:
        self.word = word


@workflow.defn
class Forever:
    @workflow.run
    async def run(self) -> None:
        await asyncio.Future()


@workflow.defn
class Retrying:
    @workflow.run
    async def run(self) -> int:
        hourly = RetryPolicy(initial_interval=HOUR, backoff_coefficient=2.0)
        return await workflow.execute_activity("fail_twice", start_to_close_timeout=BRIEF, retry_policy=hourly)


@workflow.defn
class Calling:
    """An activity with a time-out of an hour, beside a timer of half of that."""

    @workflow.run
    async def run(self, name: str) -> list[str]:
        call = workflow.start_activity(
            name,
            start_to_close_timeout=HOUR,
            heartbeat_timeout=timedelta(minutes=1) if name == "sleep_without_beating" else None,
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
        order: list[str] = []

        async def note(what: str, done: object) -> None:
            await done  # type: ignore[misc]
            order.append(what)

        await asyncio.gather(note("activity", call), note("timer", workflow.sleep(HOUR / 2)))
        return order


@workflow.defn
class Reporter:
    """Tells when it ran."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity("report", workflow.now(), start_to_close_timeout=BRIEF)


@nexusrpc.service(name="resting")
class Resting:
    rest: nexusrpc.Operation[int, float]


@nexusrpc.handler.service_handler(service=Resting)
class RestingHandler:
    @nexus.workflow_run_operation
    async def rest(self, ctx: nexus.WorkflowRunOperationContext, days: int) -> nexus.WorkflowHandle[float]:
        return await ctx.start_workflow(Sleeper.run, days, id=f"resting-{ctx.request_id}")


@workflow.defn
class NexusCaller:
    @workflow.run
    async def run(self, endpoint: str) -> float:
        client = workflow.create_nexus_client(service=Resting, endpoint=endpoint)
        return await client.execute_operation(Resting.rest, 3, schedule_to_close_timeout=10 * DAY)


@activity.defn
async def fail_twice() -> int:
    attempt = activity.info().attempt
    if attempt < 3:
        raise ApplicationError("not yet")
    return attempt


class Activities:
    """Those that the test itself has a part in."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        self.reports: asyncio.Queue[datetime] = asyncio.Queue()
        self.sleep = _no_sleep

    @activity.defn
    async def wait_for_test(self) -> None:
        self.began.set()
        await self.may_end.wait()

    @activity.defn
    async def sleep_without_beating(self) -> None:
        await self.sleep(timedelta(minutes=2))

    @activity.defn
    async def report(self, when: datetime) -> None:
        self.reports.put_nowait(when)


async def _no_sleep(duration: timedelta) -> None:
    raise AssertionError("the test gives its own")


WORKFLOWS = [Sleeper, Parent, Patient, Forever, Retrying, Calling, Reporter, NexusCaller]
