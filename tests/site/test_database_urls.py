"""From a database URL to Django's settings, back, and to words without a password."""

import contextlib
import sqlite3
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from tinytemporal_site.databases import (
    MEMORY_DATABASE,
    database_settings,
    describe,
    keep_memory_database,
    normal_url,
)


def entry(url: str, *, base_dir: Path = Path("/")) -> dict:  # type: ignore[type-arg]
    return database_settings(url, name="DATABASE_URL", base_dir=base_dir)


def test_sqlite_path_is_relative_to_the_project_or_absolute(tmp_path: Path) -> None:
    assert entry("sqlite:///a.sqlite3", base_dir=tmp_path)["NAME"] == str(tmp_path / "a.sqlite3")
    assert entry(f"sqlite:///{tmp_path}/with%20blank", base_dir=Path("/"))["NAME"] == str(tmp_path / "with blank")


@pytest.mark.parametrize("url", ["sqlite://:memory:", "sqlite:///:memory:"])
def test_memory(url: str) -> None:
    assert entry(url)["NAME"] == MEMORY_DATABASE
    assert normal_url(entry(url)) == "sqlite://:memory:"
    assert describe(entry(url)) == "SQLite in memory (lost when the process ends)"


def test_memory_is_one_database_for_all_connections() -> None:
    with contextlib.closing(keep_memory_database()) as first, contextlib.closing(keep_memory_database()) as second:
        first.execute("CREATE TABLE seen (n INTEGER)")
        first.commit()
        assert second.execute("SELECT count(*) FROM seen").fetchone() == (0,)
    with contextlib.closing(keep_memory_database()) as later, pytest.raises(sqlite3.OperationalError):
        later.execute("SELECT count(*) FROM seen")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres(scheme: str) -> None:
    made = entry(f"{scheme}://me:s%40crt%2F@db.example:6432/tiny?sslmode=require")
    assert (made["HOST"], made["PORT"], made["USER"], made["PASSWORD"]) == ("db.example", "6432", "me", "s@crt/")
    assert made["OPTIONS"]["sslmode"] == "require"
    assert normal_url(made).startswith("postgresql://me:s%40crt%2F@db.example:6432/tiny?")
    assert describe(made) == "PostgreSQL postgresql://me:***@db.example:6432/tiny"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgres://u@h1:5432,h2:5433/db?target_session_attrs=read-write", "postgresql://u@h1:5432,h2:5433/db"),
        ("postgres://u@h/db", "postgresql://u@h/db"),
        ("postgres://u@[::1]:5432/db", "postgresql://u@[::1]:5432/db"),
        ("postgres:///db?host=/run/postgresql&user=u", "postgresql:///db"),
    ],
)
def test_postgres_places(url: str, shown: str) -> None:
    made = entry(url)
    assert describe(made) == f"PostgreSQL {shown}"
    assert entry(normal_url(made)) == made


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:hidden@h/d",
        "postgres://u:hidden@h:port/d",
        "postgres://u:hidden@h/",
        "postgres://u:hidden@h",
        "sqlite://file.sqlite3",
        "sqlite:////no/such/folder/file.sqlite3",
        "sqlite:///file.sqlite3?timeout=5",
        "file.sqlite3",
        "://",
    ],
)
def test_wrong_url_is_refused_by_name_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="DATABASE_URL") as caught:
        entry(url)
    assert "hidden" not in str(caught.value)
