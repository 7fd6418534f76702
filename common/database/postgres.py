"""PostgreSQL: a few connections for transactions and a few for reads, each made when first needed.

A transaction is one flight of prepared statements (see `pg_pipeline`). A connection that broke is forgotten and the
next call makes a new one, so the service goes on as soon as the server is back.

Every transaction connection plans its statements once (`plan_cache_mode`) and by index: the tables are empty when a
new installation first plans, and a plan made for an empty table must still be right when it holds millions of rows.
Behind a pooler in transaction mode, `pooled=True` prepares nothing and sets nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from psycopg import pq

from common.database.base import Database, Query, Row, Statement
from common.database.pg_encoding import ARRAY_ENCODERS, DECODERS, scalar
from common.database.pg_pipeline import Command, CommandFailed, ConnectionBroke, PipelineConnection
from common.errors import ConditionFailed, Internal, InvalidArgument, OutcomeUnknown, Unavailable

log = logging.getLogger(__name__)

WRITERS = 4
READERS = 4
"""Connections at most, for each process, unless it is told otherwise: so a PostgreSQL with its default 100 serves a dozen processes."""

CONNECTION_DEFAULTS = {
    "client_encoding": "UTF8",
    "connect_timeout": "10",
    # A peer that vanished without a word is noticed by the kernel within some 15 seconds.
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}
# jit: the planner's penalty for what is switched off would make every plan look worth compiling.
_COMMON_SESSION = "SET jit = off; SET enable_seqscan = off; SET lock_timeout = '10s'"
READER_SESSION = _COMMON_SESSION
WRITER_SESSION = (
    f"{_COMMON_SESSION}; SET plan_cache_mode = force_generic_plan; "
    "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_bitmapscan = off"
)

_CONDITION = "22012"  # division_by_zero, see base._checked
_UNIQUE_VIOLATION = "23505"
_BAD_TEXT = frozenset({"22021", "22P05"})
# The server ended the session, perhaps after it had committed.
_ENDED = frozenset({"57P01", "57P02", "57P05", "25P03"})
# Connection, serialization, resources, lock or operator: nothing was written, and trying again may help.
_TRY_AGAIN = ("08", "40", "53", "55", "57", "58")
_READ_ONLY = "25006"
# A prepared statement that the server no longer has, or whose result the schema changed.
_STALE_PREPARED = frozenset({"26000", "0A000"})
_USELESS_SESSION = _ENDED | _STALE_PREPARED | {_READ_ONLY}


class PostgresDatabase(Database):
    dialect = "postgresql"

    def __init__(
        self, *, conninfo: dict[str, Any], pooled: bool = False, writers: int = WRITERS, readers: int = READERS
    ) -> None:
        """`conninfo`: libpq's keywords; `writers`, `readers`: connections at most."""
        info = CONNECTION_DEFAULTS | conninfo
        self._prepares = not pooled
        self._writers = _Pool(info=info, size=writers, session="" if pooled else WRITER_SESSION)
        self._readers = _Pool(info=info, size=readers, session="" if pooled else READER_SESSION)
        self._decoders: dict[str, list[Callable[[bytes], Any]]] = {}

    async def start(self) -> None:
        self._writers.open()
        self._readers.open()

    async def stop(self) -> None:
        await self._writers.close()
        await self._readers.close()

    async def transact(self, statements: Sequence[Statement]) -> None:
        statements = [s for s in statements if s.rows]
        if not statements:
            return
        await self._write([self._command(s) for s in statements], statements)

    async def execute(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        results = await self._write([self._read_command(query, params)], [])
        return self._rows(query, results[0])

    async def _write(self, commands: list[Command], statements: list[Statement]) -> list[pq.abc.PGresult]:
        connection = await self._writers.take()
        try:
            return await connection.send(commands)
        except ConnectionBroke:
            raise OutcomeUnknown("the connection to the database broke during a transaction") from None
        except CommandFailed as failure:
            if failure.sqlstate in _USELESS_SESSION:
                self._writers.discard(connection)
            raise _write_error(commands, statements, failure) from failure

    async def fetch(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        return (await self.fetch_many([(query, params)]))[0]

    async def fetch_many(self, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
        commands = [self._read_command(query, params) for query, params in reads]
        connection = await self._readers.take()
        try:
            results = await connection.send(commands)
        except ConnectionBroke:
            raise Unavailable("the connection to the database broke") from None
        except CommandFailed as failure:
            if failure.sqlstate in _USELESS_SESSION:
                self._readers.discard(connection)
            raise _general_error(reads[failure.index][0].name, failure) from failure
        return [self._rows(query, result) for (query, _), result in zip(reads, results, strict=True)]

    def _command(self, statement: Statement) -> Command:
        query = statement.query
        columns = zip(*statement.rows, strict=True)
        params: list[bytes | None] = [ARRAY_ENCODERS[t](column) for t, column in zip(query.types, columns, strict=True)]
        formats = [1] * len(params)
        name, sql = query.name, query.postgresql
        if statement.expect is not None:
            name, sql = f"{name}/checked", query.postgresql_checked
            params.append(b"%d" % statement.expect)
            formats.append(0)
        return Command(
            title=query.name,
            name=name.encode() if self._prepares else b"",
            sql=sql,
            params=params,
            formats=formats,
        )

    def _read_command(self, query: Query, params: Sequence[Any]) -> Command:
        name = query.name.encode() if query.prepare and self._prepares else b""
        return Command(
            title=query.name,
            name=name,
            sql=query.postgresql,
            params=[scalar(p) for p in params],
            formats=[0] * len(params),
        )

    def _rows(self, query: Query, result: pq.abc.PGresult) -> list[Row]:
        count = result.ntuples
        if not count:
            return []
        width = range(result.nfields)
        decoders = self._decoders.get(query.name) if query.prepare else None
        if decoders is None:
            decoders = [DECODERS.get(result.ftype(i), bytes.decode) for i in width]
            if query.prepare:
                self._decoders[query.name] = decoders
        value = result.get_value
        rows = []
        for n in range(count):
            raw = [value(n, i) for i in width]
            rows.append(tuple([None if v is None else d(v) for d, v in zip(decoders, raw, strict=True)]))
        return rows


def _write_error(commands: list[Command], statements: list[Statement], failure: CommandFailed) -> Exception:
    if failure.sqlstate in _ENDED:
        return OutcomeUnknown(f"the database ended the connection during a transaction: {failure.message}")
    # A failure at COMMIT itself (a deferred constraint) comes after the last statement.
    index = min(failure.index, len(commands) - 1)
    if failure.sqlstate == _CONDITION and statements:
        return statements[index].unmet()
    name = commands[index].title
    if failure.sqlstate == _UNIQUE_VIOLATION:
        return ConditionFailed(statement=name)
    return _general_error(name, failure)


def _general_error(name: str, failure: CommandFailed) -> Exception:
    state = failure.sqlstate
    if state.startswith(_TRY_AGAIN) or state == _READ_ONLY or state in _STALE_PREPARED:
        return Unavailable(f"the database refused {name!r}: {failure.message}")
    if state in _BAD_TEXT:
        return InvalidArgument("a text that is a key or a filter must not contain U+0000")
    return Internal(f"the database refused {name!r}: {failure}")


def _unreachable(error: psycopg.Error) -> Unavailable:
    return Unavailable(f"the database can't be reached: {error}")


class _Pool:
    """At most `size` connections; callers beyond that wait in order. Used from one event loop."""

    def __init__(self, *, info: dict[str, Any], size: int, session: str) -> None:
        self._info = info
        self._size = size
        self._session = session
        self._is_open = False
        # All of these belong to the event loop's thread.
        self._idle: list[PipelineConnection] = []
        self._busy: set[PipelineConnection] = set()
        self._connecting = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._all_idle: asyncio.Event = asyncio.Event()

    def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False
        self._wake_all()
        while self._busy or self._connecting:
            self._all_idle.clear()
            await self._all_idle.wait()
        for connection in self._idle:
            connection.close()
        self._idle.clear()

    async def take(self) -> PipelineConnection:
        """A connection for one flight; it comes back by itself when the flight ends."""
        while self._is_open:
            if self._idle:
                connection = self._idle.pop()
                if connection.is_stale():
                    connection.close()
                    continue
                self._busy.add(connection)
                return connection
            if len(self._busy) + self._connecting < self._size:
                return await self._connect()
            await self._wait()
        raise Unavailable("the database is closed")

    def discard(self, connection: PipelineConnection) -> None:
        """Close a connection whose session is of no more use, instead of taking it again."""
        connection.close()
        self._on_broken(connection)

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # It was woken and leaves: the next in line must not miss the connection.
                self._wake_one()
            raise

    async def _connect(self) -> PipelineConnection:
        self._connecting += 1
        try:
            raw = await psycopg.AsyncConnection.connect(autocommit=True, **self._info)
            try:
                if self._session:
                    await raw.execute(self._session)
                connection = PipelineConnection(raw, on_idle=self._on_idle, on_broken=self._on_broken)
            except BaseException:
                await raw.close()
                raise
            self._busy.add(connection)
            return connection
        except psycopg.Error as error:
            if not self._busy:
                # They waited for this attempt; each trying again by itself would take its own time to fail.
                self._refuse_waiters(error)
            raise _unreachable(error) from error
        finally:
            self._connecting -= 1
            self._changed()

    def _on_idle(self, connection: PipelineConnection) -> None:
        self._busy.discard(connection)
        if connection.is_closed:
            return
        self._idle.append(connection)
        self._changed()

    def _on_broken(self, connection: PipelineConnection) -> None:
        self._busy.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._changed()

    def _changed(self) -> None:
        self._wake_one()
        if not self._busy and not self._connecting:
            self._all_idle.set()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _refuse_waiters(self, error: psycopg.Error) -> None:
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(_unreachable(error))

    def _wake_all(self) -> None:
        while self._waiters:
            self._wake_one()
