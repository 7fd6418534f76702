"""`snapshot` and `restore`: every record there and back on both databases, and no file but a whole one accepted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from common.errors import PersistenceError
from tests.databases import PROJECT, DatabaseFactory, manage, server_environment
from tests.e2e import workflows
from tests.e2e.conftest import make_worker
from tests.server_process import LiveServer
from tinytemporal_site.snapshots.form import FORMAT, TABLES, check, table_name

Change = Callable[[dict[str, Any]], None]
SHARDS = 4


async def fill(address: str) -> None:
    """A run that ended, one that waits, and one whose first task nobody polls for."""
    client = await Client.connect(address)
    async with make_worker(client, "polled"):
        await client.execute_workflow(workflows.Greet.run, "Ada", id="ended", task_queue="polled", memo={"n": 1})
        waiting = await client.start_workflow(workflows.Conversation.run, id="waiting", task_queue="polled")
        await waiting.signal(workflows.Conversation.say, "one")
        await waiting.query(workflows.Conversation.words)
    await client.start_workflow(workflows.Greet.run, "Bo", id="queued", task_queue="unpolled")


@pytest.fixture
def restored_url(database_kind: str, database_factory: DatabaseFactory) -> Iterator[str]:
    url = database_factory.create(database_kind)
    yield url
    database_factory.drop(url)


async def test_everything_comes_back(database_url: str, restored_url: str, tmp_path: Path) -> None:
    server = LiveServer(database_url=database_url, log=tmp_path / "log")
    server.start()
    try:
        await fill(server.address)
        server.stop()
    finally:
        server.kill()
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    manage("snapshot", str(first), database_url=database_url)
    manage("restore", str(first), database_url=restored_url)
    manage("snapshot", str(second), database_url=restored_url)
    before, after = json.loads(first.read_bytes()), json.loads(second.read_bytes())
    assert before.pop("now") < after.pop("now")
    assert before == after
    assert before["format"] == FORMAT
    assert [len(before["tables"][name]) for name in ("executions", "current_runs", "tasks")] == [3, 3, 1]
    manage("verify", database_url=restored_url)
    await goes_on(LiveServer(database_url=restored_url, log=tmp_path / "log"))


async def goes_on(server: LiveServer) -> None:
    server.start()
    try:
        client = await Client.connect(server.address)
        async with make_worker(client, "polled"), make_worker(client, "unpolled"):
            assert await client.get_workflow_handle("queued").result() == "Hello, Bo!"
            waiting = client.get_workflow_handle_for(workflows.Conversation.run, "waiting")
            await waiting.signal(workflows.Conversation.end)
            assert await waiting.result() == ["one"]
        server.stop()
    finally:
        server.kill()


async def test_a_filled_database_is_only_replaced_when_told_to(database_url: str, tmp_path: Path) -> None:
    server = LiveServer(database_url=database_url, log=tmp_path / "log")
    server.start()
    try:
        await fill(server.address)
        server.stop()
    finally:
        server.kill()
    file = tmp_path / "snapshot.json"
    manage("snapshot", str(file), database_url=database_url)
    assert "use an empty one, or --replace. Nothing was written." in refusal("restore", str(file), url=database_url)
    assert "executions               3" in manage("restore", str(file), "--replace", database_url=database_url)


def refusal(*arguments: str, url: str) -> str:
    done = subprocess.run(
        [sys.executable, PROJECT / "manage.py", *arguments],
        env=server_environment(database_url=url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    return done.stderr


# --- what is refused


def small() -> dict[str, Any]:
    """A snapshot with one row in some tables."""
    when = "2026-01-02T03:04:05Z"
    tables: dict[str, list[Any]] = {table_name(model): [] for model in TABLES}
    tables["shards"] = [{"shard_id": 1, "range_id": 7, "owner": "h", "updated_at": when, "data": {}}]
    tables["current_runs"] = [
        {
            "shard_id": 1,
            "namespace": "default",
            "workflow_id": "w",
            "run_id": "r",
            "status": "Running",
            "data": {"namespace": "default", "workflowId": "w", "runId": "r", "status": 1, "startedAt": when},
        }
    ]
    tables["history_events"] = [
        {
            "shard_id": 1,
            "run_id": "r",
            "event_id": 1,
            "event_type": "TimerStarted",
            "event_time": when,
            "data": {"eventId": "1", "timerStartedEventAttributes": {"timerId": "t"}},
        }
    ]
    tables["pending_items"] = [
        {
            "shard_id": 1,
            "run_id": "r",
            "kind": "requestId",
            "key": "x",
            "data": {"requestId": "x", "eventType": 1, "eventId": 1},
        }
    ]
    return {"format": FORMAT, "now": when, "shards": SHARDS, "tables": tables}


def changing(*path: Any, to: Any) -> Change:
    def change(snapshot: dict[str, Any]) -> None:
        *there, last = path
        place: Any = snapshot
        for step in there:
            place = place[step]
        place[last] = to

    return change


def removing(*path: Any) -> Change:
    def change(snapshot: dict[str, Any]) -> None:
        *there, last = path
        place: Any = snapshot
        for step in there:
            place = place[step]
        del place[last]

    return change


EVENT = ("tables", "history_events", 0)
CURRENT = ("tables", "current_runs", 0)
REFUSED: list[tuple[Change, str]] = [
    (changing("format", to="something else"), "$.format"),
    (removing("format"), "$"),
    (removing("now"), "$"),
    (changing("shards", to=5), "$.shards"),
    (removing("tables", "tasks"), "$.tables"),
    (changing("tables", "more", to=[]), "$.tables"),
    (changing("tables", "shards", 0, "range_id", to="seven"), "$.tables.shards[0].range_id"),
    (changing("tables", "shards", 0, "updated_at", to="yesterday"), "$.tables.shards[0].updated_at"),
    (removing("tables", "shards", 0, "owner"), "$.tables.shards[0]"),
    (changing("tables", "shards", to=small()["tables"]["shards"] * 2), "$.tables.shards[1]"),
    (changing(*CURRENT, "data", "runId", to=5), "$.tables.current_runs[0].data.runId"),
    (changing(*CURRENT, "run_id", to="another"), "$.tables.current_runs[0].run_id"),
    (changing(*CURRENT, "data", "surprise", to=1), "$.tables.current_runs[0].data"),
    (changing(*EVENT, "data", "eventId", to="one"), "$.tables.history_events[0].data"),
    (changing(*EVENT, "event_id", to=2), "$.tables.history_events[0].event_id"),
    (changing("tables", "pending_items", 0, "kind", to="surprise"), "$.tables.pending_items[0].kind"),
    (changing("tables", "pending_items", 0, "data", "eventId", to="x"), "$.tables.pending_items[0].data.eventId"),
    (
        changing("tables", "tasks", to=[{"physical_queue": "q", "data": {"task": {"deliveryId": 1}}}]),
        "$.tables.tasks[0].data.task.deliveryId",
    ),
    (changing("taskQueues", to={"q": [{"deliveryId": 1}]}), "$.taskQueues.q[0].deliveryId"),
]


def test_the_small_snapshot_is_one() -> None:
    check(json.dumps(small()).encode(), shards=SHARDS)


@pytest.mark.parametrize(("change", "path"), REFUSED, ids=[f"{i}-{path}" for i, (_, path) in enumerate(REFUSED)])
def test_a_bad_value_is_refused_by_its_path(change: Change, path: str) -> None:
    snapshot = small()
    change(snapshot)
    with pytest.raises(PersistenceError) as caught:
        check(json.dumps(snapshot).encode(), shards=SHARDS)
    assert caught.value.key == path


@pytest.mark.parametrize("data", [b"", b"not JSON", b"[]", b"{}", b"\xff"])
def test_a_foreign_file_is_refused(data: bytes) -> None:
    with pytest.raises(PersistenceError) as caught:
        check(data, shards=SHARDS)
    assert caught.value.key == "$"


def test_nothing_of_a_refused_file_is_written(database_factory: DatabaseFactory, tmp_path: Path) -> None:
    url = database_factory.create("sqlite")
    bad = small()
    bad["tables"]["pending_items"][0]["data"]["eventId"] = "x"
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(bad))
    printed = refusal("restore", str(file), url=url)
    assert "PersistenceError: snapshot[$.tables.pending_items[0].data.eventId]" in printed
    manage("snapshot", str(tmp_path / "now.json"), database_url=url)
    tables = json.loads((tmp_path / "now.json").read_bytes())["tables"]
    assert not any(rows for rows in tables.values())
