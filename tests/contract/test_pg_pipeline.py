"""A connection's flight ends, whatever becomes of the connection, on either event loop."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg import pq

from common.database.pg_pipeline import Command, ConnectionBroke, PipelineConnection

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
COMMAND = Command(title="ask", name=b"", sql=b"SELECT 1", params=[], formats=[])
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Libpq:
    """As much of libpq's connection as a flight needs, on a socket whose other end the test holds; nothing that comes is ever
    a whole answer."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.client = socket.create_connection(listener.getsockname())
            self.server, _ = listener.accept()
        self.client.setblocking(False)
        self.socket = self.client.fileno()
        self.status = pq.ConnStatus.OK

    def consume_input(self) -> None:
        """Reads little at a time, as libpq does of a long answer."""
        try:
            if not self.client.recv(8):
                raise psycopg.OperationalError("closed")
        except BlockingIOError:
            pass
        except OSError as error:
            raise psycopg.OperationalError("reset") from error

    def enter_pipeline_mode(self) -> None: ...

    def send_query_params(self, *_: object) -> None: ...

    def pipeline_sync(self) -> None: ...

    def flush(self) -> int:
        return 0

    def is_busy(self) -> bool:
        return True

    def finish(self) -> None:
        self.client.close()


def run(loop: str, check: Callable[[Libpq, PipelineConnection, list[str]], Any]) -> None:
    async def prepared() -> None:
        libpq, seen = Libpq(), list[str]()
        raw: Any = type("Raw", (), {"pgconn": libpq})()
        connection = PipelineConnection(
            raw, on_idle=lambda _: seen.append("idle"), on_broken=lambda _: seen.append("broken")
        )
        try:
            async with asyncio.timeout(30):
                await check(libpq, connection, seen)
        finally:
            connection.close()
            libpq.server.close()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(prepared())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_reset_after_the_servers_last_words(loop: str) -> None:
    async def check(libpq: Libpq, connection: PipelineConnection, seen: list[str]) -> None:
        answer = connection.send([COMMAND])
        libpq.server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        libpq.server.sendall(b"terminating connection due to administrator command")
        libpq.server.close()
        with pytest.raises(ConnectionBroke):
            await answer
        assert seen == ["broken"]

    run(loop, check)


@pytest.mark.parametrize("loop", LOOPS)
def test_an_idle_one_that_the_server_closed_is_stale_before_the_loop_has_told(loop: str) -> None:
    async def check(libpq: Libpq, connection: PipelineConnection, seen: list[str]) -> None:
        assert not connection.is_stale()
        libpq.server.close()
        assert connection.is_stale()
        assert seen == []

    run(loop, check)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_flight_on_a_closed_one_is_refused(loop: str) -> None:
    async def check(libpq: Libpq, connection: PipelineConnection, seen: list[str]) -> None:
        def refuse(*_: object) -> None:
            raise psycopg.OperationalError("the connection is closed")

        connection.close()
        libpq.send_query_params = refuse  # type: ignore[method-assign]
        with pytest.raises(ConnectionBroke):
            await connection.send([COMMAND])

    run(loop, check)
