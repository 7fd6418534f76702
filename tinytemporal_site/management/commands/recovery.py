"""`manage.py recovery`: SIGKILL and restart; what was under way is found in the tables."""

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from tinytemporal_site.management.commands.runservice import require_durable, require_schema
from tinytemporal_site.process import write_ready


class Command(BaseCommand):
    help = (
        "Start a server and a worker, get a timer, a signal, a queued workflow task and a started activity under way, kill "
        "both processes, and start others. Look at the last four lines: each workflow completes, and the activity by its "
        "second attempt, since the first one timed out. Stop other servers on this database first."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--worker", metavar="ADDRESS", help="only be a worker of the server there, until killed")
        parser.add_argument("--queue", help="the worker's task queue")
        parser.add_argument("--ready-fd", type=int, metavar="N", help="as for runservice")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["worker"]:
            asyncio.run(self.work(options["worker"], options["queue"], options["ready_fd"]))
            return
        from tinytemporal_site.walkthroughs.recovery import recover

        require_durable()
        require_schema()
        asyncio.run(recover(self.say))

    async def work(self, address: str, queue: str, ready_fd: int) -> None:
        from temporalio.client import Client

        from tinytemporal_site.walkthroughs.workflows import make_worker

        worker = make_worker(await Client.connect(address), queue=queue, say=self.say)
        async with worker:
            write_ready(ready_fd, {})
            await asyncio.get_running_loop().create_future()

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
