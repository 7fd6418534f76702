"""A run's events for reading: what each says in a few words, and which other events it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from tinytemporal_site.console.executions.payloads import readable

Attributes = dict[str, Any]

_STEM = re.compile(r"(?<!^)(?=[A-Z])")
_LEADS_TO = {
    "scheduledEventId": "scheduled",
    "startedEventId": "started",
    "initiatedEventId": "initiated",
    "externalInitiatedEventId": "",
    "acceptedEventId": "accepted",
    "latestCancelRequestedEventId": "cancel requested",
    "requestedEventId": "requested",
    "workflowTaskCompletedEventId": "by task",
}
"""Attributes that name an earlier event of the same run; those with an empty word are of another run."""
_MADE_BY = "workflowTaskCompletedEventId"
_MOST_WORDS = 300
_DEEPEST_CAUSE = 20


class Event(Struct, frozen=True, kw_only=True):
    """One row of `history_events`; `type` is upstream's name without its prefix, as ActivityTaskScheduled."""

    id: int
    type: str
    time: datetime
    attributes: Attributes
    rest: Attributes
    """What the event has beside its attributes: task id, user metadata, links."""

    @property
    def words(self) -> str:
        """ActivityTaskScheduled → Activity task scheduled."""
        return words_of(self.type)


class Link(Struct, frozen=True):
    event_id: int
    word: str
    is_here: bool
    """Whether it is among the events that the page shows."""


class EventRow(Struct, frozen=True, kw_only=True):
    """An event as a row of the table."""

    event: Event
    told: str
    links: list[Link]
    reading: Attributes
    """Its attributes and the rest, payloads decoded."""
    tone: str
    """bad, good or nothing, for its colour."""


def event_of(*, event_id: int, event_type: str, time: datetime, data: Any) -> Event:
    """Of a stored row; what is malformed is shown as it is."""
    if not isinstance(data, dict):
        return Event(id=event_id, type=event_type, time=time, attributes={}, rest={"data": data})
    attributes: Attributes = {}
    rest: Attributes = {}
    for name, value in data.items():
        if name.endswith("EventAttributes") and isinstance(value, dict):
            attributes = value
        elif name not in ("eventId", "eventType", "eventTime"):
            rest[name] = value
    return Event(id=event_id, type=event_type, time=time, attributes=attributes, rest=rest)


def rows_of(events: Iterable[Event]) -> list[EventRow]:
    """The events as rows of the table, linked to each other in both directions."""
    shown = list(events)
    here = {event.id for event in shown}
    later = _later(shown)
    return [
        EventRow(
            event=event,
            told=" · ".join(part for part in (summary_of(event), tell(event)) if part),
            links=[*_earlier(event, here), *later.get(event.id, ())],
            reading=readable({**event.attributes, **event.rest}),
            tone=tone_of(event.type),
        )
        for event in shown
    ]


def _earlier(event: Event, here: set[int]) -> list[Link]:
    return [Link(event_id, word, event_id in here) for event_id, word in named_events(event)]


def _later(events: Iterable[Event]) -> dict[int, list[Link]]:
    """Which of these events name an earlier one as theirs; a task's commands are not among them, they are many."""
    found: dict[int, list[Link]] = {}
    for event in events:
        for event_id, word in named_events(event):
            if word != _LEADS_TO[_MADE_BY]:
                found.setdefault(event_id, []).append(Link(event.id, last_word(event.type), True))
    return found


def named_events(event: Event) -> list[tuple[int, str]]:
    """The earlier events that this one names, with the word for each."""
    found = []
    for name, word in _LEADS_TO.items():
        event_id = number(event.attributes.get(name))
        if word and 0 < event_id < event.id:
            found.append((event_id, word))
    return found


def number(value: Any) -> int:
    """Of proto3 JSON, where a 64-bit number is text; 0 for anything else."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def words_of(event_type: str) -> str:
    return _STEM.sub(" ", event_type).capitalize()


def last_word(event_type: str) -> str:
    """What became of it: TimerFired → fired, ActivityTaskTimedOut → timed out."""
    parts = _STEM.sub(" ", event_type).lower().split()
    return " ".join(parts[-2:] if parts[-1:] == ["out"] or parts[-1:] == ["requested"] else parts[-1:])


def tone_of(event_type: str) -> str:
    if event_type.endswith(("Failed", "TimedOut", "Terminated", "Rejected")):
        return "bad"
    return "good" if event_type.endswith("Completed") and not event_type.startswith("WorkflowTask") else ""


# --- In words -------------------------------------------------------------------------------------------------------


def tell(event: Event) -> str:
    """The event in a few words: what, where to, why it failed."""
    attributes = event.attributes
    parts = [
        name_in(attributes, "activityType"),
        name_in(attributes, "workflowType"),
        *(str(attributes.get(name, "")) for name in ("signalName", "markerName", "operation", "timerId")),
        _labelled("id", attributes.get("activityId")),
        _of_other(attributes),
        _update(attributes),
        _labelled("fires after", attributes.get("startToFireTimeout")),
        _attempt(attributes),
        short(attributes.get("cause"), "_CAUSE_"),
        short(attributes.get("timeoutType"), "TIMEOUT_TYPE_"),
        _labelled("reason:", attributes.get("reason")),
        _failure_told(attributes),
        _labelled("next run", attributes.get("newExecutionRunId")),
        _labelled("by", attributes.get("identity")),
    ]
    text = " · ".join(part for part in parts if part)
    return text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]}…"


def summary_of(event: Event) -> str:
    """What the workflow's author has written beside it."""
    metadata = event.rest.get("userMetadata")
    said = readable(metadata.get("summary")) if isinstance(metadata, dict) else None
    return f"“{said[:_MOST_WORDS]}”" if isinstance(said, str) else ""


def name_in(attributes: Mapping[str, Any], field: str) -> str:
    """The name in a field that holds `{"name": …}`."""
    value = attributes.get(field)
    return str(value.get("name", "")) if isinstance(value, dict) else ""


def short(value: Any, prefix: str) -> str:
    """An enum's value without what every value of it begins with: `…_CAUSE_NO_SUCH_THING` → no such thing."""
    return str(value).rpartition(prefix)[2].replace("_", " ").lower() if value else ""


def _labelled(label: str, value: Any) -> str:
    return f"{label} {value}" if value else ""


def _attempt(attributes: Attributes) -> str:
    attempt = number(attributes.get("attempt"))
    return f"attempt {attempt}" if attempt > 1 else ""


def _of_other(attributes: Attributes) -> str:
    """The execution that it is about: a child, or one that is signalled."""
    execution = attributes.get("workflowExecution") or attributes.get("externalWorkflowExecution")
    if isinstance(execution, dict):
        return str(execution.get("workflowId", ""))
    return str(attributes.get("workflowId", "")) if "parentClosePolicy" in attributes else ""


def _update(attributes: Attributes) -> str:
    request = attributes.get("acceptedRequest") or attributes.get("request") or attributes.get("rejectedRequest")
    if isinstance(request, dict):
        given = request.get("input")
        return str(given.get("name", "")) if isinstance(given, dict) else ""
    meta = attributes.get("meta")
    return str(meta.get("updateId", "")) if isinstance(meta, dict) else ""


def _failure_told(attributes: Attributes) -> str:
    outcome = attributes.get("outcome")
    failure = attributes.get("failure") or (outcome.get("failure") if isinstance(outcome, dict) else None)
    return told_failure(failure)


def told_failure(failure: Any) -> str:
    """The messages of a failure and its causes, the innermost last."""
    said = [str(one.get("message") or _kind_of(one)) for one in causes(failure)]
    return " ← ".join(dict.fromkeys(said))


def causes(failure: Any) -> list[dict[str, Any]]:
    """The failure and what caused it, innermost last; what a converter has put aside in encoded attributes is put back."""
    found: list[dict[str, Any]] = []
    while isinstance(failure, dict) and len(found) < _DEEPEST_CAUSE:
        found.append({**failure, **_put_aside(failure)})
        failure = failure.get("cause")
    return found


def _put_aside(failure: Mapping[str, Any]) -> dict[str, str]:
    """Of an SDK's converter that keeps messages and stack traces in a payload, so that a codec can encrypt them."""
    given = readable(failure.get("encodedAttributes"))
    if not isinstance(given, dict):
        return {}
    names = {"message": "message", "stackTrace": "stack_trace"}
    return {name: given[theirs] for name, theirs in names.items() if isinstance(given.get(theirs), str)}


def _kind_of(failure: Mapping[str, Any]) -> str:
    kinds = [name.removesuffix("FailureInfo") for name in failure if name.endswith("FailureInfo")]
    return f"{words_of(kinds[0][:1].upper() + kinds[0][1:])} failure" if kinds else "failure"


class FailurePart(Struct, frozen=True, kw_only=True):
    """One of a failure's causes."""

    kind: str
    message: str
    type: str
    stack_trace: str
    details: Any
    """Its further fields, payloads decoded; None when it has none."""


def failure_parts(failure: Any) -> list[FailurePart]:
    """The failure and its causes, each ready to be read."""
    parts = []
    for one in causes(failure):
        infos = [value for name, value in one.items() if name.endswith("FailureInfo") and isinstance(value, dict)]
        info = infos[0] if infos else {}
        parts.append(
            FailurePart(
                kind=_kind_of(one),
                message=str(one.get("message", "")),
                type=str(info.get("type", "")),
                stack_trace=str(one.get("stackTrace", "")),
                details=readable({name: value for name, value in info.items() if name != "type"}) or None,
            )
        )
    return parts
