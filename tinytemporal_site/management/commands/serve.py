"""`manage.py serve`: from nothing to a running server; what `make serve` runs."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import Error as DatabaseError
from django.db import connections

from tinytemporal_site import first_run, schema
from tinytemporal_site.management.commands import runservice
from tinytemporal_site.roles import chosen_roles, default_host


class Command(runservice.Command):
    help = "Migrate, make the first administrator, and run every role with the admin in this process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--ready-fd", type=int, metavar="N", help="as for runservice")

    def handle(self, *args: Any, **options: Any) -> None:
        with runservice.memory_database_kept():
            self.prepare()
            self.run(chosen_roles([]), host=default_host(), ready_fd=options["ready_fd"])

    def prepare(self) -> None:
        """The tables and somebody who may look at them."""
        try:
            schema.migrate(schema.databases_behind())
            password = first_run.ensure_admin()
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}") from error
        finally:
            connections.close_all()
        if password is None:
            self.stdout.write("Sign in         as an administrator (forgotten? manage.py changepassword)")
        else:
            self.stdout.write(f"Sign in         user {first_run.ADMIN}, password {password} (shown only this once)")
