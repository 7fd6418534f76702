"""The database goes away under load: for a while, or for ever with a standby in its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from temporalio.client import Client

from tests.databases import DatabaseFactory, manage
from tests.e2e.cluster import processes
from tests.e2e.load import load, nothing_for
from tests.postgres import Cluster
from tests.standby import Standby, kill

OUTAGE_S = 5.0
HOSTS = ("history-1", "history-2", "matching-1", "frontend-1", "worker-1", "web-1")
COUNT = "from history.models import Execution; print(Execution.objects.count())"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Cluster]:
    """A PostgreSQL server that no other module uses."""
    postgres = Cluster()
    postgres.create()
    postgres.start()
    yield postgres
    postgres.remove()


@pytest.fixture(scope="module")
def factory(postgres: Cluster, tmp_path_factory: pytest.TempPathFactory) -> DatabaseFactory:
    return DatabaseFactory(folder=tmp_path_factory.mktemp("away"), postgres_url=lambda: postgres.url)


async def test_an_outage_of_the_database_is_ridden_out(
    postgres: Cluster, factory: DatabaseFactory, queue: str, tmp_path: Path
) -> None:
    url = factory.create("postgresql")
    with processes(database_url=url, folder=tmp_path) as cluster:
        await cluster.start(*HOSTS)
        pids = {host: server.pid for host, server in cluster.by_host.items()}
        client = await Client.connect(cluster["frontend-1"].address)
        async with load(client, queue) as orders:
            postgres.stop()
            await nothing_for(OUTAGE_S, orders)
            postgres.start()
            await orders.goes_on()
        for host, server in cluster.by_host.items():
            assert server.pid == pids[host]
        for host in pids:
            await cluster.stop(host)
        manage("verify", database_url=url)


async def test_a_promoted_standby_takes_the_primarys_place(
    postgres: Cluster, factory: DatabaseFactory, queue: str, tmp_path: Path
) -> None:
    """The last test here: the primary stays dead."""
    url = factory.create("postgresql")
    standby = Standby()
    try:
        standby.follow(postgres)
        hosts = f"127.0.0.1:{postgres.port},127.0.0.1:{standby.port}"
        both = urlunsplit(urlsplit(url)._replace(netloc=f"postgres@{hosts}", query="target_session_attrs=read-write"))
        with processes(database_url=both, folder=tmp_path) as cluster:
            await cluster.start(*HOSTS)
            pids = {host: server.pid for host, server in cluster.by_host.items()}
            client = await Client.connect(cluster["frontend-1"].address)
            async with load(client, queue) as orders:
                kill(postgres)
                standby.promote()
                await orders.goes_on()
            assert {host: server.pid for host, server in cluster.by_host.items()} == pids
            for host in pids:
                await cluster.stop(host)
        # Django's own connections find the promoted one as well.
        manage("migrate", "--check", database_url=both)
        assert int(manage("shell", "-v0", "-c", COUNT, database_url=both)) >= len(orders.started.handles)
        assert "0 differences" in manage("verify", database_url=both)
    finally:
        standby.remove()
