"""SQLite's connections, and a thread that does what may wait for the disk or for another process's lock."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from common.errors import Internal, Unavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

BUSY_TIMEOUT_S = 10.0
_PREPARED_STATEMENTS = 1_024


class Worker:
    """A thread that does one piece of work after another and answers on the event loop.

    With a `path` it has a connection of its own, made when first needed and again after a fault.
    """

    def __init__(self, *, name: str, path: str = "") -> None:
        self._name = name
        self._path = path
        self._work: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        # Of the thread alone.
        self._connection: sqlite3.Connection | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Blocks until the work that was given is done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._work.put(None)
            thread.join()

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._thread is None:
            raise Unavailable("the database is closed")
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._work.put((work, answer))
        return answer

    def submit_read(self, work: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        return self.submit(lambda: self._with_connection(work))

    def _with_connection(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = connect(self._path, busy_timeout_s=BUSY_TIMEOUT_S)
            return work(self._connection)
        except sqlite3.Error as error:
            self._close()
            raise error_of(error) from error

    def _run(self) -> None:
        while (given := self._work.get()) is not None:
            work, answer = given
            result: Any = None
            error: Exception | None = None
            try:
                result = work()
            except Exception as raised:  # noqa: BLE001  whoever waits gets it
                error = raised
            try:
                answer.get_loop().call_soon_threadsafe(_answer, answer, result, error)
            except RuntimeError:
                log.debug("%s: the event loop ended before the answer", self._name)
        self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _answer(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(result)


def connect(path: str, *, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode, set up for durability: a commit is on the disk when it returns."""
    connection = sqlite3.connect(
        path,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_PREPARED_STATEMENTS,
        uri=path.startswith("file:"),
    )
    try:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -16000", "temp_store = MEMORY"):
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection holds a lock that ours needs."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_of_statement(error: sqlite3.Error) -> bool:
    """Whether the statement or its values are at fault, and the connection and its transaction are sound."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.DataError | sqlite3.InterfaceError):
        return True
    return _code(error) in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG)


def error_of(error: sqlite3.Error) -> Exception:
    """For the caller: whatever fails before COMMIT has written nothing."""
    if is_of_statement(error):
        return Internal(f"the database refused a statement: {error}")
    return Unavailable(f"the database can't be used: {error}")


def _code(error: sqlite3.Error) -> int:
    # The low byte; the others say more exactly what happened. Absent when the error is Python's own.
    return int(getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)) & 0xFF
