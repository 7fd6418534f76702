"""`manage.py persistence_start`: the first half of a workflow, in a process of its own."""

import asyncio
from typing import Any

from django.core.management.base import BaseCommand

from tinytemporal_site.management.commands.runservice import require_durable, require_schema


class Command(BaseCommand):
    help = (
        "Run an activity once, record an approval signal, schedule a three-second timer, stop, and print the workflow's id. "
        "Then look with `inspect` and go on with `persistence_resume`. Stop other servers on this database first."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.walkthroughs.persistence import begin

        require_durable()
        require_schema()
        workflow_id = asyncio.run(begin(self.say))
        self.stdout.write(
            f"\nmanage.py inspect {workflow_id}\n"
            "    ActivityTaskCompleted and WorkflowExecutionSignaled are in history_events, the timer is in timer_tasks\n"
            f"manage.py persistence_resume {workflow_id}\n"
            "    the same run completes; the activity is not executed again"
        )

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
