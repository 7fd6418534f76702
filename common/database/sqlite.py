"""SQLite: transactions run on the event loop's thread, their commits on a thread of their own, reads on another.

What a transaction's statements do is work in SQLite's memory, some tens of microseconds; what waits for the disk is the
commit. A thread for all of it would cost far more than it hides: every call into SQLite gives up and takes back the
interpreter's lock, and on a busy event loop each of these waits for the loop's next turn (measured: 73 ms for a
transaction that takes 1 ms). So only BEGIN against another process's lock, COMMIT and reads are handed to threads.

While a commit is under way, further transactions queue up; the next one takes all of them, each in a savepoint of its
own, so that they share one wait for the disk and none can spoil another.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from common.database.base import Database, Query, Row, Statement
from common.database.sqlite_sql import chunks, read
from common.database.sqlite_thread import BUSY_TIMEOUT_S, Worker, connect, error_of, is_busy, is_of_statement
from common.errors import ConditionFailed, Internal, OutcomeUnknown, Unavailable

T = TypeVar("T")

_UNIQUE = frozenset({sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_UNIQUE})
_SWITCH_INTERVAL_S = 0.000_5
_LARGEST_GROUP = 64
"""Transactions that share a commit at most, so that the event loop is not held up for long."""


class SqliteDatabase(Database):
    dialect = "sqlite"

    def __init__(self, *, path: str) -> None:
        """`path` may be a `file:` URI."""
        self._writer = _Writer(path=path)
        self._reader = Worker(name="sqlite-reader", path=path)

    async def start(self) -> None:
        # The default of 5 ms is what the commit's thread would wait, twice, on a busy event loop.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_S))
        self._writer.start()
        self._reader.start()

    async def stop(self) -> None:
        await self._writer.stop()
        await asyncio.to_thread(self._reader.stop)

    async def transact(self, statements: Sequence[Statement]) -> None:
        statements = [s for s in statements if s.rows]
        if statements:
            await self._writer.submit(lambda connection: _run(connection, statements))

    async def execute(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        rows: list[Row] = await self._writer.submit(lambda connection: _execute(connection, query, params))
        return rows

    async def fetch(self, query: Query, params: Sequence[Any] = ()) -> list[Row]:
        return (await self.fetch_many([(query, params)]))[0]

    async def fetch_many(self, reads: Sequence[tuple[Query, Sequence[Any]]]) -> list[list[Row]]:
        return await self._reader.submit_read(lambda connection: [read(connection, *one) for one in reads])


class _Job:
    """A transaction that somebody waits for."""

    __slots__ = ("answer", "result", "work")

    def __init__(self, work: Callable[[sqlite3.Connection], Any], answer: asyncio.Future[Any]) -> None:
        self.work = work
        self.answer = answer
        self.result: Any = None

    def succeed(self) -> None:
        if not self.answer.done():
            self.answer.set_result(self.result)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class _Writer:
    """The one connection that writes. It is used by the event loop's thread, or by the worker's while `_is_away`."""

    def __init__(self, *, path: str) -> None:
        self._worker = Worker(name="sqlite-commit")
        self._path = path
        self._is_open = False
        # All of these belong to the event loop's thread.
        self._connection: sqlite3.Connection | None = None
        self._queue: list[_Job] = []
        self._is_away = False
        self._rest = asyncio.Event()

    def start(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._worker.start()

    async def stop(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        while self._is_away or self._queue:
            self._rest.clear()
            await self._rest.wait()
        await asyncio.to_thread(self._worker.stop)
        self._close()

    def submit(self, work: Callable[[sqlite3.Connection], Any]) -> asyncio.Future[Any]:
        if not self._is_open:
            raise Unavailable("the database is closed")
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.append(_Job(work, answer))
        if not self._is_away:
            self._begin()
        return answer

    def _begin(self) -> None:
        """Open the next transaction: at once if nobody else writes, else on the worker, which can wait."""
        connection = self._connection
        if connection is None:
            self._away(lambda: _open_and_begin(self._path), self._opened)
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if is_busy(error):
                self._away(lambda: _patiently(connection, "BEGIN IMMEDIATE"), self._begun)
            else:
                self._fail_all(self._take(), error_of(error))
                self._go_on()
        else:
            self._run_jobs(connection)

    def _away(self, work: Callable[[], T], then: Callable[[asyncio.Future[T]], None]) -> None:
        self._is_away = True
        self._worker.submit(work).add_done_callback(then)

    def _opened(self, opening: asyncio.Future[sqlite3.Connection]) -> None:
        if opening.exception() is None:
            self._connection = opening.result()
        self._begun(opening)

    def _begun(self, done: asyncio.Future[Any]) -> None:
        self._is_away = False
        error = done.exception()
        if self._connection is None or error is not None:
            self._fail_all(self._take(), error_of(error) if isinstance(error, sqlite3.Error) else Internal(str(error)))
            self._go_on()
        else:
            self._run_jobs(self._connection)

    def _run_jobs(self, connection: sqlite3.Connection) -> None:
        jobs = self._take()
        try:
            done = _run_group(connection, jobs)
            if not done:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            # The transaction as a whole is lost: a full disk, a broken file.
            self._fail_all(jobs, error_of(error))
            done = []
        if done:
            self._away(lambda: _commit(connection), lambda commit: self._committed(commit, done))
        else:
            self._go_on()

    def _committed(self, commit: asyncio.Future[None], jobs: list[_Job]) -> None:
        self._is_away = False
        error = commit.exception()
        if error is None:
            for job in jobs:
                job.succeed()
        else:
            unknown = OutcomeUnknown(f"the database failed during COMMIT: {error}")
            unknown.__cause__ = error
            self._fail_all(jobs, unknown)
        self._go_on()

    def _go_on(self) -> None:
        if self._queue:
            # Not by recursion: each group gets a fresh stack, and the loop a turn.
            asyncio.get_running_loop().call_soon(self._again)
        else:
            self._rest.set()

    def _again(self) -> None:
        if self._queue and not self._is_away:
            self._begin()

    def _take(self) -> list[_Job]:
        jobs, self._queue = self._queue[:_LARGEST_GROUP], self._queue[_LARGEST_GROUP:]
        return jobs

    def _fail_all(self, jobs: list[_Job], error: Exception) -> None:
        self._close()
        for job in jobs:
            job.fail(error)

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _open_and_begin(path: str) -> sqlite3.Connection:
    # No waiting for locks by itself: what runs on the event loop must not block it.
    connection = connect(path, busy_timeout_s=BUSY_TIMEOUT_S)
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        _patiently(connection, "BEGIN IMMEDIATE")
    except BaseException:
        connection.close()
        raise
    return connection


def _patiently(connection: sqlite3.Connection, sql: str) -> None:
    """Do it, waiting for other connections' locks."""
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT_S * 1_000)}")
    try:
        connection.execute(sql)
    finally:
        connection.execute("PRAGMA busy_timeout = 0")


def _commit(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if not is_busy(error):
            raise
        _patiently(connection, "COMMIT")


def _run_group(connection: sqlite3.Connection, jobs: list[_Job]) -> list[_Job]:
    """Run the jobs; gives those that succeeded, the others have got their error and left nothing behind."""
    if len(jobs) == 1:
        return jobs if _run_job(connection, jobs[0]) else []
    done = []
    for job in jobs:
        connection.execute("SAVEPOINT job")
        if _run_job(connection, job):
            done.append(job)
        else:
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
    return done


def _run_job(connection: sqlite3.Connection, job: _Job) -> bool:
    try:
        job.result = job.work(connection)
    except sqlite3.Error:
        raise
    except Exception as error:  # noqa: BLE001  it belongs to this job alone
        job.fail(error)
        return False
    return True


def _run(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    for statement in statements:
        _do(connection, statement)


def _execute(connection: sqlite3.Connection, query: Query, params: Sequence[Any]) -> list[Row]:
    with _refusals(query.name):
        return read(connection, query, params)


def _do(connection: sqlite3.Connection, statement: Statement) -> None:
    query = statement.query
    # Not the cursor's rowcount: it is not kept for a statement that begins with WITH.
    before = connection.total_changes
    returned = 0
    with _refusals(query.name):
        for sql, params in chunks(query, statement.rows):
            returned += len(connection.execute(sql, params).fetchall())
    if statement.expect is not None and returned + connection.total_changes - before != statement.expect:
        raise statement.unmet()


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """Tell what one statement did wrong from faults of the database, which end the whole transaction."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.IntegrityError) and error.sqlite_errorcode in _UNIQUE:
            raise ConditionFailed(statement=name) from error
        if is_of_statement(error):
            raise Internal(f"the database refused {name!r}: {error}") from error
        raise
