"""What the database seam says when a database refuses, breaks or goes away, and that it goes on by itself afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from common.database import Database, Query, RowsQuery, Statement, insert, sqlite
from common.database.opening import database_of
from common.errors import ConditionFailed, Internal, InvalidArgument, OutcomeUnknown, Unavailable
from tests.contract.samples import NOW
from tests.databases import DatabaseFactory, django_entry
from tests.ports import free_port
from tests.postgres import Cluster

INSERT = insert(
    "insert",
    "shards",
    {"shard_id": "int", "range_id": "int", "owner": "text", "updated_at": "time", "data": "json"},
)
SAME_RANGE = RowsQuery(
    "same_range",
    "SELECT 1 FROM shards WHERE (shard_id, range_id) IN ({rows})",
    columns={"shard_id": "int", "range_id": "int"},
)
COUNT = Query("count", "SELECT count(*) FROM shards")
READ = Query("read", "SELECT shard_id, range_id, owner, updated_at, data FROM shards ORDER BY shard_id", times=(3,))


def row(shard_id: int, *, owner: str = "me") -> tuple[Any, ...]:
    return (shard_id, 1, owner, NOW, b'{"a":1}')


def put(*shards: int) -> list[Statement]:
    return [Statement(INSERT, [row(shard) for shard in shards])]


async def one_turn() -> None:
    """Let the event loop do all that is due now, input and output included."""
    turned = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, turned.set)
    await turned.wait()


async def count(database: Database) -> int:
    return int((await database.fetch(COUNT))[0][0])


# --- Both databases -------------------------------------------------------------------------------------------------


async def test_values_come_back_as_they_went(database: Database) -> None:
    await database.transact(put(1))
    [(shard_id, range_id, owner, updated_at, data)] = await database.fetch(READ)
    assert (shard_id, range_id, owner, updated_at) == (1, 1, "me", NOW)
    assert (data if isinstance(data, str) else data.decode()).replace(" ", "") == '{"a":1}'


async def test_a_database_that_is_not_open_is_unavailable(database: Database) -> None:
    await database.stop()
    await database.stop()
    with pytest.raises(Unavailable):
        await database.transact(put(1))
    with pytest.raises(Unavailable):
        await database.fetch(COUNT)
    await database.start()
    await database.transact(put(1))
    assert await count(database) == 1


async def test_an_unmet_expectation_rolls_back_what_came_before(database: Database) -> None:
    class Mine(Exception):
        pass

    expectation = Statement(SAME_RANGE, [(1, 1), (2, 7)], expect=2, error=Mine)
    with pytest.raises(Mine):
        await database.transact([*put(1, 2), expectation, *put(3)])
    assert await count(database) == 0
    await database.transact([*put(1, 2), Statement(SAME_RANGE, [(1, 1), (2, 1)], expect=2), *put(3)])
    assert await count(database) == 3


async def test_a_transaction_of_nothing(database: Database) -> None:
    await database.transact([])
    await database.transact([Statement(INSERT, []), Statement(SAME_RANGE, [], expect=0)])


async def test_many_at_once_do_not_disturb_each_other(database: Database) -> None:
    """Every third fails on its own; the others are there."""
    await database.transact(put(0))
    transactions = [put(n) if n % 3 else put(n, 0) for n in range(1, 61)]
    outcomes = await asyncio.gather(*(database.transact(t) for t in transactions), return_exceptions=True)

    assert [isinstance(o, ConditionFailed) for o in outcomes] == [n % 3 == 0 for n in range(1, 61)]
    assert [r[0] for r in await database.fetch(READ)] == [n for n in range(61) if n % 3 or n == 0]


async def test_a_cancelled_caller_does_not_cancel_its_transaction(database: Database) -> None:
    await database.transact(put(1))
    caller = asyncio.create_task(database.transact(put(2)))
    await one_turn()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await database.stop()
    await database.start()
    assert await count(database) == 2
    await database.transact(put(3))


async def test_wrong_sql_is_an_internal_error_and_spoils_nothing(database: Database) -> None:
    wrong = insert("wrong", "no_such_table", {"a": "int"})
    with pytest.raises(Internal):
        await database.transact([*put(1), Statement(wrong, [(1,)])])
    with pytest.raises(Internal):
        await database.fetch(Query("wrong_read", "SELECT nothing FROM shards"))
    await database.transact(put(2))
    assert await count(database) == 1


async def test_several_reads_in_one_round_trip(database: Database) -> None:
    await database.transact(put(1, 2))
    one = Query("one", "SELECT owner FROM shards WHERE shard_id = ?")
    assert await database.fetch_many([(COUNT, ()), (one, (2,)), (one, (9,))]) == [[(2,)], [("me",)], []]


async def test_a_big_transaction(database: Database) -> None:
    """More than the sockets' buffers hold at once, both ways."""
    big = b'{"text":"' + b"x" * 4_000_000 + b'"}'
    await database.transact([Statement(INSERT, [(n, 1, "me", NOW, big) for n in range(8)])])
    rows = await database.fetch(READ)
    assert [len(r[4]) >= len(big) for r in rows] == [True] * 8


# --- SQLite ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def sqlite_url(database_factory: DatabaseFactory) -> Iterator[str]:
    url = database_factory.create("sqlite")
    yield url
    database_factory.drop(url)


@pytest.fixture
async def sqlite_database(sqlite_url: str) -> AsyncIterator[Database]:
    database = database_of(django_entry(sqlite_url))
    await database.start()
    yield database
    await database.stop()


async def test_sqlite_waits_for_another_writer(sqlite_url: str, sqlite_database: Database) -> None:
    await sqlite_database.transact(put(1))
    other = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = asyncio.gather(sqlite_database.transact(put(2)), sqlite_database.transact(put(3)))
    assert await count(sqlite_database) == 1
    other.execute("COMMIT")
    other.close()
    await waiting
    assert await count(sqlite_database) == 3


class _BreaksAtCommit:
    """A connection whose COMMIT reports a fault: after it was done, or instead of it."""

    def __init__(self, connection: sqlite3.Connection, *, really: bool) -> None:
        self._connection = connection
        self._really = really

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *params: Any) -> Any:
        if sql != "COMMIT":
            return self._connection.execute(sql, *params)
        if self._really:
            self._connection.execute(sql)
        raise sqlite3.OperationalError("disk I/O error")


@pytest.mark.parametrize("really", [True, False])
async def test_sqlite_fault_at_commit_is_unknown_and_the_next_transaction_works(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, really: bool
) -> None:
    await sqlite_database.transact(put(1))
    # A new connection, which breaks.
    await sqlite_database.stop()
    await sqlite_database.start()
    connect = sqlite.connect
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "connect", lambda *a, **k: _BreaksAtCommit(connect(*a, **k), really=really))
        with pytest.raises(OutcomeUnknown):
            await sqlite_database.transact(put(2))
    await sqlite_database.transact(put(3))
    assert [r[0] for r in await sqlite_database.fetch(READ)] == ([1, 2, 3] if really else [1, 3])


async def test_sqlite_file_that_cannot_be_opened_is_unavailable(tmp_path: Any) -> None:
    database = database_of(django_entry(f"sqlite:///{tmp_path}/x.sqlite3") | {"NAME": str(tmp_path)})
    await database.start()
    with pytest.raises(Unavailable):
        await database.transact(put(1))
    with pytest.raises(Unavailable):
        await database.fetch(COUNT)
    await database.stop()


async def test_sqlite_is_durable_in_the_form_that_django_reads(sqlite_database: Database, sqlite_url: str) -> None:
    await sqlite_database.transact(put(1))
    with contextlib.closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        [(text,)] = connection.execute("SELECT updated_at FROM shards").fetchall()
        assert text == "2026-03-04 05:06:07.000089"
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]


# --- PostgreSQL -----------------------------------------------------------------------------------------------------


@pytest.fixture
def postgres_url(database_factory: DatabaseFactory) -> Iterator[str]:
    url = database_factory.create("postgresql")
    yield url
    database_factory.drop(url)


@pytest.fixture
async def postgres_database(postgres_url: str) -> AsyncIterator[Database]:
    database = database_of(django_entry(postgres_url))
    await database.start()
    yield database
    await database.stop()


@pytest.fixture
def administrator(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as session:
        yield session


def end_other_sessions(administrator: psycopg.Connection[Any]) -> None:
    administrator.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


async def test_postgres_that_is_not_there_is_unavailable() -> None:
    database = database_of(django_entry(f"postgres://nobody@127.0.0.1:{free_port()}/none"))
    await database.start()
    with pytest.raises(Unavailable):
        await database.transact(put(1))
    outcomes = await asyncio.gather(*(database.fetch(COUNT) for _ in range(20)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 20
    await database.stop()


async def test_postgres_sessions_that_were_ended_while_idle_are_replaced(
    postgres_database: Database, administrator: psycopg.Connection[Any]
) -> None:
    await postgres_database.transact(put(1))
    assert await count(postgres_database) == 1
    end_other_sessions(administrator)
    # One turn of the event loop, which sees the farewells before anything is sent.
    await one_turn()
    await postgres_database.transact(put(2))
    assert await count(postgres_database) == 2


async def test_postgres_session_ended_within_a_transaction_is_unknown(
    postgres_database: Database, administrator: psycopg.Connection[Any]
) -> None:
    with administrator.transaction():
        administrator.execute("LOCK TABLE shards IN EXCLUSIVE MODE")
        waiting = asyncio.create_task(postgres_database.transact(put(1)))
        await _until(lambda: _waits_for_lock(administrator))
        end_other_sessions(administrator)
        with pytest.raises(OutcomeUnknown):
            await waiting
    await postgres_database.transact(put(2))
    assert [r[0] for r in await postgres_database.fetch(READ)] == [2]


async def test_postgres_restarts_and_the_database_goes_on(postgres_cluster: Cluster) -> None:
    # In the cluster itself: TEST_DATABASE_URL may name another server, which is not ours to stop.
    url = postgres_cluster.url
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(
            "CREATE TABLE shards (shard_id int PRIMARY KEY, range_id bigint, owner text, updated_at timestamptz, data jsonb)"
        )
    database = database_of(django_entry(url))
    await database.start()
    try:
        await database.transact(put(1))
        await asyncio.to_thread(postgres_cluster.stop)
        with pytest.raises(Unavailable):
            await database.transact(put(2))
        with pytest.raises(Unavailable):
            await database.fetch(COUNT)
        await asyncio.to_thread(postgres_cluster.start)
        await database.transact(put(3))
        assert [r[0] for r in await database.fetch(READ)] == [1, 3]
    finally:
        await database.stop()
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("DROP TABLE shards")


async def test_postgres_refuses_zero_in_a_key(postgres_database: Database) -> None:
    with pytest.raises(InvalidArgument):
        await postgres_database.transact([Statement(INSERT, [row(1, owner="a\x00b")])])
    await postgres_database.transact(put(1))


async def test_postgres_behind_a_pooler_prepares_nothing(
    postgres_url: str, administrator: psycopg.Connection[Any]
) -> None:
    database = database_of(django_entry(postgres_url), pooled=True)
    await database.start()
    await database.transact(put(1))
    with pytest.raises(ConditionFailed):
        await database.transact([*put(2), Statement(SAME_RANGE, [(1, 5)], expect=1)])
    assert await count(database) == 1
    await database.stop()


async def test_a_commit_whose_answer_is_lost_is_unknown_and_durable(
    postgres_url: str, postgres_database: Database
) -> None:
    async with _Proxy(postgres_url) as proxy:
        database = database_of(django_entry(proxy.url))
        await database.start()
        await database.transact(put(1))
        proxy.swallow_answers()
        lost = asyncio.create_task(database.transact(put(2)))
        while await count(postgres_database) < 2:
            pass
        proxy.cut()
        with pytest.raises(OutcomeUnknown):
            await lost
        await database.transact(put(3))
        await database.stop()
    assert await count(postgres_database) == 3


async def _until(condition: Callable[[], bool]) -> None:
    while not await asyncio.to_thread(condition):
        pass


def _waits_for_lock(administrator: psycopg.Connection[Any]) -> bool:
    found = administrator.execute(
        "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'shards'::regclass"
    ).fetchall()
    return bool(found)


class _Proxy:
    """Forwards to a PostgreSQL server, until told to keep its answers back or to cut the connections."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._port = free_port()
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._swallows = False
        account = f"{self._target.username}@" if self._target.username else ""
        self.url = urlunsplit(self._target._replace(netloc=f"{account}127.0.0.1:{self._port}"))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks)

    def swallow_answers(self) -> None:
        self._swallows = True

    def cut(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()
        self._swallows = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers += [writer, back]
        self._tasks += [
            asyncio.create_task(self._pump(reader, back, answers=False)),
            asyncio.create_task(self._pump(there, writer, answers=True)),
        ]

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                if not (answers and self._swallows):
                    sink.write(data)
        sink.close()
