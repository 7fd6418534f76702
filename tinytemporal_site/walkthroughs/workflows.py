"""The workflows of the walkthroughs, run by the stock Python SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

Say = Callable[[str], Any]
"""Prints a line."""

TIMER = timedelta(seconds=3)
ATTEMPT = timedelta(seconds=4)
"""How long an attempt of the stuck activity may take."""


@workflow.defn
class Approval:
    """An activity, a signal, a timer."""

    def __init__(self) -> None:
        self.approved = ""

    @workflow.signal
    def approve(self, by: str) -> None:
        self.approved = by

    @workflow.run
    async def run(self, name: str) -> str:
        greeting: str = await workflow.execute_activity("greet", name, start_to_close_timeout=timedelta(seconds=10))
        await workflow.wait_condition(lambda: bool(self.approved))
        await workflow.sleep(TIMER)
        return f"{greeting} Approved by {self.approved}."


@workflow.defn
class Nap:
    """A timer and nothing else."""

    @workflow.run
    async def run(self) -> str:
        await workflow.sleep(TIMER)
        return "slept"


@workflow.defn
class Ear:
    """Waits for a signal."""

    def __init__(self) -> None:
        self.heard = ""

    @workflow.signal
    def say(self, word: str) -> None:
        self.heard = word

    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: bool(self.heard))
        return f"heard {self.heard}"


@workflow.defn
class Stuck:
    """An activity whose first attempt never ends."""

    @workflow.run
    async def run(self) -> str:
        attempt: int = await workflow.execute_activity(
            "hang_once", start_to_close_timeout=ATTEMPT, retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1))
        )
        return f"done by attempt {attempt}"


class Activities:
    def __init__(self, say: Say) -> None:
        self._say = say

    @activity.defn
    async def greet(self, name: str) -> str:
        self._say("Executing greet activity")
        return f"Hello, {name}!"

    @activity.defn
    async def hang_once(self) -> int:
        attempt = activity.info().attempt
        self._say(f"Executing hang_once activity, attempt {attempt}")
        if attempt == 1:
            await asyncio.get_running_loop().create_future()
        return attempt


def make_worker(client: Client, *, queue: str, say: Say) -> Worker:
    activities = Activities(say)
    return Worker(
        client,
        task_queue=queue,
        workflows=[Approval, Nap, Ear, Stuck],
        activities=[activities.greet, activities.hang_once],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
