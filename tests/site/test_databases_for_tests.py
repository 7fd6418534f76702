"""The test session's own databases: fresh, migrated, and apart from each other."""

import sqlite3

import psycopg

from tests.databases import DatabaseFactory, manage
from tests.postgres import Cluster


def tables(url: str) -> set[str]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            connection.close()
    with psycopg.connect(url) as connected:
        found = connected.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return {name for (name,) in found}


def test_database_is_migrated(database_url: str) -> None:
    assert {"auth_user", "django_migrations"} <= tables(database_url)
    assert "No migrations to apply" in manage("migrate", database_url=database_url)


def test_databases_are_apart(database_kind: str, database_factory: DatabaseFactory) -> None:
    first, second = database_factory.create(database_kind), database_factory.create(database_kind)
    assert first != second
    database_factory.drop(first)
    assert "auth_user" in tables(second)
    database_factory.drop(second)


def test_cluster_can_crash_and_start_again(postgres_cluster: Cluster) -> None:
    postgres_cluster.crash()
    postgres_cluster.start()
    with psycopg.connect(postgres_cluster.url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
