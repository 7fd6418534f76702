"""`manage.py matching_lifecycle`: a task queue spooled, dispatched out of order, unloaded and reloaded, in memory."""

import asyncio
import logging
from typing import Any

import msgspec
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = (
        "Walk one task queue through its life in a database in memory. Look at ackLevel, storedTaskRows and outstanding: "
        "a row is kept until everything before it was dispatched, and a reload takes the next range."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.walkthroughs.lifecycle import memory_tables

        logging.getLogger("matching").setLevel(logging.ERROR)
        with memory_tables():
            asyncio.run(self.walk())

    async def walk(self) -> None:
        from tinytemporal_site.walkthroughs.lifecycle import walk

        async for step in walk():
            text = msgspec.json.format(msgspec.json.encode(step), indent=2).decode()
            self.stdout.write(text)
