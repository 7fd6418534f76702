"""The cluster under test: seven processes on a PostgreSQL server of their own, and what can be done to them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.chaos.plan import HOSTS
from tests.databases import DatabaseFactory
from tests.e2e.cluster import Processes, processes
from tests.postgres import Cluster

FRONTENDS = ("frontend-1", "frontend-2")


class Arena:
    """All waiting is done in threads, so that the load goes on meanwhile."""

    def __init__(self, *, postgres: Cluster, cluster: Processes) -> None:
        self.postgres = postgres
        self.cluster = cluster
        self.database_url = cluster.database_url

    @property
    def frontends(self) -> list[str]:
        return [self.cluster[host].address for host in FRONTENDS]

    async def kill(self, host: str) -> None:
        await self.cluster.kill(host)

    async def stop(self, host: str) -> None:
        await self.cluster.stop(host)

    async def start(self, host: str) -> None:
        """Once more when the process ended because it had no database for its start; as a supervisor would."""
        try:
            await self.cluster.start(host)
        except RuntimeError:
            await self.cluster.start(host)

    def freeze(self, host: str) -> None:
        self.cluster[host].signal(signal.SIGSTOP)

    def thaw(self, host: str) -> None:
        self.cluster[host].signal(signal.SIGCONT)

    async def start_usurper(self, host: str) -> None:
        """A process that believes to be the only History and the only Matching there is."""
        server = self.cluster.by_host.get(host) or self.cluster.make(host, "history", "matching", "worker")
        for role in ("HISTORY", "MATCHING"):
            server.environment[f"{role}_HOSTS"] = f"{host}=127.0.0.1:{server.ports[f'{role}_PORT']}"
        await self.cluster.start(host)

    async def end_in_order(self) -> None:
        """Every process by SIGTERM; fails when one does not end in time."""
        for host in sorted(HOSTS):
            await self.cluster.stop(host)


@asynccontextmanager
async def arena(folder: Path, *, durable: bool) -> AsyncIterator[Arena]:
    """Everything is up. `durable`: PostgreSQL syncs its commits, as it must to survive its own crash for certain."""
    postgres = Cluster(durable=durable)
    postgres.create()
    postgres.start()
    try:
        factory = DatabaseFactory(folder=folder, postgres_url=lambda: postgres.url)
        url = await asyncio.to_thread(factory.create, "postgresql")
        with processes(database_url=url, folder=folder) as cluster:
            for host in HOSTS:
                cluster.make(host)
            await cluster.start(*HOSTS)
            yield Arena(postgres=postgres, cluster=cluster)
    finally:
        postgres.remove()
