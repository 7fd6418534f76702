"""`manage.py runservice [ROLE…]`: plays any set of roles in this process until told to stop."""

import contextlib
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import connections

from common.errors import Unavailable
from common.service import OnFailure, Service
from tinytemporal_site import databases, schema
from tinytemporal_site.process import run_process, write_ready
from tinytemporal_site.roles import ALL, ROLES, chosen_roles, default_host


class Command(BaseCommand):
    help = "Run roles of the server in this process: any of history, matching, frontend, worker, web; or all."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        known = [*ROLES, ALL]
        # argparse checks the empty default of "*" against the choices too.
        parser.add_argument("roles", nargs="*", choices=[*known, []], metavar="ROLE", help=", ".join(known))
        parser.add_argument("--host", default=default_host(), help="this process's name in leases and membership")
        parser.add_argument(
            "--time-skipping",
            action="store_true",
            help="for tests: let clients move time ahead (as TIME_SKIPPING=true)",
        )
        parser.add_argument(
            "--ready-fd", type=int, metavar="N", help="write one line of JSON to this descriptor once everything runs"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["time_skipping"]:
            settings.TIME_SKIPPING = True
        with memory_database_kept():
            require_schema()
            self.run(chosen_roles(options["roles"]), host=options["host"], ready_fd=options["ready_fd"])

    def run(self, roles: frozenset[str], *, host: str, ready_fd: int | None = None) -> None:
        """Serves until stopped; `CommandError` when the start or a part of the server failed."""

        def build(on_failure: OnFailure) -> Service:
            from tinytemporal_site.composition import build_server

            return build_server(roles=roles, host=host, on_failure=on_failure)

        def announce(addresses: dict[str, str]) -> None:
            self.print_addresses(addresses, host=host)
            if ready_fd is not None:
                write_ready(ready_fd, addresses)

        try:
            failure = run_process(build=build, announce=announce)
        except (OSError, ImproperlyConfigured, Unavailable) as error:
            raise CommandError(f"The server could not start: {error}") from error
        if failure is not None:
            raise CommandError(f"A part of the server failed: {failure!r}")
        self.stdout.write("stopped")

    def print_addresses(self, addresses: dict[str, str], *, host: str) -> None:
        lines = {
            "frontend": "Temporal gRPC   {}",
            "http": "Temporal HTTP   {}",
            "history": "History         {}",
            "matching": "Matching        {}",
            "web": "Admin           http://{}/admin/",
        }
        for role, line in lines.items():
            if role in addresses:
                self.stdout.write(line.format(addresses[role]))
        for alias, entry in settings.DATABASES.items():
            suffix = "" if alias == "default" else f" ({alias})"
            self.stdout.write(f"Database{suffix}        {databases.describe(entry)}")
        self.stdout.write(f"Host            {host}")
        self.stdout.write("ready")
        self.stdout.flush()


@contextlib.contextmanager
def memory_database_kept() -> Iterator[None]:
    """While this lasts, an in-memory database lives on even when nobody else has it open."""
    if not any(databases.is_memory(entry) for entry in settings.DATABASES.values()):
        yield
        return
    with contextlib.closing(databases.keep_memory_database()):
        yield


def require_schema() -> None:
    """A database in memory is given its tables; any other must have them, else `CommandError` says what to run."""
    try:
        behind = schema.databases_behind()
    except DatabaseError as error:
        raise CommandError(f"The database cannot be used: {error}") from error
    finally:
        connections.close_all()
    if not behind:
        return
    if any(not databases.is_memory(settings.DATABASES[alias]) for alias in behind):
        raise CommandError("The database's tables are not up to date: run `manage.py migrate` first.")
    schema.migrate(behind)
    connections.close_all()


def require_durable() -> None:
    """For what needs the data after the process: `CommandError` when it is in memory."""
    if any(databases.is_memory(entry) for entry in settings.DATABASES.values()):
        raise CommandError("A database in memory ends with its process: set DATABASE_URL to a file or to PostgreSQL.")
