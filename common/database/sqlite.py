"""SQLite: one thread writes, one thread reads, each with its own connection.

Transactions queue at the writer. Rows of a statement go in as multi-row `VALUES` in chunks of powers of two: every call
into SQLite gives up and takes back the interpreter's lock, which under load costs more than the work itself, and few
distinct chunk sizes keep the statements prepared. A database in memory is read through the writer's connection.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, TypeVar

from common.database.base import Database, Query, Row, RowsQuery, Statement
from common.errors import ConditionFailed, Internal, OutcomeUnknown, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_TIMEOUT_S = 10.0
_LARGEST_CHUNK = 64
_PREPARED_STATEMENTS = 1_024
_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE})


class SqliteDatabase(Database):
    dialect = "sqlite"

    def __init__(self, *, path: str, is_memory: bool = False) -> None:
        """`path` may be a `file:` URI; `is_memory` when it names a database in memory."""
        self._writer = _Worker(name="sqlite-writer", path=path)
        self._reader = self._writer if is_memory else _Worker(name="sqlite-reader", path=path)

    async def start(self) -> None:
        self._writer.start()
        self._reader.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self._stop)

    def _stop(self) -> None:
        self._reader.stop()
        self._writer.stop()

    async def transact(self, statements: Sequence[Statement]) -> None:
        statements = [s for s in statements if s.rows]
        if statements:
            await self._writer.submit(_transact, statements)

    async def execute(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        return await self._writer.submit(_execute, (query, params))

    async def fetch(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        return (await self.fetch_many([(query, params)]))[0]

    async def fetch_many(self, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
        return await self._reader.submit(_read, reads)


class _Worker:
    """A thread with a connection of its own, doing one job after another. The connection is made when first needed and
    again after a fault."""

    def __init__(self, *, name: str, path: str) -> None:
        self._name = name
        self._path = path
        self._jobs: SimpleQueue[tuple[Callable[..., Any], Any, asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._connection: sqlite3.Connection | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            thread.join()

    def submit(self, job: Callable[[sqlite3.Connection, Any], T], argument: Any) -> asyncio.Future[T]:
        if self._thread is None:
            raise Unavailable("the database is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((job, argument, future))
        return future

    def _run(self) -> None:
        while (work := self._jobs.get()) is not None:
            job, argument, future = work
            result: Any = None
            error: BaseException | None = None
            try:
                result = job(self._open(), argument)
            except sqlite3.Error as raised:
                error = _error_of(raised, doing=self._name)
                self._close()
            except OutcomeUnknown as raised:
                error = raised
                self._close()
            except Exception as raised:  # noqa: BLE001  the caller gets it
                error = raised
            try:
                future.get_loop().call_soon_threadsafe(_answer, future, result, error)
            except RuntimeError:
                log.debug("%s finished a job whose event loop has ended", self._name)
        self._close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = connect(self._path)
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def connect(path: str) -> sqlite3.Connection:
    """A connection in autocommit mode, set up for durability: a commit is on the disk when it returns."""
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_PREPARED_STATEMENTS,
        uri=path.startswith("file:"),
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA cache_size = -16000")
        connection.execute("PRAGMA temp_store = MEMORY")
    except BaseException:
        connection.close()
        raise
    return connection


def _answer(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def _transact(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    with _transaction(connection):
        for statement in statements:
            _do(connection, statement)


def _execute(connection: sqlite3.Connection, argument: tuple[Query, Sequence[Any]]) -> list[Row]:
    with _transaction(connection), _refusals(argument[0].name):
        return _read(connection, [argument])[0]


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise OutcomeUnknown(f"the database failed during COMMIT: {error}") from error


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        if error.sqlite_errorcode in _UNIQUE:
            raise ConditionFailed(statement=name) from error
        raise Internal(f"the database refused {name!r}: {error}") from error


def _do(connection: sqlite3.Connection, statement: Statement) -> None:
    query = statement.query
    touched = 0
    with _refusals(query.name):
        for sql, params in _chunks(query, statement.rows):
            cursor = connection.execute(sql, params)
            touched += len(cursor.fetchall()) if cursor.description else cursor.rowcount
    if statement.expect is not None and touched != statement.expect:
        raise statement.unmet()


def _chunks(query: RowsQuery, rows: Sequence[Row]) -> list[tuple[str, list[Any]]]:
    width = len(query.types)
    flat = [value for row in rows for value in row]
    for index, kind in enumerate(query.types):
        convert = _CONVERSIONS.get(kind)
        if convert is not None:
            flat[index::width] = map(convert, flat[index::width])
    done = []
    start, left = 0, len(rows)
    while left:
        size = min(_LARGEST_CHUNK, 1 << (left.bit_length() - 1))
        done.append((_sql(query, size), flat[start * width : (start + size) * width]))
        start += size
        left -= size
    return done


_SQL: dict[tuple[str, int], str] = {}


def _sql(query: RowsQuery, size: int) -> str:
    """The statement's text for so many rows; the same object each time, for the connection's cache of statements."""
    sql = _SQL.get((query.sqlite, size))
    if sql is None:
        row = f"({', '.join('?' * len(query.types))})"
        sql = query.sqlite.replace("{rows}", "VALUES " + ", ".join([row] * size))
        _SQL[query.sqlite, size] = sql
    return sql


def _read(connection: sqlite3.Connection, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
    results = []
    for query, params in reads:
        bound = [time_to_text(p) if isinstance(p, datetime) else p for p in params]
        rows = connection.execute(query.sqlite, bound).fetchall()
        results.append([_with_times(row, query.times) for row in rows] if query.times else rows)
    return results


def _with_times(row: Row, times: Sequence[int]) -> Row:
    values = list(row)
    for index in times:
        values[index] = text_to_time(values[index])
    return tuple(values)


def time_to_text(when: datetime | None) -> str | None:
    """The form in which Django stores and reads it: UTC without an offset. Always with microseconds, so that the
    order of the texts is the order of the times."""
    if when is None:
        return None
    if when.tzinfo is not UTC:
        when = when.astimezone(UTC)
    return when.isoformat(" ", "microseconds")[:26]


def text_to_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).replace(tzinfo=UTC)


def _json_to_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"time": time_to_text, "json": _json_to_text}


def _error_of(error: sqlite3.Error, *, doing: str) -> Exception:
    """Whatever fails before COMMIT has written nothing."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.DataError):
        return Internal(f"{doing}: {error}")
    if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_ERROR:
        # An error in the SQL itself, as when the tables have not been made.
        return Internal(f"{doing}: {error}")
    return Unavailable(f"the database can't be used: {error}")
