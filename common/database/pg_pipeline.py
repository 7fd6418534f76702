"""One PostgreSQL connection, driven in libpq's pipeline mode on the event loop: one flight of statements, one answer.

psycopg makes the connection; the statements go through its thin libpq binding (`psycopg.pq`) and not through its
cursors, which would cost several times the CPU on the server's hottest path. All statements before a Sync are one
transaction, so a commit is a single round trip without BEGIN and COMMIT.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import pq

Parameters = tuple[list[bytes | None], list[int]]
_BINARY = 1
_PIPELINE_SYNC = pq.ExecStatus.PIPELINE_SYNC
_FATAL_ERROR = pq.ExecStatus.FATAL_ERROR
_ABORTED = pq.ExecStatus.PIPELINE_ABORTED


class Command:
    """A statement on the wire. With a `name` it is prepared once for each connection, under that name; `title` is for
    messages."""

    __slots__ = ("formats", "name", "params", "sql", "title")

    def __init__(self, *, title: str, name: bytes, sql: bytes, params: list[bytes | None], formats: list[int]) -> None:
        self.title = title
        self.name = name
        self.sql = sql
        self.params = params
        self.formats = formats


class CommandFailed(Exception):
    """The server refused command `index`; the whole flight was rolled back."""

    def __init__(self, *, index: int, sqlstate: str, message: str) -> None:
        super().__init__(f"{sqlstate}: {message}")
        self.index = index
        self.sqlstate = sqlstate
        self.message = message


class ConnectionBroke(Exception):
    """The connection ended while a flight was out: it may or may not have been committed."""


class PipelineConnection:
    """A connection that carries one flight at a time. `on_idle` and `on_broken` are called on the event loop."""

    def __init__(
        self,
        connection: psycopg.AsyncConnection[Any],
        *,
        on_idle: Callable[[PipelineConnection], None],
        on_broken: Callable[[PipelineConnection], None],
    ) -> None:
        self._connection = connection  # keeps the libpq connection alive
        self._pg = connection.pgconn
        self._loop = asyncio.get_running_loop()
        self._on_idle = on_idle
        self._on_broken = on_broken
        self._prepared: set[bytes] = set()
        # The flight that is out: for each awaited result the name it prepares, or None for a command's own result.
        self._awaited: list[bytes | None] = []
        self._results: list[pq.abc.PGresult] = []
        self._answer: asyncio.Future[list[pq.abc.PGresult]] | None = None
        self._failure: CommandFailed | None = None
        self._position = 0
        self._is_writing = False
        self._fd = self._pg.socket
        # Asked without waiting: is there anything to read, or was the connection closed or reset?
        self._news = select.poll()
        self._news.register(self._fd, select.POLLIN)
        self._pg.enter_pipeline_mode()
        # Registered for the connection's life: an idle connection that ends is noticed at once, and no call pays for
        # registering.
        self._loop.add_reader(self._fd, self._readable)
        self.is_closed = False

    def send(self, commands: Sequence[Command]) -> asyncio.Future[list[pq.abc.PGresult]]:
        """Send a flight; the future gives one result for each command, CommandFailed or ConnectionBroke."""
        answer: asyncio.Future[list[pq.abc.PGresult]] = self._loop.create_future()
        self._answer = answer
        self._awaited, self._results, self._failure, self._position = [], [], None, 0
        pg = self._pg
        coming: set[bytes] = set()
        try:
            for command in commands:
                name = command.name
                if name:
                    if name not in self._prepared and name not in coming:
                        pg.send_prepare(name, command.sql)
                        self._awaited.append(name)
                        coming.add(name)
                    pg.send_query_prepared(name, command.params, command.formats, _BINARY)
                else:
                    pg.send_query_params(command.sql, command.params, None, command.formats, _BINARY)
                self._awaited.append(None)
            pg.pipeline_sync()
            self._flush()
        except psycopg.Error:
            self._break()
        return answer

    def is_stale(self) -> bool:
        """Of an idle one: whether the server has said something or is gone, and the event loop has not told yet."""
        return bool(self._news.poll(0))

    def close(self) -> None:
        """Idempotent; a flight that is out ends in ConnectionBroke."""
        if not self.is_closed:
            self.is_closed = True
            self._loop.remove_reader(self._fd)
            if self._is_writing:
                self._loop.remove_writer(self._fd)
            self._pg.finish()
        if self._answer is not None:
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_exception(ConnectionBroke())

    def _break(self) -> None:
        self.close()
        self._on_broken(self)

    def _flush(self) -> None:
        is_more = bool(self._pg.flush())
        if is_more and not self._is_writing:
            self._loop.add_writer(self._fd, self._writable)
        elif not is_more and self._is_writing:
            self._loop.remove_writer(self._fd)
        self._is_writing = is_more

    def _writable(self) -> None:
        try:
            self._flush()
        except psycopg.Error:
            self._break()

    def _readable(self) -> None:
        if self._answer is None:
            # Nobody asked anything: the server says farewell (or tells of a changed setting, which is as rare). A
            # session given up too early costs a connect; one used too late, a transaction of unknown outcome.
            self._break()
            return
        self._read()
        # Of a connection that was reset libuv tells once and never again, while libpq may have read no further than the
        # server's last words.
        while self._answer is not None and self._was_reset():
            self._read()

    def _was_reset(self) -> bool:
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in self._news.poll(0))

    def _read(self) -> None:
        pg = self._pg
        try:
            pg.consume_input()
            if self._is_writing:
                self._flush()
            while self._answer is not None and not pg.is_busy():
                result = pg.get_result()
                if result is not None and self._take(result):
                    self._finish()
        except psycopg.Error:
            self._break()
            return
        if pg.status != pq.ConnStatus.OK:
            self._break()

    def _take(self, result: pq.abc.PGresult) -> bool:
        """Note one result; True when the flight is complete."""
        status = result.status
        if status == _PIPELINE_SYNC:
            return True
        if self._position >= len(self._awaited):
            # Out of band: the server says why it ends the connection.
            return False
        prepares = self._awaited[self._position]
        self._position += 1
        if status == _FATAL_ERROR:
            self._failure = self._failure or self._read_failure(result)
        elif status == _ABORTED:
            pass
        elif prepares is not None:
            self._prepared.add(prepares)
        else:
            self._results.append(result)
        return False

    def _read_failure(self, result: pq.abc.PGresult) -> CommandFailed:
        index = self._awaited[: self._position].count(None)
        if self._awaited[self._position - 1] is None:
            index -= 1
        sqlstate = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(errors="replace")
        return CommandFailed(index=index, sqlstate=sqlstate, message=message)

    def _finish(self) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and not answer.done():
            if self._failure is not None:
                answer.set_exception(self._failure)
            else:
                answer.set_result(self._results)
        self._results = []
        self._on_idle(self)
