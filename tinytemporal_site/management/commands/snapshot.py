"""`manage.py snapshot [FILE]`: the committed records of every table as JSON."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.clock import RealClock
from common.errors import PersistenceError


class Command(BaseCommand):
    help = (
        "Write the committed records of every table, validated, as one JSON file with the time it was taken. "
        "A running server may go on."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", default="-", help="where to; - or nothing means standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.snapshots.files import take

        try:
            data = take(now=RealClock().now())
        except PersistenceError as error:
            raise CommandError(f"PersistenceError: {error}") from error
        if options["file"] == "-":
            sys.stdout.buffer.write(data + b"\n")
            return
        Path(options["file"]).write_bytes(data + b"\n")
        self.stdout.write(f"{len(data)} bytes in {options['file']}")
