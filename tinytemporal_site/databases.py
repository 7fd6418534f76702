"""From a database URL to what Django needs, and to a line that may be shown to anyone.

Three kinds are known: PostgreSQL (several hosts may be given, as libpq reads them), a SQLite file, and SQLite in
memory. In memory means one database shared by every connection of the process: SQLite's `memdb` VFS does that under
a name, and unlike `cache=shared` it honours the busy timeout. It vanishes with its last connection, so a process
that uses it holds one open (`keep_memory_database`).
"""

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from environ import Env

MEMORY_DATABASE = "file:/tinytemporal?vfs=memdb"

_WANTED = "sqlite:///PATH, sqlite://:memory: or postgres://USER:PASSWORD@HOST:PORT/NAME"
_POSTGRES = frozenset({"postgres", "postgresql", "psql", "pgsql"})
_BUSY_TIMEOUT_S = 20
_CONNECT_TIMEOUT_S = "10"


def database_settings(url: str, *, name: str, base_dir: Path) -> dict[str, Any]:
    """Django's entry for `url`; `name` is the variable that it came from, `base_dir` what relative paths start at.

    Raises `ImproperlyConfigured`, with the variable's name and never the password, for anything else.
    """
    scheme = url.partition("://")[0].lower()
    if scheme == "sqlite":
        return _sqlite(url, name=name, base_dir=base_dir)
    if scheme in _POSTGRES:
        return _postgres(url, name=name)
    raise ImproperlyConfigured(f"{name} must be {_WANTED}; its scheme is {scheme!r}.")


def normal_url(entry: dict[str, Any]) -> str:
    """The one spelling of a database's URL, with the password in it: what the stores open and sub-processes get."""
    if _is_sqlite(entry):
        return "sqlite://:memory:" if is_memory(entry) else f"sqlite:///{entry['NAME']}"
    return _postgres_url(entry, secret=quote(entry["PASSWORD"], safe=""))


def describe(entry: dict[str, Any]) -> str:
    """The database in words, without its password, for start-up lines and the admin."""
    if is_memory(entry):
        return "SQLite in memory (lost when the process ends)"
    if _is_sqlite(entry):
        return f"SQLite file {entry['NAME']}"
    shown = _postgres_url(entry, secret="***" if entry["PASSWORD"] else "")
    return f"PostgreSQL {shown.partition('?')[0]}"


def is_memory(entry: dict[str, Any]) -> bool:
    return str(entry["NAME"]) == MEMORY_DATABASE


def keep_memory_database() -> sqlite3.Connection:
    """A connection whose only use is to be open: while it is, the in-memory database stays."""
    return sqlite3.connect(MEMORY_DATABASE, uri=True, check_same_thread=False)


def _is_sqlite(entry: dict[str, Any]) -> bool:
    engine: str = entry["ENGINE"]
    return engine == "django.db.backends.sqlite3"


def _sqlite(url: str, *, name: str, base_dir: Path) -> dict[str, Any]:
    path = url.partition("://")[2]
    if path in {":memory:", "/:memory:", "/"}:
        return _sqlite_entry(MEMORY_DATABASE)
    if not path.startswith("/") or "?" in path:
        raise ImproperlyConfigured(f"{name} must be {_WANTED}; a SQLite path follows three slashes and has no options.")
    file = base_dir / unquote(path[1:])
    if not file.parent.is_dir():
        raise ImproperlyConfigured(f"{name} names a SQLite file in {file.parent}, which is not a folder.")
    return _sqlite_entry(str(file))


def _sqlite_entry(database: str) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": database,
        "OPTIONS": {
            "timeout": _BUSY_TIMEOUT_S,
            # A transaction that starts as a reader cannot wait for the writer's lock; one that starts as a writer can.
            "transaction_mode": "IMMEDIATE",
            # FULL: an acknowledged commit also survives the loss of power, not only of the process.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON",
        },
    }


def _postgres(url: str, *, name: str) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = Env.db_url_config(url)
    except ValueError as error:
        raise ImproperlyConfigured(f"{name} must be {_WANTED}; {error}.") from None
    if not entry.get("NAME"):
        raise ImproperlyConfigured(f"{name} must be {_WANTED}; it names no database.")
    entry["ENGINE"] = "tinytemporal_site.postgresql"
    given = dict(parse_qsl(urlsplit(url).query))
    entry["OPTIONS"] = {"connect_timeout": _CONNECT_TIMEOUT_S, "application_name": "tinytemporal"} | given
    entry["PORT"] = str(entry["PORT"])
    entry["CONN_HEALTH_CHECKS"] = True
    # A pooler in transaction mode gives each transaction another server session, where the cursor is unknown.
    entry["DISABLE_SERVER_SIDE_CURSORS"] = True
    return entry


def _postgres_url(entry: dict[str, Any], *, secret: str) -> str:
    """`secret` is the password as it goes into the URL: quoted, masked or empty."""
    user = quote(entry["USER"], safe="")
    account = f"{user}:{secret}@" if secret else f"{user}@" if user else ""
    hosts = str(entry["HOST"]).split(",")
    ports = str(entry["PORT"]).split(",")
    if len(ports) == 1:
        ports *= len(hosts)
    places = ",".join(f"{_host(host)}:{port}" if port else _host(host) for host, port in zip(hosts, ports, strict=True))
    options = "&".join(f"{key}={quote(str(value), safe='')}" for key, value in entry["OPTIONS"].items())
    return f"postgresql://{account}{places}/{quote(entry['NAME'], safe='')}" + (f"?{options}" if options else "")


def _host(host: str) -> str:
    """A host as libpq wants it in a URL: IPv6 in brackets, a socket's folder quoted."""
    return f"[{host}]" if ":" in host else quote(host, safe="")
