"""`manage.py runservice` with one thing more: History keeps whoever starts a workflow task of a held workflow waiting, until
SIGUSR1. So a test can look at a task queue while later tasks overtake an earlier one, for as long as it needs to."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import Any

HELD = "held-"


def hold(module: Any, name: str) -> None:
    original = getattr(module, name)
    released = asyncio.Event()

    async def held(engine: Any, request: Any) -> Any:
        if request.workflow_id.startswith(HELD):
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, released.set)
            await released.wait()
        return await original(engine, request)

    setattr(module, name, held)


def main() -> None:
    import django

    django.setup()
    from django.core.management import execute_from_command_line

    import history.api.record_workflow_task_started as starts

    # Before the service looks the function up.
    hold(starts, "record_workflow_task_started")
    execute_from_command_line(["manage.py", *sys.argv[1:]])


if __name__ == "__main__":
    main()
