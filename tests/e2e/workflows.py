"""Workflows and activities that the end-to-end tests run with the stock SDK."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError

ONCE = RetryPolicy(maximum_attempts=1)
QUICK = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=5)
SHORT = timedelta(seconds=20)


@activity.defn
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@activity.defn
async def fail_twice() -> int:
    attempt = activity.info().attempt
    if attempt < 3:
        raise ApplicationError(f"attempt {attempt}", type="Flaky")
    return attempt


@activity.defn
async def fail_for_good() -> None:
    raise ApplicationError("bad input", {"field": "age"}, type="Validation", non_retryable=True)


@activity.defn
async def count_from_heartbeat() -> int:
    """Beats, fails once, and goes on from what the beat said."""
    details = activity.info().heartbeat_details
    if not details:
        activity.heartbeat(41)
        raise ApplicationError("lost")
    return int(details[0]) + 1


@activity.defn
async def run_until_cancelled() -> None:
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.05)  # a beat is what this activity is about
    except asyncio.CancelledError:
        raise


ACTIVITIES = [greet, fail_twice, fail_for_good, count_from_heartbeat, run_until_cancelled]


@workflow.defn
class Greet:
    @workflow.run
    async def run(self, name: str) -> str:
        return await workflow.execute_activity(greet, name, start_to_close_timeout=SHORT)


@workflow.defn
class Retries:
    @workflow.run
    async def run(self) -> list[int]:
        flaky = await workflow.execute_activity(fail_twice, start_to_close_timeout=SHORT, retry_policy=QUICK)
        resumed = await workflow.execute_activity(
            count_from_heartbeat, start_to_close_timeout=SHORT, heartbeat_timeout=SHORT, retry_policy=QUICK
        )
        return [flaky, resumed]


@workflow.defn
class Failing:
    """Fails as its activity did, with the cause kept."""

    @workflow.run
    async def run(self) -> None:
        await workflow.execute_activity(fail_for_good, start_to_close_timeout=SHORT)


@workflow.defn
class Conversation:
    """Signals, a timer, a query; ends when told to."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.done = False

    @workflow.signal
    def say(self, word: str) -> None:
        self.heard.append(word)

    @workflow.signal
    def end(self) -> None:
        self.done = True

    @workflow.query
    def words(self) -> list[str]:
        return self.heard

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.sleep(timedelta(milliseconds=20))
        await workflow.wait_condition(lambda: self.done)
        return self.heard


@workflow.defn
class Cancellable:
    """Waits for an activity that only cancellation ends, cleans up, and ends as cancelled."""

    @workflow.run
    async def run(self) -> None:
        try:
            await workflow.execute_activity(
                run_until_cancelled,
                start_to_close_timeout=timedelta(minutes=5),
                heartbeat_timeout=SHORT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                retry_policy=ONCE,
            )
        except ActivityError as error:
            if isinstance(error.cause, CancelledError):
                raise error.cause from None
            raise


@workflow.defn
class CountDown:
    """Continues as new until nothing is left; gives the runs it took."""

    @workflow.run
    async def run(self, left: int, runs: int = 1) -> int:
        if left:
            workflow.continue_as_new(args=[left - 1, runs + 1])
        return runs


@workflow.defn
class Order:
    """What the kill test runs: an activity, a short timer, another activity."""

    @workflow.run
    async def run(self, number: int) -> str:
        first = await workflow.execute_activity(greet, f"a{number}", start_to_close_timeout=timedelta(seconds=5))
        await workflow.sleep(timedelta(milliseconds=50))
        second = await workflow.execute_activity(greet, f"b{number}", start_to_close_timeout=timedelta(seconds=5))
        return f"{first} {second}"


@workflow.defn
class Sleep:
    @workflow.run
    async def run(self, seconds: float) -> str:
        await workflow.sleep(seconds)
        return "awake"


WORKFLOWS = [Greet, Retries, Failing, Conversation, Cancellable, CountDown, Order, Sleep]
