"""A pooler in transaction mode, like pgbouncer but more merciless: each transaction of a client gets another server session
than the one before if there is one, and a session is wiped between two transactions. So what a client leaves in its session
(a prepared statement, a setting, a lock, a temporary table) is gone at once and not only by bad luck.

It speaks as much of PostgreSQL's protocol (version 3, trust) as that takes: who starts, and where a transaction ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from typing import Self
from urllib.parse import unquote, urlsplit, urlunsplit

from tests.ports import free_port

_SSL_REQUEST, _GSS_REQUEST, _CANCEL_REQUEST, _PROTOCOL = 80_877_103, 80_877_104, 80_877_102, 196_608
_ENDS_A_FLIGHT = frozenset((b"Q", b"S", b"F"))
"""Messages of a client that the server answers with ReadyForQuery."""
_IDLE = b"I"


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """One message: its type and body."""
    kind = await reader.readexactly(1)
    (length,) = struct.unpack("!i", await reader.readexactly(4))
    return kind, await reader.readexactly(length - 4)


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


class _Session:
    """One session of the server. It belongs to one client during a transaction and is wiped after it."""

    def __init__(self, pooler: Pooler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._pooler = pooler
        self._reader = reader
        self.writer = writer
        self.client: _Client | None = None
        self.greeting = b""
        self._unanswered = 0
        """Of what is asked after a client's transaction."""

    async def open(self, *, user: str, database: str) -> None:
        settings = f"user\0{user}\0database\0{database}\0client_encoding\0UTF8\0\0".encode()
        self.writer.write(struct.pack("!ii", len(settings) + 8, _PROTOCOL) + settings)
        while True:
            kind, body = await _read(self._reader)
            assert kind != b"E", body
            if kind == b"Z":
                return
            self.greeting += _message(kind, body)

    async def run(self) -> None:
        while True:
            kind, body = await _read(self._reader)
            if self.client is not None:
                self.client.writer.write(_message(kind, body))
                if kind == b"Z" and self.client.answered(body):
                    self.client.session, self.client = None, None
                    self._wipe()
            elif kind == b"Z":
                self._unanswered -= 1
                if not self._unanswered:
                    self._pooler.idle.put_nowait(self)

    def let_go(self, *, unanswered: int) -> None:
        """Its client has left in the middle of a transaction."""
        self.client = None
        self._unanswered = unanswered + 2
        self.writer.write(_message(b"S") + _message(b"Q", b"ROLLBACK\0"))
        self._wipe()

    def _wipe(self) -> None:
        self._unanswered += 1
        self.writer.write(_message(b"Q", b"DISCARD ALL\0"))


class _Client:
    def __init__(self, pooler: Pooler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._pooler = pooler
        self._reader = reader
        self.writer = writer
        self.session: _Session | None = None
        self._unanswered = 0
        self._is_within_a_flight = False

    async def run(self) -> None:
        if not await self._start():
            return
        try:
            while True:
                kind, body = await _read(self._reader)
                if kind == b"X":
                    return
                if self.session is None:
                    self.session = await self._pooler.take()
                    self.session.client = self
                self._is_within_a_flight = kind not in _ENDS_A_FLIGHT
                self._unanswered += not self._is_within_a_flight
                self.session.writer.write(_message(kind, body))
        finally:
            if self.session is not None:
                self.session.let_go(unanswered=self._unanswered)

    def answered(self, status: bytes) -> bool:
        """Whether the transaction is over, after a ReadyForQuery."""
        self._unanswered -= 1
        return status == _IDLE and not self._unanswered and not self._is_within_a_flight

    async def _start(self) -> bool:
        while True:
            (length,) = struct.unpack("!i", await self._reader.readexactly(4))
            (code,) = struct.unpack("!i", (await self._reader.readexactly(length - 4))[:4])
            if code in (_SSL_REQUEST, _GSS_REQUEST):
                self.writer.write(b"N")
                continue
            if code == _CANCEL_REQUEST:
                return False
            self.writer.write(self._pooler.greeting + _message(b"Z", _IDLE))
            return True


class Pooler:
    """Up to `sessions` of the server's, for any number of clients of one database. To be used with `async with`."""

    def __init__(self, url: str, *, sessions: int = 6) -> None:
        self._target = urlsplit(url)
        self._size = sessions
        self._port = free_port()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.idle: asyncio.Queue[_Session] = asyncio.Queue()
        self.greeting = b""
        self.transactions = 0
        self.url = urlunsplit(self._target._replace(netloc=f"{self._target.username}@127.0.0.1:{self._port}"))

    async def __aenter__(self) -> Self:
        user, database = unquote(self._target.username or ""), unquote(self._target.path.lstrip("/"))
        for _ in range(self._size):
            reader, writer = await asyncio.open_connection(self._target.hostname, self._target.port)
            session = _Session(self, reader, writer)
            await session.open(user=user, database=database)
            self._writers.append(writer)
            self._keep(session.run())
            self.idle.put_nowait(session)
            self.greeting = session.greeting
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def take(self) -> _Session:
        """The one that has been idle longest."""
        self.transactions += 1
        return await self.idle.get()

    def _keep(self, running: object) -> None:
        task = asyncio.get_running_loop().create_task(running)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await _Client(self, reader, writer).run()
        self._tasks.discard(task)
        writer.close()
