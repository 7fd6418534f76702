"""All roles behind a pooler in transaction mode, under load: nothing may depend on what a session was left with."""

from __future__ import annotations

import asyncio
from pathlib import Path

from temporalio.client import Client

from tests.databases import DatabaseFactory, manage
from tests.e2e.cluster import processes
from tests.e2e.load import load
from tests.pooler import Pooler

HOSTS = ("history-1", "matching-1", "frontend-1", "worker-1", "web-1")
POOLED = {"DATABASE_POOLER": "true"}


async def test_every_role_works_behind_a_pooler(database_factory: DatabaseFactory, queue: str, tmp_path: Path) -> None:
    url = database_factory.create("postgresql")
    async with Pooler(url) as pooler:
        assert "No migrations" in await asyncio.to_thread(manage, "migrate", database_url=pooler.url, **POOLED)
        with processes(database_url=pooler.url, folder=tmp_path) as cluster:
            await cluster.start(*HOSTS, environment=POOLED)
            client = await Client.connect(cluster["frontend-1"].address)
            async with load(client, queue) as orders:
                await orders.goes_on()
                await orders.goes_on()
            for host in HOSTS:
                await cluster.stop(host)
        printed = await asyncio.to_thread(manage, "verify", database_url=pooler.url, **POOLED)
        assert "0 differences" in printed
        assert pooler.transactions > len(orders.done.handles)
    database_factory.drop(url)
