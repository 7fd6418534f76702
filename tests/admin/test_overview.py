"""The first page: what needs attention is found, counted and linked; nothing is read but what an index serves."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from common.clock import RealClock
from common.errors import Unavailable
from common.ids import uuid7
from history.models import Execution, Namespace, Shard, TimerTask, TransferTask, VisibilityTask
from matching.models import TaskQueue
from matching.records import QueueKey
from tests.admin.live_side import history_told, hosts, matching_told, queue_told
from tests.admin.test_queues import make_queue
from tinytemporal_site.console import store
from tinytemporal_site.console.overview import plot
from visibility.models import Visibility

CLOCK = RealClock()
NOW = CLOCK.now()
INDEX = "/admin/"
SHARDS = settings.NUM_HISTORY_SHARDS
WORKFLOW = "<script>alert('id')</script>"
QUERIES = 20
"""Of the page, whatever the tables hold; the namespaces, shards and queues are each asked for at once."""
IDLE = QueueKey(namespace="shop", task_queue="<idle>", kind="activity")
BUSY = QueueKey(namespace="shop", task_queue="busy", kind="activity")
DONE = QueueKey(namespace="shop", task_queue="done", kind="activity")

FAILING = uuid7(NOW - timedelta(minutes=3))
RETRYING = uuid7(NOW - timedelta(minutes=4))


@pytest.fixture(autouse=True)
def rows(django_connection: Any) -> None:
    """A cluster in which everything that the page looks for is the matter."""
    if Namespace.objects.exists():
        return
    for name in ("shop", "other"):
        Namespace.objects.create(
            name=name, namespace_id=name, state="Registered", retention=1, notification_version=1, data={}
        )
    for shard_id in range(1, SHARDS + 1):
        Shard.objects.create(shard_id=shard_id, range_id=1, owner="old", updated_at=NOW, data={})
    make_run(FAILING, status="Running", taskFailures=9, lastTaskFailureCause="WORKFLOW_TASK_FAILED_CAUSE_BAD_BINARY")
    make_run(uuid7(NOW - timedelta(minutes=3)), status="Completed", problem=True)
    for attempt in (9, 10, 31):
        timer("activityRetry", attempt, due_at=NOW + timedelta(hours=1), attempt=attempt)
    timer("userTimer", 40, due_at=NOW - timedelta(minutes=10), attempt=99)
    TransferTask.objects.create(shard_id=2, task_id=1, task_queue="q", available_at=NOW - timedelta(days=2), data={})
    VisibilityTask.objects.create(shard_id=1, task_id=1, run_id=FAILING, data={})
    make_queue(IDLE, tasks=4)
    make_queue(BUSY, tasks=2)
    make_queue(DONE, tasks=0)


def make_run(run_id: str, *, status: str, problem: bool = False, **data: Any) -> None:
    Execution.objects.create(
        shard_id=1,
        run_id=run_id,
        namespace="shop",
        workflow_id=WORKFLOW,
        workflow_type="T",
        task_queue="q",
        status=status,
        next_event_id=3,
        started_at=NOW - timedelta(minutes=3),
        closed_at=None if status == "Running" else NOW - timedelta(minutes=1),
        data=data,
    )
    Visibility.objects.create(
        run_id=run_id,
        namespace="shop",
        task_id=1,
        workflow_id=WORKFLOW,
        workflow_type="T",
        status=status,
        start_time=NOW - timedelta(minutes=3),
        execution_time=NOW - timedelta(minutes=3),
        close_time=None if status == "Running" else NOW - timedelta(minutes=1),
        task_queue="q",
        root_workflow_id=WORKFLOW,
        root_run_id=run_id,
        search_attributes={store.PROBLEM: ["category=WorkflowTaskFailed", "cause=x"]} if problem or data else None,
    )


def timer(kind: str, task_id: int, *, due_at: Any, attempt: int) -> None:
    data = {"kind": kind, "attempt": attempt, "namespace": "shop", "workflowId": f"<w{attempt}>"}
    TimerTask.objects.create(shard_id=3, task_id=task_id, run_id=RETRYING, command_sequence=5, due_at=due_at, data=data)


def all_told() -> dict[str, Any]:
    now = CLOCK.now()  # not when the tests were collected: some of them run long after that
    busy = queue_told(BUSY, now=now, polls=1, waiting=[1, 2])
    lag = now - timedelta(minutes=7)
    return {
        "history": {"here": history_told(*range(1, SHARDS), now=now, lag_since=lag)},
        "matching": {"here": matching_told(busy, now=now)},
    }


def items(reader: Client, **told: Any) -> dict[str, Any]:
    with hosts(**told):
        answer = reader.get(INDEX)
    return {item.label: item for item in answer.context["attention"]}


def found(told: dict[str, Any], words: str) -> Any:
    [item] = [item for label, item in told.items() if words in label]
    return item


def test_everything_that_is_the_matter_is_found(reader: Client) -> None:
    told = items(reader, **all_told())
    numbers = {label: (item.number, item.level) for label, item in told.items()}
    assert numbers == {
        "executions whose workflow task keeps failing": ("1", "bad"),
        "activities beyond 9 attempts": ("2", "warn"),
        "task queues with a backlog and no poller": ("1", "bad"),
        "shards without a live owner": ("1", "bad"),
        "transfer tasks undone": ("1", "bad"),
        "timer tasks past their time": ("1", "bad"),
        "lag of the lists behind the truth": (numbers["lag of the lists behind the truth"][0], "bad"),
    }
    assert found(told, "lag of").number.startswith("7 min")
    [failing] = found(told, "keeps failing").worst
    assert (failing.text, failing.note) == (WORKFLOW, "9 failures, bad binary")
    assert FAILING in failing.url
    assert [one.note.partition(" of ")[0] for one in found(told, "attempts").worst] == ["attempt 31", "attempt 10"]
    [queue] = found(told, "no poller").worst
    assert (queue.text, queue.note) == ("<idle>", "activity, 4 waiting")
    assert [one.text for one in found(told, "live owner").worst] == [f"shard {SHARDS}"]
    [late] = found(told, "past their time").worst
    assert "userTimer" in late.note


def test_links_of_the_page_lead_somewhere(reader: Client) -> None:
    with hosts(**all_told()):
        page = reader.get(INDEX).content.decode()
        attention = page.split('class="c-cards c-attention"')[1].split("</section>")[0]
        links = [link.replace("&amp;", "&").replace("&#x27;", "'") for link in re.findall(r'href="([^"]+)"', attention)]
        assert len(links) > 10
        for link in links:
            # The run that retries has a timer task and nothing else.
            assert reader.get(link).status_code == (404 if RETRYING in link else 200), link


def test_the_number_of_queries_is_fixed(reader: Client, django_connection: Any) -> None:
    with hosts(**all_told()), CaptureQueriesContext(django_connection) as queries:
        reader.get(INDEX)
    assert len(queries) == QUERIES, [query["sql"][:100] for query in queries.captured_queries]


def test_every_query_is_served_by_an_index(reader: Client, django_connection: Any) -> None:
    with hosts(**all_told()), CaptureQueriesContext(django_connection) as queries:
        reader.get(INDEX)
    is_postgresql = django_connection.vendor == "postgresql"
    ours = r"executions|visibility|visibility_items|history_events|pending_items|tasks|timer_tasks"
    # Small, or read no further than the limit.
    scan = rf"(Seq Scan on|^SCAN) ({ours})\b(?!.*USING)"
    with django_connection.cursor() as cursor:
        if is_postgresql:
            cursor.execute("SET enable_seqscan = off")
        for query in queries.captured_queries:
            if query["sql"].startswith(("SELECT", "WITH")):
                cursor.execute(f"EXPLAIN {'' if is_postgresql else 'QUERY PLAN '}{query['sql']}", None)
                plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
                assert not re.search(scan, plan, re.MULTILINE), f"{query['sql']}\n{plan}"
        if is_postgresql:
            cursor.execute("RESET enable_seqscan")


def test_hostile_texts_do_nothing(reader: Client) -> None:
    with hosts(**all_told()):
        page = reader.get(INDEX).content.decode()
    assert escape(WORKFLOW) in page
    assert escape("<idle>") in page
    for hostile in (WORKFLOW, "<idle>", "<w31>"):
        assert hostile not in page


def test_what_only_live_processes_know_is_left_open_without_them(reader: Client) -> None:
    answer = reader.get(INDEX)
    told = {item.label: item for item in answer.context["attention"]}
    assert {label: item.number for label, item in told.items() if item.number == "?"}.keys() == {
        "task queues with a backlog and no poller",
        "shards without a live owner",
        "lag of the lists behind the truth",
    }
    assert found(told, "keeps failing").number == "1"
    assert "This process runs no services" in answer.content.decode()


def test_a_host_that_is_away_is_named(reader: Client) -> None:
    told = all_told()
    told["matching"]["there"] = Unavailable("refused <b>")
    with hosts(**told):
        page = reader.get(INDEX).content.decode()
    assert escape("there: refused <b>") in page


def test_a_quiet_cluster_needs_nobody(reader: Client) -> None:
    told = {
        "history": {"here": history_told(*range(1, SHARDS + 1), now=NOW)},
        "matching": {"here": matching_told(queue_told(BUSY, now=NOW), queue_told(IDLE, now=NOW), now=NOW)},
    }
    quiet = items(reader, **told)
    assert (found(quiet, "no poller").number, found(quiet, "no poller").level) == ("0", "ok")
    assert (found(quiet, "live owner").number, found(quiet, "live owner").level) == ("0", "ok")
    assert (found(quiet, "lag of").number, found(quiet, "lag of").level) == ("none", "ok")


def test_statuses_are_counted_no_further_than_their_bound(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = dict(reader.get(INDEX).context["statuses"])
    assert (counts["Running"], counts["Completed"], counts["Failed"]) == ("1", "1", "0")
    monkeypatch.setattr(store, "MOST_COUNTED", 0)
    counts = dict(reader.get(INDEX).context["statuses"])
    assert (counts["Running"], counts["Failed"]) == ("0+", "0")


def test_the_last_hour_is_drawn(reader: Client) -> None:
    answer = reader.get(INDEX)
    assert (answer.context["started"], answer.context["closed"]) == (2, 1)
    assert not answer.context["is_estimate"]
    assert "2 started, 1 closed" in answer.content.decode()


def test_a_newcomer_sees_the_tables_that_are_open_to_him_and_no_more(django_connection: Any) -> None:
    client = Client()
    assert client.get(INDEX).status_code == 302
    user, _ = User.objects.get_or_create(username="newcomer", is_staff=True)
    client.force_login(user)
    page = client.get(INDEX)
    assert page.status_code == 200
    assert "attention" not in page.context
    assert escape(WORKFLOW) not in page.content.decode()


# --- the queries


def test_beyond_a_full_sample_the_number_is_an_estimate(
    django_connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs a second apart: ten of them say that there are sixty in a minute."""
    monkeypatch.setattr(store, "SAMPLE", 10)
    begin = NOW - timedelta(days=30)
    for second in range(60):
        make_run(uuid7(begin + timedelta(seconds=second)), status="Running")
    [one] = store.activity(until=begin + timedelta(minutes=1), slices=1, length=timedelta(minutes=1))
    assert one.is_estimate
    assert 50 <= one.started <= 70
    Execution.objects.filter(run_id__lt=uuid7(NOW - timedelta(days=1))).delete()
    Visibility.objects.filter(run_id__lt=uuid7(NOW - timedelta(days=1))).delete()


def test_overdue_timers_are_counted_no_further_than_their_bound(
    django_connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_OF_A_SHARD", 1)
    timer("userTimer", 41, due_at=NOW - timedelta(minutes=9), attempt=0)
    found = store.overdue_timer_tasks(before=NOW)
    assert (found.count, found.is_more, found.shard_id) == (1, True, 3)
    assert [one.task_id for one in store.first_overdue(found, before=NOW, most=5)] == [40, 41]
    TimerTask.objects.filter(task_id=41).delete()


def test_queues_with_rows_are_found_one_by_one(django_connection: Any) -> None:
    assert store.queues_with_rows(most=10) == sorted([BUSY.physical_queue, IDLE.physical_queue])
    assert store.queues_with_rows(most=1) == [IDLE.physical_queue]
    assert TaskQueue.objects.count() == 3


def test_a_malformed_timer_hides_no_other(django_connection: Any) -> None:
    """Text that is no JSON can only be in SQLite's column."""
    if django_connection.vendor == "sqlite":
        with django_connection.cursor() as cursor:
            cursor.execute("UPDATE timer_tasks SET data = '{' WHERE task_id = 40")
    assert [one.attempt for one in store.retried_activities(most=5).worst] == [31, 10]
    first = store.overdue_timer_tasks(before=NOW)
    kinds = [one.kind for one in store.first_overdue(first, before=NOW, most=5)]
    assert kinds == ["unreadable" if django_connection.vendor == "sqlite" else "userTimer"]
    TimerTask.objects.filter(task_id=40).update(data=json.loads('{"kind": "userTimer", "attempt": 99}'))


@pytest.mark.parametrize(("most", "ceiling"), [(0, 2), (2, 2), (3, 4), (5, 10), (11, 20), (999, 1000), (1001, 2000)])
def test_the_plots_scale_is_round(most: int, ceiling: int) -> None:
    one = store.Slice(begin=NOW, started=most, closed=0, is_estimate=False)
    assert f">{ceiling:,}</text>" in plot.draw([one])
