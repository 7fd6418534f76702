"""The list and the runs' pages on each database: what they show, that nothing in them is taken for markup, what they cost."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from temporalio.api.common.v1 import ActivityType, Payload
from temporalio.api.history import v1 as h

from history.records import ActivityItem, ChildItem, ParentInfo, TimerItem, TimerTask, TransferTask, UpdateItem
from tests.admin.executions.runs import (
    START,
    activities,
    at,
    event,
    failure,
    json_payload,
    payloads,
    run,
    run_id,
    started,
    store,
    write,
)
from tests.admin.executions.test_codec import codec_server, reversing
from tests.contract.samples import COMPLETED
from tinytemporal_site.console.executions import codec

EVIL = "<script>alert('x')</script>\"&%{{ 7 }}"
LIST = "/admin/executions/"
SMALL, HOSTILE, LONG, LARGE, WAITING, SECRET, BROKEN = (run_id(number) for number in range(1, 8))
MANY_EVENTS = 10_000
MOST_LIST_QUERIES = 7
MOST_DETAIL_QUERIES = 26
"""Those for the session and the user are among them, and one for each kind of thing that a run waits for."""


def hostile() -> Any:
    made = run(2, workflow_id=EVIL, workflow_type=EVIL, task_queue=EVIL, last_worker_identity=EVIL)
    made.memo = {EVIL: json_payload(json.dumps(EVIL))}
    made.status, made.closed_at, made.close_event_id = COMPLETED, at(9), 9
    events = [
        started(json.dumps({EVIL: EVIL})),
        event(2, h.ActivityTaskScheduledEventAttributes(activity_id=EVIL, activity_type=ActivityType(name=EVIL))),
        event(3, h.ActivityTaskStartedEventAttributes(scheduled_event_id=2, attempt=2, last_failure=failure(EVIL))),
        event(4, h.ActivityTaskFailedEventAttributes(scheduled_event_id=2, started_event_id=3, failure=failure(EVIL))),
        event(5, h.TimerStartedEventAttributes(timer_id=EVIL)),
        event(6, h.WorkflowExecutionSignaledEventAttributes(signal_name=EVIL, identity=EVIL)),
        event(7, h.StartChildWorkflowExecutionInitiatedEventAttributes(workflow_id=EVIL)),
        event(8, h.MarkerRecordedEventAttributes(marker_name=EVIL)),
        event(9, h.WorkflowExecutionFailedEventAttributes(failure=failure(EVIL, cause=failure(EVIL)))),
    ]
    items = [
        (
            "activity",
            "2",
            activity_item(2, activity_id=EVIL, activity_type=EVIL, last_failure=failure(EVIL), pause_reason=EVIL),
        ),
        ("timer", EVIL, TimerItem(timer_id=EVIL, started_event_id=5, fires_at=at(9))),
        ("child", "7", child_item(7, workflow_id=EVIL, workflow_type=EVIL, run_id=EVIL)),
        ("update", EVIL, UpdateItem(update_id=EVIL, state="accepted", accepted_event_id=8)),
    ]
    return write(made, events, items=items)


def activity_item(event_id: int, **more: Any) -> ActivityItem:
    known: dict[str, Any] = {"activity_id": "a", "activity_type": "pay", "task_queue": "queue"}
    known |= {"scheduled_at": START, "first_scheduled_at": START, "attempt": 3}
    return ActivityItem(scheduled_event_id=event_id, **(known | more))


def child_item(event_id: int, **more: Any) -> ChildItem:
    return ChildItem(
        initiated_event_id=event_id, namespace="default", create_request_id="r", parent_close_policy=1, **more
    )


def waiting() -> Any:
    """Waits for one of everything, has a parent and runs before and after it."""
    made = run(5, workflow_id="waiting", continued_from_run_id=SMALL, original_run_id=LONG, first_run_id=SMALL)
    made.parent = ParentInfo(namespace="default", workflow_id="the parent", run_id=HOSTILE, initiated_event_id=3)
    made.root_workflow_id, made.root_run_id = "the root", LARGE
    items = [
        ("activity", "2", activity_item(2, retry_at=at(60), last_failure=failure("card refused"))),
        ("timer", "t-1", TimerItem(timer_id="t-1", started_event_id=3, fires_at=at(3600), task_id=8)),
        ("child", "4", child_item(4, workflow_id="kid", workflow_type="Kid", run_id=SMALL)),
        ("update", "u-1", UpdateItem(update_id="u-1", state="accepted", accepted_event_id=5)),
    ]
    return write(made, [started(), *activities(3)], items=items)


def large() -> Any:
    """A few events are too large for one page together."""
    big = payloads(Payload(data=b"x" * 700_000))
    return write(
        run(4, workflow_id="large"),
        [
            started(),
            *(event(n, h.WorkflowExecutionSignaledEventAttributes(signal_name="big", input=big)) for n in range(2, 8)),
        ],
    )


def secret() -> Any:
    made = run(6, workflow_id="secret")
    attributes = h.WorkflowExecutionSignaledEventAttributes(
        signal_name="s", input=payloads(Payload(metadata={"encoding": b"binary/encrypted"}, data=b"emases"))
    )
    return write(made, [started(), event(2, attributes)])


@pytest.fixture(scope="module", autouse=True)
def rows(module_database_url: str, django_connection: Any) -> None:
    small = run(1, workflow_id="small")
    small.status, small.closed_at, small.close_event_id = COMPLETED, at(9), 5
    result = h.WorkflowExecutionCompletedEventAttributes(result=payloads(json_payload('{"paid": true}')))
    long_events = [started(), *activities((MANY_EVENTS - 1) // 3)]
    store(
        module_database_url,
        [
            write(small, [started('{"sku": "a"}'), *activities(1), event(5, result)]),
            hostile(),
            write(run(3, workflow_id="long"), long_events),
            large(),
            waiting(),
            secret(),
            write(run(7, workflow_id="broken"), [started()]),
        ],
        transfer_tasks=[
            TransferTask(
                task_id=20,
                kind="workflowTask",
                namespace="default",
                workflow_id="waiting",
                run_id=WAITING,
                available_at=START,
            ),
            TransferTask(
                task_id=21,
                kind="activityTask",
                namespace="default",
                workflow_id="small",
                run_id=SMALL,
                available_at=START,
            ),
        ],
        timer_tasks=[
            TimerTask(
                task_id=8, kind="userTimer", namespace="default", workflow_id="waiting", run_id=WAITING, due_at=at(3600)
            ),
            TimerTask(
                task_id=9, kind="userTimer", namespace="default", workflow_id="small", run_id=SMALL, due_at=at(3600)
            ),
        ],
    )
    with django_connection.cursor() as cursor:
        cursor.execute("UPDATE executions SET data = %s WHERE run_id = %s", ['{"startedAt": 5}', BROKEN])


def page(reader: Client, path: str, code: int = 200, /, **asked: Any) -> str:
    answer = reader.get(f"{path}?{urlencode(asked)}" if asked else path)
    assert answer.status_code == code, (path, answer)
    return answer.content.decode()


def detail(reader: Client, of: str, **asked: Any) -> str:
    return page(reader, f"{LIST}{of}/", **asked)


def found(content: str) -> list[str]:
    return [part.split("/")[0] for part in content.split(f'href="{LIST}')[1:] if part[36] == "/"]


# --- The list -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked, expected",
    [
        ({}, {SMALL, HOSTILE, LONG, LARGE, WAITING, SECRET, BROKEN}),
        ({"id": "s"}, {SMALL, SECRET}),
        ({"id": "small", "id_is": "exact"}, {SMALL}),
        ({"id": "smal", "id_is": "exact"}, set()),
        ({"id": SMALL[:35]}, {SMALL, HOSTILE, LONG, LARGE, WAITING, SECRET, BROKEN}),
        ({"status": "Completed"}, {SMALL, HOSTILE}),
        ({"type": EVIL, "queue": EVIL}, {HOSTILE}),
        ({"since": "2026-03-04T05:06"}, {SMALL, HOSTILE, LONG, LARGE, WAITING, SECRET, BROKEN}),
        ({"until": "2026-03-04T05:06"}, set()),
        ({"filter": "WorkflowId = 'large' OR WorkflowId = 'long'"}, {LARGE, LONG}),
        ({"filter": "WorkflowId = 'large' OR WorkflowId = 'small'", "status": "Completed"}, {SMALL}),
        ({"namespace": "other"}, set()),
    ],
)
def test_list(reader: Client, asked: dict[str, str], expected: set[str]) -> None:
    assert set(found(page(reader, LIST, **asked))) == expected


def test_a_run_id_leads_to_its_run(reader: Client) -> None:
    assert reader.get(f"{LIST}?id={SMALL}").headers["Location"] == f"{LIST}{SMALL}/"


def test_a_filter_at_fault_is_told_beside_its_box(reader: Client) -> None:
    content = page(reader, LIST, filter="Nope = 1", status="Failed")
    assert 'role="alert" id="x-error-filter"' in content
    assert "invalid search attribute: Nope (at position 1)" in content
    assert 'value="Nope = 1"' in content
    assert "no such status" in page(reader, LIST, status=EVIL)
    assert "Invalid NextPageToken" in page(reader, LIST, after="x")


def test_pages_follow_each_other(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinytemporal_site.console.executions.listing.PAGE", 2)
    seen: list[str] = []
    path = LIST
    while True:
        content = page(reader, path)
        seen += found(content)
        if 'rel="next"' not in content:
            break
        query = content.split('" rel="next"')[0].rpartition('href="')[2].replace("&amp;", "&")
        path = f"{LIST}{query}"
    assert len(seen) == len(set(seen)) == 7


@pytest.mark.parametrize(
    "asked", [{}, {"id": "s"}, {"status": "Completed", "type": "Greet"}, {"filter": "RunId IN ('a')"}]
)
def test_a_list_costs_few_queries_and_counts_no_further_than_few(
    reader: Client, django_connection: Any, asked: dict[str, str]
) -> None:
    with CaptureQueriesContext(django_connection) as queries:
        page(reader, LIST, **asked)
    assert len(queries) <= MOST_LIST_QUERIES
    for query in queries.captured_queries:
        assert "COUNT(" not in query["sql"].upper() or " LIMIT " in query["sql"], query["sql"]


# --- A run's page ---------------------------------------------------------------------------------------------------


def test_summary_input_and_result(reader: Client) -> None:
    content = detail(reader, SMALL)
    for text in (
        '"sku": "a"',
        '"paid": true',
        "Greet",
        "Activity task completed",
        'aria-labelledby="x-svg-title x-svg-desc"',
    ):
        assert escape(text) in content or text in content, text
    assert f"{LIST}{SMALL}/history.json" in content
    assert "data-ended" in content


def test_what_it_waits_for_and_its_family(reader: Client) -> None:
    content = detail(reader, WAITING)
    for text in (
        "card refused",
        "t-1",
        "u-1",
        "kid",
        "transfer 20",
        "timer 8",
        "the parent",
        "the root",
        "Reset from",
        "Continues",
    ):
        assert text in content, text
    for text in ("transfer 21", "timer 9"):
        assert text not in content, text
    assert f'href="{LIST}{SMALL}/"' in content
    assert "data-ended" not in content
    assert "Its owner does not answer, so only what is stored is shown: This process runs no services." in content


def test_nothing_is_taken_for_markup(reader: Client) -> None:
    for content in (
        detail(reader, HOSTILE),
        detail(reader, HOSTILE, part="moving"),
        page(
            reader, LIST, id=EVIL, id_is="exact", type=EVIL, queue=EVIL, filter=f"WorkflowId = '{EVIL}'", namespace=EVIL
        ),
        page(reader, LIST),
        page(reader, LIST, type=EVIL),
        page(reader, f"{LIST}{urlencode({'': EVIL})[1:]}/", 404),
        reader.post(f"{LIST}{HOSTILE}/query/", {"name": EVIL, "arguments": EVIL}).content.decode(),
    ):
        assert "<script>alert" not in content
        assert " style=" not in content.partition('id="content-main"')[2].partition("</main>")[0]


def test_a_long_run_costs_no_more_than_a_short_one(reader: Client, django_connection: Any) -> None:
    costs = {}
    for of in (SMALL, LONG, WAITING):
        with CaptureQueriesContext(django_connection) as queries:
            content = detail(reader, of)
        costs[of] = len(queries)
        assert len(queries) <= MOST_DETAIL_QUERIES, [query["sql"] for query in queries.captured_queries]
        assert content.count('<tr id="event-') <= 200
        assert_served_by_indexes(django_connection, queries)
    assert costs[LONG] <= costs[SMALL] + 2
    with CaptureQueriesContext(django_connection) as queries:
        detail(reader, LONG, **{"from": 5001})
    assert len(queries) <= costs[LONG]


def assert_served_by_indexes(connection: Any, queries: CaptureQueriesContext) -> None:
    is_postgres = connection.vendor == "postgresql"
    with connection.cursor() as cursor:
        if is_postgres:
            cursor.execute("SET enable_seqscan = off")
        for query in list(queries.captured_queries):
            sql = query["sql"]
            if any(
                f'"{name}"' in sql
                for name in ("history_events", "pending_items", "executions", "timer_tasks", "visibility")
            ):
                cursor.execute(f"EXPLAIN {'' if is_postgres else 'QUERY PLAN '}{sql}", None)
                plan = "\n".join(str(row[-1]) for row in cursor.fetchall())
                assert "Seq Scan" not in plan, (sql, plan)
                assert not any(line.startswith("SCAN") and "USING" not in line for line in plan.splitlines()), (
                    sql,
                    plan,
                )
        if is_postgres:
            cursor.execute("SET enable_seqscan = on")


def test_a_long_run_is_read_page_by_page(reader: Client) -> None:
    last = detail(reader, LONG)
    assert f'<tr id="event-{MANY_EVENTS}"' in last
    assert "?from=1#x-events" in last
    assert 'class="x-overview"' in last
    assert 'class="x-overview"' not in detail(reader, SMALL)
    first = detail(reader, LONG, **{"from": 1})
    assert '<tr id="event-200"' in first
    assert '<tr id="event-201"' not in first
    assert "?from=201#x-events" in first
    middle = detail(reader, LONG, **{"from": 501})
    assert '<tr id="event-501"' in middle
    # An event whose relatives are on another page leads there.
    assert f'href="{LIST}{LONG}/?from=500#event-500"' in middle
    for odd in ("0", "x", "99999999", "-5"):
        detail(reader, LONG, **{"from": odd})


def test_large_events_make_shorter_pages(reader: Client) -> None:
    content = detail(reader, LARGE, **{"from": 1})
    assert "there are fewer on this page" in content
    assert '<tr id="event-3"' in content
    assert '<tr id="event-7"' not in content
    assert len(content) < 1_000_000


def test_a_row_that_cannot_be_read_is_shown_as_far_as_it_can(reader: Client) -> None:
    content = detail(reader, BROKEN)
    assert "The stored record can't be read" in content
    assert "broken" in content


def test_encrypted_payloads_are_decoded_by_the_codec(
    reader: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "WAIT", timedelta(seconds=60))
    assert "sesame" not in detail(reader, SECRET)
    with codec_server(reversing) as (address, asked):
        settings.CODEC_ENDPOINT = address
        content = detail(reader, SECRET)
    assert "sesame" in content
    assert [namespace for _, namespace, _ in asked] == ["default"]
    content = detail(reader, SECRET)
    assert "the codec endpoint can&#x27;t be asked" in content


# --- Who may, and how -----------------------------------------------------------------------------------------------


PATHS = [LIST, f"{LIST}{SMALL}/", f"{LIST}{SMALL}/history.json", f"{LIST}{SMALL}/live/", f"{LIST}{SMALL}/query/"]


@pytest.mark.parametrize("path", PATHS)
def test_only_who_may_view_executions(django_connection: Any, path: str) -> None:
    client = Client()
    assert client.get(path).headers["Location"].startswith("/admin/login/")
    user, _ = User.objects.get_or_create(username="clerk", is_staff=True)
    client.force_login(user)
    assert client.get(path).status_code == 403
    assert client.post(path).status_code == 403


def test_a_query_is_a_post_with_a_token(reader: Client) -> None:
    path = f"{LIST}{SMALL}/query/"
    assert reader.get(path).status_code == 405
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(User.objects.get(username="reader"))
    assert careful.post(path, {"name": "state"}).status_code == 403
    assert "runs no services" in reader.post(path, {"name": "state"}).content.decode()
    assert "name is missing" in reader.post(path, {"name": ""}).content.decode()
    assert "are no JSON" in reader.post(path, {"name": "a", "arguments": "{"}).content.decode()


def test_no_such_run(reader: Client) -> None:
    for path in PATHS[1:4]:
        assert reader.get(path.replace(SMALL, run_id(99))).status_code == 404
    assert reader.get(f"{LIST}%00/").status_code == 404


# --- Without a server that can wait ---------------------------------------------------------------------------------


def test_the_download_holds_every_event(reader: Client) -> None:
    answer = reader.get(f"{LIST}{LONG}/history.json")
    events = json.loads(b"".join(answer.streaming_content))["events"]  # type: ignore[arg-type]
    assert [event["eventId"] for event in events] == [str(number) for number in range(1, MANY_EVENTS + 1)]
    assert f"long_{LONG}.json" in answer["Content-Disposition"]
    assert reader.get(f"{LIST}{HOSTILE}/history.json")["Content-Disposition"]


def test_the_stream_tells_the_state_once(reader: Client) -> None:
    told = b"".join(reader.get(f"{LIST}{LONG}/live/?seen=1.0.Running").streaming_content)  # type: ignore[arg-type]
    assert f"id: {MANY_EVENTS + 1}.0.Running\nevent: changed\n".encode() in told
    told = b"".join(reader.get(f"{LIST}{LONG}/live/?seen={MANY_EVENTS + 1}.0.Running").streaming_content)  # type: ignore[arg-type]
    assert b"event" not in told
    assert b"event: ended" in b"".join(reader.get(f"{LIST}{SMALL}/live/").streaming_content)  # type: ignore[arg-type]
