"""`manage.py restore FILE`: the records of a snapshot into an empty database."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from common.errors import PersistenceError


class Command(BaseCommand):
    help = (
        "Write the records of a snapshot into this database, all or none. The whole file is checked first; one that is "
        "malformed, foreign or of an older form is refused with the path to what is wrong. No server may be running. "
        "Clocks stay as they are: timers that fell due meanwhile fire when a server starts."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="a file that `snapshot` wrote; - means standard input")
        parser.add_argument("--replace", action="store_true", help="remove the records that are there first")

    def handle(self, *args: Any, **options: Any) -> None:
        from tinytemporal_site.snapshots.files import NotEmpty, restore

        try:
            data = sys.stdin.buffer.read() if options["file"] == "-" else Path(options["file"]).read_bytes()
            counts = restore(data, replace=options["replace"])
        except OSError as error:
            raise CommandError(str(error)) from error
        except PersistenceError as error:
            raise CommandError(f"PersistenceError: {error}. Nothing was written.") from error
        except NotEmpty as error:
            raise CommandError(f"{error}: use an empty one, or --replace. Nothing was written.") from error
        for table, count in counts.items():
            self.stdout.write(f"{table:24} {count}")
