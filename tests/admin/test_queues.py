"""Pages of task queues: the row always, the live owner beside it when it answers, and the gap drawn from both."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from common.clock import RealClock
from common.errors import Unavailable
from matching.models import Task, TaskQueue
from matching.records import QueueKey
from tests.admin.live_side import SILENT, hosts, matching_told, queue_told
from tinytemporal_site.console.queues import gap

NOW = RealClock().now()
KEY = QueueKey(namespace="shop", task_queue="orders", kind="activity")
HOSTILE = QueueKey(namespace="shop", task_queue='"><script>alert(1)</script>/%2F', kind="workflow")
LIST = "/admin/queues/"


def page_of(key: QueueKey) -> str:
    return f"{LIST}{quote(key.physical_queue)}/"


def make_queue(key: QueueKey, *, tasks: int, range_id: int = 1, ack_level: int = 0) -> None:
    """A queue whose rows are those above `ack_level`."""
    name = key.physical_queue
    stored = tasks - ack_level
    TaskQueue.objects.create(
        physical_queue=name,
        namespace=key.namespace,
        task_queue=key.task_queue,
        kind=key.kind,
        partition=key.partition,
        version=key.version,
        range_id=range_id,
        ack_level=ack_level,
        last_task_id=tasks,
        updated_at=NOW,
        data={"owner": "somebody", "subqueues": {"3": {"stored": stored}} if stored else {}},
    )
    Task.objects.bulk_create(
        Task(
            physical_queue=name,
            task_id=task_id,
            priority=3,
            fairness_pass=0,
            created_at=NOW,
            data={"task": {"runId": f"run-{task_id}", "workflowId": "<b>w</b>", "scheduledEventId": 5}},
        )
        for task_id in range(ack_level + 1, tasks + 1)
    )


@pytest.fixture(autouse=True)
def queues(django_connection: Any) -> None:
    if not TaskQueue.objects.exists():
        make_queue(KEY, tasks=7, range_id=4, ack_level=2)
        make_queue(HOSTILE, tasks=1)


def texts(page: str) -> dict[str, str]:
    """What is in the elements with an id of ours."""
    return dict(re.findall(r'id="(c-[a-z-]+)">([^<]*)<', page))


def titles(page: str) -> list[str]:
    """What the cells of the picture say."""
    return re.findall(r"<title>(\d+: [^<]+)</title>", page)


def test_list_shows_rows_and_owners(reader: Client, django_connection: Any) -> None:
    queue = queue_told(KEY, now=NOW, waiting=[5, 6], read_level=7, ack_level=2, last_task_id=7)
    with hosts(matching={"here": matching_told(queue, now=NOW)}), CaptureQueriesContext(django_connection) as queries:
        page = reader.get(LIST).content.decode()
    assert len(queries) == 3
    for shown in ("orders", "here", "1.5", "2.5", "not loaded", "backlog and no poller"):
        assert shown in page
    assert escape(HOSTILE.task_queue) in page
    assert "<script>alert" not in page


def test_list_goes_on_page_by_page(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinytemporal_site.console.queues.views.PAGE", 1)
    first = reader.get(LIST)
    assert [line.key for line in first.context["lines"]] == [KEY]
    second = reader.get(LIST, {"after": first.context["following"]})
    assert [line.key for line in second.context["lines"]] == [HOSTILE]
    assert not second.context["following"]


@pytest.mark.parametrize(
    ("term", "found"), [("shop/act", [KEY]), ("shop/", [KEY, HOSTILE]), ("x", []), ("%", []), ("\0", [KEY, HOSTILE])]
)
def test_list_is_searched_by_the_beginning(reader: Client, term: str, found: list[QueueKey]) -> None:
    assert [line.key for line in reader.get(LIST, {"q": term}).context["lines"]] == found


def test_page_shows_the_row_beside_the_live_owner(reader: Client, django_connection: Any) -> None:
    queue = queue_told(
        KEY,
        now=NOW,
        dispatched=[3],
        acknowledged=[4],
        waiting=[5, 6],
        ack_level=2,
        read_level=6,
        last_task_id=7,
        range_id=4,
    )
    with hosts(matching={"here": matching_told(queue, now=NOW)}), CaptureQueriesContext(django_connection) as queries:
        answer = reader.get(page_of(KEY))
    page = answer.content.decode()
    assert len(queries) == 5
    shown = texts(page)
    assert [shown[name] for name in ("c-range-id", "c-ack-level", "c-last-task-id", "c-stored")] == ["4", "2", "7", "5"]
    assert shown["c-live-ack-level"] == "2"
    assert titles(page) == [
        f"{task_id}: {gap.WORDS[state]}"
        for task_id, state in [
            (1, gap.ACKED),
            (2, gap.ACKED),
            (3, gap.DISPATCHED),
            (4, gap.RETAINED),
            (5, gap.WAITING),
            (6, gap.WAITING),
            (7, gap.UNREAD),
        ]
    ]
    assert escape("<worker 0>") in page
    assert escape("<b>w</b>") in page
    assert "<b>w</b>" not in page
    assert "changing hands" not in page


@pytest.mark.parametrize(
    "told", [Unavailable("refused by <i>"), SILENT, None], ids=["refuses", "is silent", "is unknown"]
)
def test_rows_are_shown_when_the_owner_is_away(reader: Client, monkeypatch: pytest.MonkeyPatch, told: Any) -> None:
    monkeypatch.setattr("tinytemporal_site.console.live.WITHIN_S", 0.1)
    with hosts(matching={} if told is None else {"there": told}):
        page = reader.get(page_of(KEY)).content.decode()
    shown = texts(page)
    assert [shown[name] for name in ("c-range-id", "c-ack-level", "c-last-task-id")] == ["4", "2", "7"]
    assert "The live owner is away" in page
    assert "<i>" not in page
    assert titles(page)[:3] == [
        f"1: {gap.WORDS[gap.ACKED]}",
        f"2: {gap.WORDS[gap.ACKED]}",
        f"3: {gap.WORDS[gap.STORED]}",
    ]
    assert "run-3" in page


def test_nobody_uses_it(reader: Client) -> None:
    with hosts(matching={"here": matching_told(now=NOW)}):
        page = reader.get(page_of(KEY)).content.decode()
    assert "Not loaded" in page
    assert "away" not in page.split("The live owner")[1]


def test_an_owner_that_lost_the_range_is_told_of(reader: Client) -> None:
    queue = queue_told(KEY, now=NOW, range_id=3)
    with hosts(matching={"here": matching_told(queue, now=NOW)}):
        assert "changing hands" in reader.get(page_of(KEY)).content.decode()


def test_the_plain_page_of_the_row_needs_no_owner(reader: Client) -> None:
    page = reader.get(f"/admin/matching/taskqueue/{quote(KEY.physical_queue)}/change/").content.decode()
    assert "Range id" in page
    assert "Ack level" in page


def test_a_hostile_name_does_nothing(reader: Client) -> None:
    page = reader.get(page_of(HOSTILE)).content.decode()
    assert escape(HOSTILE.task_queue) in page
    assert "<script>alert" not in page


def test_task_rows_go_on_page_by_page(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinytemporal_site.console.queues.views.PAGE", 3)
    first = reader.get(page_of(KEY))
    assert [row.task_id for row, _ in first.context["tasks"]] == [3, 4, 5]
    second = reader.get(page_of(KEY), {"after": str(first.context["following"])})
    assert [row.task_id for row, _ in second.context["tasks"]] == [6, 7]


@pytest.mark.parametrize("name", ["nothing", "a/b/c/d/e", quote("shop/activity/0//other"), "%00"])
def test_a_queue_that_is_not_there(reader: Client, name: str) -> None:
    assert reader.get(f"{LIST}{name}/").status_code == 404


@pytest.mark.parametrize("path", [LIST, page_of(KEY), "/admin/hosts/"])
def test_pages_are_for_those_who_may(django_connection: Any, path: str) -> None:
    client = Client()
    assert client.get(path).headers["Location"].startswith("/admin/login/")
    user, _ = User.objects.get_or_create(username="newcomer", is_staff=True)
    client.force_login(user)
    assert client.get(path).status_code == 403
    user.user_permissions.add(*Permission.objects.filter(codename__in=["view_taskqueue", "view_shard"]))
    assert client.get(path).status_code == 200
    user.user_permissions.clear()


# --- the picture


def test_ids_that_are_not_named_follow_from_the_levels() -> None:
    """Beyond what the owner lists: below its priority's level acknowledged, above it unread when there is a row."""
    queue = queue_told(KEY, now=NOW, waiting=[12], ack_level=10, read_level=12, last_task_id=15)
    found = gap.states(ack_level=0, last_task_id=15, stored=dict.fromkeys(range(5, 16), 3), live=queue.partitions[0])
    by_id = {one.task_id: one.state for one in found}
    assert by_id[10] == gap.ACKED
    assert by_id[12] == gap.WAITING
    assert [by_id[n] for n in (13, 14, 15)] == [gap.UNREAD] * 3


def test_a_long_backlog_is_cut_off() -> None:
    found = gap.states(ack_level=5_000, last_task_id=99_999, stored={}, live=None)
    assert len(found) == gap.MOST_CELLS
    assert found[0].task_id == 5_000 - gap.BELOW + 1


def test_a_queue_that_never_stored_has_no_picture() -> None:
    assert gap.states(ack_level=0, last_task_id=0, stored={}, live=None) == []
    assert gap.draw([]) == ""


def test_spans_say_the_same() -> None:
    found = [gap.State(1, gap.ACKED), gap.State(2, gap.ACKED), gap.State(3, gap.WAITING)]
    assert [(span.ids, span.state) for span in gap.spans(found)] == [("1–2", gap.ACKED), ("3", gap.WAITING)]
