"""All that a run's page shows, read and put together; the queries are counted in `rows`' docstring's terms and tested."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.enums.v1 import EventType

from common.clock import RealClock
from common.codec import to_dict
from common.contracts.inspect import RunInspection
from common.errors import TemporalError
from common.keyed_admin import key_of
from history.records import ExecutionInfo
from tinytemporal_site.console import live
from tinytemporal_site.console.executions import rows
from tinytemporal_site.console.executions.codec import decode_within
from tinytemporal_site.console.executions.drawing import draw, table
from tinytemporal_site.console.executions.events import Event, failure_parts, rows_of
from tinytemporal_site.console.executions.facts import Relative, limits, outcome_of, relatives
from tinytemporal_site.console.executions.overview import Overview, overview, sample_ids
from tinytemporal_site.console.executions.payloads import Shown, is_payload, readable, shown
from tinytemporal_site.console.executions.rows import Items, Run, Window, records_of
from tinytemporal_site.console.executions.timeline import Timeline, build
from tinytemporal_site.console.executions.waiting import due_times, for_timeline, state_word, told_timeout
from visibility.models import Visibility, reading_order

MOST_RELATED = 20
OPEN = ("Running", "Paused")


class _Read(Struct, kw_only=True):
    """JSON with payloads in it, which a codec decodes all at once."""

    input: Any
    outcome: dict[str, Any]
    events: list[Any]
    memo: Any
    attributes: Any
    metadata: Any
    activities: list[Any]


def context_of(run: Run, *, asked_from: str) -> dict[str, Any]:
    info, row = run.info, run.row
    is_open = row.status in OPEN
    first = rows.first_of_page(asked_from, last_event_id=run.last_event_id, is_open=is_open)
    window = rows.window(run, first)
    items = rows.pending(run)
    read, problem = _decoded(run, _collect(run, window, items))
    events = [
        replace(event, attributes=attributes, rest=rest)
        for event, (attributes, rest) in zip(window.events, read.events, strict=True)
    ]
    timeline = _timeline(run, events, items, window)
    return {
        "run": row,
        "info": info,
        "problem": run.problem,
        "memory": _memory(run) if is_open else None,
        "is_open": is_open,
        "seen": f"{row.next_event_id}.{info.state_transition_count if info else 0}.{row.status}",
        "codec_problem": problem,
        "input": _payloads(read.input),
        "outcome": {
            **read.outcome,
            "payloads": _payloads(read.outcome.get("payloads")),
            "failure": failure_parts(read.outcome.get("failure")),
        },
        "memo": readable(read.memo),
        "attributes": readable(read.attributes),
        "metadata": readable(read.metadata),
        "picture": draw(timeline),
        "overview": _overview(run, window),
        "timeline": timeline,
        "timeline_rows": table(timeline.lanes),
        "events": rows_of(events),
        "window": window,
        "last_page": _last_page(run),
        "limits": limits(info, items) if info else [],
        "tasks": _tasks(run, info, items),
        **_pending(items, read),
        **_around(run, info),
    }


def _memory(run: Run) -> RunInspection | live.Away:
    """What the run's owner holds of it beside the rows."""
    row = run.row
    try:
        return live.run(namespace=row.namespace, workflow_id=row.workflow_id, run_id=row.run_id)
    except TemporalError as error:
        return live.Away(reason=error.message)


def _collect(run: Run, window: Window, items: dict[str, Items]) -> _Read:
    info = run.info
    ends = (1, info.close_event_id if info else 0)
    by_id = {event.id: event for event in window.events if event.id in ends}
    by_id |= rows.events_with_ids(run, set(ends) - set(by_id))
    first, close = by_id.get(1), by_id.get(ends[1])
    return _Read(
        input=first.attributes.get("input") if first else None,
        outcome=outcome_of(close.type, close.attributes) if close else {},
        events=[(event.attributes, event.rest) for event in window.events],
        memo={name: to_dict(payload) for name, payload in info.memo.items()} if info else {},
        attributes={name: to_dict(payload) for name, payload in info.search_attributes.items()} if info else {},
        metadata=to_dict(info.user_metadata) if info and info.user_metadata else {},
        activities=[_messages_of(item) for item in records_of(items, "activity")],
    )


def _messages_of(item: Any) -> dict[str, Any]:
    """A pending activity's messages in JSON, for the codec."""
    return {
        "failure": to_dict(item.last_failure) if item.last_failure is not None else None,
        "heartbeat": to_dict(item.heartbeat_details) if item.heartbeat_details is not None else None,
    }


def _decoded(run: Run, read: _Read) -> tuple[_Read, str]:
    names = read.__struct_fields__
    values = [getattr(read, name) for name in names]
    # Tuples hold no payloads for a walk over JSON.
    values[names.index("events")] = [list(pair) for pair in read.events]
    decoded = decode_within(values, endpoint=settings.CODEC_ENDPOINT, namespace=run.row.namespace)
    return _Read(**dict(zip(names, decoded.values, strict=True))), decoded.problem


def _payloads(value: Any) -> list[Shown]:
    """Of a Payloads message in JSON."""
    found = value.get("payloads") if isinstance(value, dict) else None
    return (
        [shown(payload) for payload in found if is_payload(payload) or payload == {}] if isinstance(found, list) else []
    )


def _timeline(run: Run, events: Sequence[Event], items: dict[str, Items], window: Window) -> Timeline:
    info, row = run.info, run.row
    return build(
        events,
        for_timeline(info, items) if info is not None and row.status in OPEN else (),
        started_at=info.original_started_at or info.started_at if info else row.started_at,
        closed_at=row.closed_at,
        status=row.status,
        now=RealClock().now(),
        has_earlier=window.first > 1,
        has_later=bool(window.following),
    )


def _overview(run: Run, window: Window) -> Overview | None:
    """Of a run with more than one page of events."""
    if not window.events or not (window.preceding or window.following):
        return None
    samples = rows.times_of(run, sample_ids(run.last_event_id))
    return overview(samples, first=window.events[0].time, last=window.events[-1].time)


def _last_page(run: Run) -> int:
    return rows.first_of_page("", last_event_id=run.last_event_id, is_open=True)


def _pending(items: dict[str, Items], read: _Read) -> dict[str, Any]:
    activities = [
        {
            "item": item,
            "state": state_word(item),
            "timeouts": told_timeout(item),
            "failure": failure_parts(messages["failure"]),
            "heartbeat": _payloads(messages["heartbeat"]),
        }
        for item, messages in zip(records_of(items, "activity"), read.activities, strict=True)
    ]
    updates = records_of(items, "update")
    return {
        "counts": {kind: found.count for kind, found in items.items()},
        "unread": [text for found in items.values() for text in found.unread],
        "activities": sorted(activities, key=lambda one: one["item"].scheduled_event_id),
        "timers": sorted(records_of(items, "timer"), key=lambda item: item.fires_at),
        "children": sorted(records_of(items, "child"), key=lambda item: item.initiated_event_id),
        "updates": sorted(updates, key=lambda item: item.accepted_event_id),
        "signals_out": records_of(items, "externalSignal"),
        "cancels_out": records_of(items, "externalCancel"),
        "buffered": [
            EventType.Name(item.event.event_type).removeprefix("EVENT_TYPE_").replace("_", " ").lower()
            for item in sorted(records_of(items, "bufferedEvent"), key=lambda item: item.order)
        ],
        "callbacks": sorted(records_of(items, "callback"), key=lambda item: item.number),
    }


class TaskRow(Struct, frozen=True, kw_only=True):
    """A transfer or timer task; `model` and `key` name the page of its row."""

    name: str
    model: str
    key: str
    kind: str
    at: datetime
    task_queue: str = ""


def _tasks(run: Run, info: ExecutionInfo | None, items: dict[str, Items]) -> dict[str, Any]:
    found = rows.tasks(run, due_times(info, items))
    shown_rows = [
        TaskRow(
            name=f"transfer {task.task_id}",
            model="history_transfertaskview",
            key=key_of(task.shard_id, task.task_id),
            kind=_kind(task.data),
            at=task.available_at,
            task_queue=task.task_queue,
        )
        for task in found.transfer
    ]
    shown_rows += [
        TaskRow(
            name=f"timer {task.task_id}",
            model="history_timertaskview",
            key=key_of(task.shard_id, task.task_id),
            kind=_kind(task.data),
            at=task.due_at,
        )
        for task in found.timer
    ]
    return {"rows": shown_rows, "is_partial": found.transfer_is_partial}


def _kind(data: Any) -> str:
    return str(data.get("kind", "")) if isinstance(data, dict) else ""


def _around(run: Run, info: ExecutionInfo | None) -> dict[str, Any]:
    """The runs that this one belongs to."""
    found = relatives(info, current_run_id=rows.current_run_id(run)) if info else []
    known = rows.runs_with_ids(run, (relative.run_id for relative in found))
    named: list[Relative] = [
        replace(relative, status=known[relative.run_id].status) if relative.run_id in known else relative
        for relative in found
    ]
    children = Visibility.objects.filter(namespace=run.row.namespace, parent_run_id=run.row.run_id)
    few = list(children.order_by(*reading_order()).defer("search_attributes", "memo", "text_words")[: MOST_RELATED + 1])
    return {
        "relatives": named,
        "runs": rows.runs_of_workflow(run, most=MOST_RELATED),
        "child_runs": few[:MOST_RELATED],
        "has_more_children": len(few) > MOST_RELATED,
    }
