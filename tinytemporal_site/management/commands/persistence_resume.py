"""`manage.py persistence_resume WORKFLOW_ID`: the second half of what `persistence_start` began."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from temporalio.service import RPCError

from tinytemporal_site.management.commands.runservice import require_durable, require_schema


class Command(BaseCommand):
    help = (
        "Complete a workflow that `persistence_start` left in the tables: a timer that fell due meanwhile fires now, and a new "
        "worker replays the recorded result of the activity. Look for what is not printed: the activity."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workflow_id")

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.walkthroughs.persistence import resume

        require_durable()
        require_schema()
        try:
            result = asyncio.run(resume(options["workflow_id"], self.stdout.write))
        except RPCError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Completed: {result}")
