"""Several server processes on one PostgreSQL database, each in the roles it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.server_process import LiveServer


class Processes:
    """Processes by the name of their host; the first role of a process names it, as in `history-1`."""

    def __init__(self, *, database_url: str, folder: Path) -> None:
        self.database_url = database_url
        self._folder = folder
        self.by_host: dict[str, LiveServer] = {}

    def __getitem__(self, host: str) -> LiveServer:
        return self.by_host[host]

    def make(self, host: str, *roles: str, environment: dict[str, str] | None = None) -> LiveServer:
        """A process that is not started yet. Without roles it has the one in its name."""
        assert host not in self.by_host, host
        server = LiveServer(
            database_url=self.database_url,
            log=self._folder / f"{host}.log",
            roles=(*(roles or (host.rpartition("-")[0],)), "--host", host),
            environment=environment,
        )
        self.by_host[host] = server
        return server

    async def start(self, *hosts: str, environment: dict[str, str] | None = None) -> None:
        """Starts a process for each of these hosts, all at the same time, and waits until they serve."""
        servers = [self.by_host.get(host) or self.make(host, environment=environment) for host in hosts]
        await asyncio.gather(*(asyncio.to_thread(server.start) for server in servers))

    async def kill(self, host: str) -> None:
        await asyncio.to_thread(self.by_host[host].kill)

    async def stop(self, host: str) -> None:
        """By SIGTERM; fails unless it ends in order and in time."""
        await asyncio.to_thread(self.by_host[host].stop)

    def end(self) -> None:
        for server in self.by_host.values():
            server.kill()

    def rows(self, sql: str) -> list[tuple[object, ...]]:
        return rows_of(self.database_url, sql)

    def write(self, sql: str) -> None:
        """Behind the servers' back."""
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(sql)

    def members(self) -> list[tuple[object, ...]]:
        return self.rows("SELECT role, host FROM cluster_members ORDER BY member")

    def shard_owners(self) -> set[object]:
        return {owner for (owner,) in self.rows("SELECT owner FROM shards")}


def rows_of(database_url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute(sql).fetchall()


@contextmanager
def processes(*, database_url: str, folder: Path) -> Iterator[Processes]:
    found = Processes(database_url=database_url, folder=folder)
    try:
        yield found
    finally:
        found.end()


async def until(holds: Callable[[], bool], *, within_s: float) -> None:
    """Wait until a condition of another process holds, which gives no signal; fails when it does not in time."""
    async with asyncio.timeout(within_s):
        while not await asyncio.to_thread(holds):
            pass
