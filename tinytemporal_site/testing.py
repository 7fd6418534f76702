"""For tests of your own workflows: a server whose time can be skipped, and an SDK's environment connected to it.

    async with time_skipping() as env:
        async with Worker(env.client, task_queue="q", workflows=[Reminder]):
            await env.client.execute_workflow(Reminder.run, id="r", task_queue="q")     # days pass in milliseconds

While a workflow's result is awaited, time goes at once to whatever is due next, whenever nothing is at work; `await env.sleep(…)`
lets time pass; within `env.auto_time_skipping_disabled()` results take as long as they really take (see
`temporalio.testing.WorkflowEnvironment`).
"""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporalio.testing import WorkflowEnvironment

PROGRAM = "tinytemporal-test-server"


@asynccontextmanager
async def time_skipping(**options: Any) -> AsyncIterator[WorkflowEnvironment]:
    """A server of its own, in memory, for as long as this lasts. `options` are those of
    `WorkflowEnvironment.start_time_skipping`. Raises FileNotFoundError when the project is not installed."""
    path = str(path_of_server())
    async with await WorkflowEnvironment.start_time_skipping(test_server_existing_path=path, **options) as environment:
        yield environment


def path_of_server() -> Path:
    """The program, for SDKs of any language: what they call the existing path of their test server."""
    beside = Path(sysconfig.get_path("scripts")) / PROGRAM
    found = str(beside) if beside.exists() else shutil.which(PROGRAM)
    if found is None:
        raise FileNotFoundError(
            f"{PROGRAM} is neither in {beside.parent} nor on the PATH: install the project, pip install -e ."
        )
    return Path(found)
