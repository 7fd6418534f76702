"""How many connections each process keeps to its database: bounded, whatever the load."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db.utils import OperationalError, load_backend
from temporalio.client import Client

from tests.databases import DatabaseFactory, django_entry
from tests.e2e.cluster import processes
from tests.e2e.load import load
from tinytemporal_site.postgresql import base

HOSTS = ("history-1", "matching-1", "frontend-1", "worker-1", "web-1")
WRITERS, READERS, PAGES = 2, 1, 2
LIMITS = {
    "DATABASE_WRITERS": str(WRITERS),
    "DATABASE_READERS": str(READERS),
    "DATABASE_WEB_CONNECTIONS": str(PAGES),
}
COUNT = "SELECT application_name, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY 1"


@pytest.fixture
def url(database_factory: DatabaseFactory) -> Iterator[str]:
    url = database_factory.create("postgresql")
    yield url
    database_factory.drop(url)


async def test_each_process_keeps_to_its_limits_under_load(url: str, queue: str, tmp_path: Path) -> None:
    most: Counter[str] = Counter()
    over = threading.Event()

    def watch() -> None:
        with psycopg.connect(url, autocommit=True, application_name="test") as session:
            while not over.is_set():
                for name, count in session.execute(COUNT).fetchall():
                    most[name] = max(most[name], count)

    with processes(database_url=url, folder=tmp_path) as cluster:
        for host in HOSTS:
            cluster.make(host, environment={**LIMITS, "DATABASE_URL": f"{url}?application_name={host}"})
        await cluster.start(*HOSTS)
        client = await Client.connect(cluster["frontend-1"].address)
        watching = asyncio.create_task(asyncio.to_thread(watch))
        try:
            async with load(client, queue) as orders:
                await orders.goes_on()
                await orders.goes_on()
        finally:
            over.set()
            await watching
    assert most["history-1"] == WRITERS + READERS
    for host in HOSTS:
        assert most[host] <= WRITERS + READERS + (PAGES if host == "web-1" else 0), most


def test_a_thread_waits_for_a_connection_that_another_lets_go(
    url: str, monkeypatch: pytest.MonkeyPatch, django_db_blocker: Any
) -> None:
    monkeypatch.setattr(settings, "DATABASE_WEB_CONNECTIONS", PAGES)
    entry = {**django_entry(url), "TIME_ZONE": None, "CONN_MAX_AGE": 0, "AUTOCOMMIT": True, "ATOMIC_REQUESTS": False}
    with django_db_blocker.unblock():
        check_limit(entry, monkeypatch)


def check_limit(entry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    backend = load_backend(entry["ENGINE"])
    in_use: list[int] = []

    def use(number: int) -> int:
        wrapper = backend.DatabaseWrapper(entry, "limited")
        try:
            with wrapper.cursor() as cursor:
                in_use.append(number)
                cursor.execute("SELECT 1")
                at_once = len(in_use)
                in_use.remove(number)
                return at_once
        finally:
            wrapper.close()

    with ThreadPoolExecutor(8) as threads:
        assert max(threads.map(use, range(40))) <= PAGES

    monkeypatch.setattr(base, "WAIT_S", 0.1)
    forgotten = [backend.DatabaseWrapper(entry, "limited") for _ in range(PAGES)]
    for wrapper in forgotten:
        wrapper.connect()
    with pytest.raises(OperationalError, match="all 2 connections to the database limited are in use"):
        use(0)
    for wrapper in forgotten:
        wrapper.close()
    assert use(0) == 1
