"""Fresh, migrated databases of both kinds, cheap enough for every test to have its own.

Each kind is migrated once a session, by the project's own `manage.py migrate`; a new database is a copy of that.
"""

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tinytemporal_site.databases import database_settings

PROJECT = Path(__file__).resolve().parent.parent
KINDS = ("sqlite", "postgresql")


def server_environment(*, database_url: str, **more: str) -> dict[str, str]:
    """The environment in which a `manage.py` of ours works on that database, whatever a `.env` file says."""
    own = {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "tinytemporal_site.settings",
        "ENV_FILE": os.devnull,
        "SECRET_KEY": "only-for-tests",
        "PYTHONUNBUFFERED": "1",
    }
    return {**os.environ, **own, **more}


def manage(*arguments: str, database_url: str, **environment: str) -> str:
    """Runs `manage.py` to its end and gives what it printed; an assertion with all of that when it failed."""
    done = subprocess.run(
        [sys.executable, PROJECT / "manage.py", *arguments],
        env=server_environment(database_url=database_url, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"manage.py {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def django_entry(url: str) -> dict[str, Any]:
    """What `settings.DATABASES` holds for this URL."""
    return database_settings(url, name="the test's database", base_dir=PROJECT)


class DatabaseFactory:
    """Makes databases of either kind and removes them all at the end of the session.

    `postgres_url` is asked for only when the first PostgreSQL database is wanted, so that a session without any
    starts no cluster.
    """

    def __init__(self, *, folder: Path, postgres_url: Callable[[], str]) -> None:
        self._folder = folder
        self._postgres_url = postgres_url
        self._templates: dict[str, str] = {}
        self._postgres_databases: list[str] = []
        self._run = uuid.uuid4().hex[:8]

    def create(self, kind: str) -> str:
        """The URL of a new database of that kind with all migrations applied."""
        if kind not in self._templates:
            self._templates[kind] = self.create_empty(kind)
            manage("migrate", "--verbosity=0", database_url=self._templates[kind])
        template = self._templates[kind]
        if kind == "sqlite":
            url = self.create_empty(kind)
            shutil.copyfile(_sqlite_file(template), _sqlite_file(url))
            return url
        return self._create_postgres(template=urlsplit(template).path.lstrip("/"))

    def create_empty(self, kind: str) -> str:
        """The URL of a new database without any table."""
        if kind == "sqlite":
            return f"sqlite:///{self._folder / uuid.uuid4().hex}.sqlite3"
        return self._create_postgres(template="template0")

    def drop(self, url: str) -> None:
        """Removes the database at once, sessions in it included."""
        if url.startswith("sqlite"):
            for suffix in ("", "-wal", "-shm"):
                Path(f"{_sqlite_file(url)}{suffix}").unlink(missing_ok=True)
            return
        name = urlsplit(url).path.lstrip("/")
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        self._postgres_databases.remove(url)

    def drop_all(self) -> None:
        for url in list(self._postgres_databases):
            self.drop(url)

    def _create_postgres(self, *, template: str) -> str:
        name = f"tinytemporal_{self._run}_{len(self._templates)}_{uuid.uuid4().hex[:8]}"
        names = {"name": sql.Identifier(name), "template": sql.Identifier(template)}
        self._execute(sql.SQL("CREATE DATABASE {name} TEMPLATE {template}").format(**names))
        url = urlunsplit(urlsplit(self._postgres_url())._replace(path=f"/{name}"))
        self._postgres_databases.append(url)
        return url

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._postgres_url(), autocommit=True) as connection:
            connection.execute(statement)


def _sqlite_file(url: str) -> str:
    return url.removeprefix("sqlite:///")
