"""A run over time: its events, and what it still waits for, as lanes of spans and points.

    build(events, pending, …) -> Timeline

One lane each for the workflow tasks, the signals, and what else happens at one moment; one for every activity, timer, child,
update, and call to another execution. Of a long run the lanes show what happens in a window of its events; what began before
the window or goes on behind it reaches to the edge and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct, field

from tinytemporal_site.console.executions.events import Event, last_word, name_in, named_events, number, tell, words_of

MOST_LANES = 150
_AHEAD = 4
_MOMENTS = "Other events"


class Span(Struct, kw_only=True):
    """Something that lasts. `style`: wait, work, retry, good, bad, canceled or open."""

    begin: datetime
    end: datetime
    style: str
    text: str
    event_id: int = 0
    """The event that the span leads to when it is clicked; 0: none."""
    open_left: bool = False
    open_right: bool = False


class Point(Struct, frozen=True, kw_only=True):
    """Something that happens at a moment. `style`: plain, good or bad."""

    at: datetime
    style: str
    text: str
    event_id: int


class Lane(Struct, kw_only=True):
    kind: str
    label: str
    spans: list[Span] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)


class Timeline(Struct, frozen=True, kw_only=True):
    begin: datetime
    end: datetime
    lanes: list[Lane]
    left_out: int
    """Lanes beyond `MOST_LANES`."""


class Pending(Struct, frozen=True, kw_only=True):
    """What a run still waits for, from its state. `event_id`: of the event that it came from."""

    kind: str
    event_id: int
    label: str
    since: datetime
    until: datetime | None = None
    """When it will happen, if that is known: a timer, the next attempt."""
    style: str = "open"
    text: str = ""


_BEGINS = {
    "ActivityTaskScheduled": "activity",
    "TimerStarted": "timer",
    "StartChildWorkflowExecutionInitiated": "child",
    "WorkflowExecutionUpdateAccepted": "update",
    "SignalExternalWorkflowExecutionInitiated": "signal to another",
    "RequestCancelExternalWorkflowExecutionInitiated": "cancel of another",
    "NexusOperationScheduled": "operation",
}
_STARTS = {"ActivityTaskStarted", "ChildWorkflowExecutionStarted", "NexusOperationStarted"}
_ON_THE_WAY = {"ActivityTaskCancelRequested", "NexusOperationCancelRequested", "ActivityPropertiesModifiedExternally"}
_ENDS = {
    "ActivityTaskCompleted": ("activity", "good"),
    "ActivityTaskFailed": ("activity", "bad"),
    "ActivityTaskTimedOut": ("activity", "bad"),
    "ActivityTaskCanceled": ("activity", "canceled"),
    "TimerFired": ("timer", "good"),
    "TimerCanceled": ("timer", "canceled"),
    "StartChildWorkflowExecutionFailed": ("child", "bad"),
    "ChildWorkflowExecutionCompleted": ("child", "good"),
    "ChildWorkflowExecutionFailed": ("child", "bad"),
    "ChildWorkflowExecutionCanceled": ("child", "canceled"),
    "ChildWorkflowExecutionTimedOut": ("child", "bad"),
    "ChildWorkflowExecutionTerminated": ("child", "bad"),
    "WorkflowExecutionUpdateCompleted": ("update", "good"),
    "SignalExternalWorkflowExecutionFailed": ("signal to another", "bad"),
    "ExternalWorkflowExecutionSignaled": ("signal to another", "good"),
    "RequestCancelExternalWorkflowExecutionFailed": ("cancel of another", "bad"),
    "ExternalWorkflowExecutionCancelRequested": ("cancel of another", "good"),
    "NexusOperationCompleted": ("operation", "good"),
    "NexusOperationFailed": ("operation", "bad"),
    "NexusOperationTimedOut": ("operation", "bad"),
    "NexusOperationCanceled": ("operation", "canceled"),
}
_TASK_ENDS = {"WorkflowTaskCompleted": "good", "WorkflowTaskFailed": "bad", "WorkflowTaskTimedOut": "bad"}
_RUN_STYLES = {
    "Running": "open",
    "Paused": "open",
    "Completed": "good",
    "ContinuedAsNew": "good",
    "Canceled": "canceled",
}
_ORDER = ("run", "workflow tasks", "signals", "moments")


def build(
    events: Sequence[Event],
    pending: Sequence[Pending] = (),
    *,
    started_at: datetime,
    closed_at: datetime | None,
    status: str,
    now: datetime,
    has_earlier: bool = False,
    has_later: bool = False,
) -> Timeline:
    """Of all events, or of a window of them when there are earlier or later ones."""
    begin = events[0].time if has_earlier and events else started_at
    end = events[-1].time if has_later and events else closed_at or now
    # Clocks of hosts differ a little, and a timer may lie ahead: it gets a part of the picture, however far it is.
    ahead = [] if has_later or closed_at else [one.until for one in pending if one.until]
    soon = end + max((end - begin) / _AHEAD, timedelta(seconds=1))
    end = max([end, *(event.time for event in events[-1:]), *(min(when, soon) for when in ahead)])
    begin = min([begin, *(event.time for event in events[:1])])
    end = max(end, begin + timedelta(milliseconds=1))
    now = min(max(now, begin), end)
    maker = _Maker(begin=begin, end=end, now=now, is_closed=closed_at is not None)
    for event in events:
        maker.take(event)
    if not has_later:
        for one in pending:
            maker.wait_for(one)
    maker.leave_open(has_later=has_later)
    run = Span(
        begin=begin,
        end=end if has_later else closed_at or now,
        style=_RUN_STYLES.get(status, "bad"),
        text=f"The run: {status}",
        open_left=has_earlier,
        open_right=has_later or closed_at is None,
    )
    lanes = [Lane(kind="run", label="Run", spans=[run]), *maker.lanes()]
    return Timeline(begin=begin, end=end, lanes=lanes[:MOST_LANES], left_out=max(0, len(lanes) - MOST_LANES))


class _Maker:
    """Puts events into lanes, one after the other in their order."""

    def __init__(self, *, begin: datetime, end: datetime, now: datetime, is_closed: bool) -> None:
        self._begin, self._end, self._now = begin, end, now
        self._is_closed = is_closed
        self._single: dict[str, Lane] = {}
        self._own: dict[int, Lane] = {}
        """By the event with which each thing began."""
        self._going: dict[int, Span] = {}
        """The span of each that has not ended yet."""
        self._task: Span | None = None

    def lanes(self) -> list[Lane]:
        single = [self._single[kind] for kind in _ORDER if kind in self._single]
        return [*single, *(self._own[event_id] for event_id in sorted(self._own))]

    def take(self, event: Event) -> None:
        kind = event.type
        if kind.startswith("WorkflowTask"):
            self._workflow_task(event)
        elif kind in _BEGINS:
            self._begin_thing(event, _BEGINS[kind])
        elif kind in _STARTS:
            self._start_thing(event)
        elif kind in _ENDS:
            self._end_thing(event, *_ENDS[kind])
        elif kind in _ON_THE_WAY:
            origin = _origin(event)
            self._lane_of(origin, "activity", event).points.append(_point(event))
        elif kind == "WorkflowExecutionSignaled":
            self._moment("signals", "Signals", event)
        else:
            self._moment("moments", _MOMENTS, event)

    def _workflow_task(self, event: Event) -> None:
        lane = self._single.setdefault("workflow tasks", Lane(kind="workflow tasks", label="Workflow tasks"))
        before, self._task = self._task, None
        if before is not None:
            before.end = event.time
        if event.type == "WorkflowTaskScheduled":
            self._task = _span(event, "wait", f"Waits for a worker (event {event.id})")
            lane.spans.append(self._task)
        elif event.type == "WorkflowTaskStarted":
            if before is None:
                self._cut_off(lane, event)
            self._task = _span(event, "work", f"Worked on (event {event.id}) {tell(event)}")
            lane.spans.append(self._task)
        else:
            ended = before or self._cut_off(lane, event)
            ended.style = _TASK_ENDS.get(event.type, "bad")
            ended.text = f"{words_of(event.type)} (events {ended.event_id} to {event.id}) {tell(event)}"

    def _cut_off(self, lane: Lane, event: Event) -> Span:
        """A task whose beginning lies before the window."""
        span = Span(begin=self._begin, end=event.time, style="wait", text="", event_id=event.id, open_left=True)
        lane.spans.append(span)
        return span

    def _begin_thing(self, event: Event, kind: str) -> None:
        lane = self._lane_of(event.id, kind, event)
        waits = kind in ("activity", "child", "operation")
        span = _span(event, "wait" if waits else "open", f"{words_of(event.type)} (event {event.id}) {tell(event)}")
        lane.spans.append(span)
        self._going[event.id] = span

    def _start_thing(self, event: Event) -> None:
        origin = _origin(event)
        lane = self._lane_of(origin, _kind_of_start(event.type), event)
        attempt = number(event.attributes.get("attempt"))
        waited = self._going.pop(origin, None)
        if waited is not None:
            waited.end = event.time
        else:
            waited = Span(begin=self._begin, end=event.time, style="wait", text="", open_left=True)
            lane.spans.append(waited)
        if attempt > 1:
            lane.label = f"{lane.label} ×{attempt}"
            waited.style = "retry"
            failure = event.attributes.get("lastFailure")
            message = str(failure.get("message", "")) if isinstance(failure, dict) else ""
            waited.text = f"{attempt - 1} failed attempts: {message}" if attempt > 2 else f"A failed attempt: {message}"
        span = _span(event, "open", f"{words_of(event.type)} (event {event.id}) {tell(event)}")
        lane.spans.append(span)
        self._going[origin] = span

    def _end_thing(self, event: Event, kind: str, style: str) -> None:
        origin = _origin(event)
        lane = self._lane_of(origin, kind, event)
        span = self._going.pop(origin, None)
        if span is None:
            span = Span(begin=self._begin, end=event.time, style=style, text="", open_left=True)
            lane.spans.append(span)
        failed_outcome = isinstance(outcome := event.attributes.get("outcome"), dict) and "failure" in outcome
        span.end, span.style = event.time, "bad" if failed_outcome else style
        span.text = f"{words_of(event.type)} (event {event.id}) {tell(event)}"
        span.event_id = event.id

    def _moment(self, kind: str, label: str, event: Event) -> None:
        self._single.setdefault(kind, Lane(kind=kind, label=label)).points.append(_point(event))

    def _lane_of(self, origin: int, kind: str, event: Event) -> Lane:
        return self._own.setdefault(origin, Lane(kind=kind, label=label_of(kind, event, origin)))

    def wait_for(self, one: Pending) -> None:
        """Something of the state that the run waits for: it says more than the event with which it began."""
        if one.kind == "workflow task":
            # Attempts of one that keeps failing have no events of their own.
            if self._task is None:
                lane = self._single.setdefault("workflow tasks", Lane(kind="workflow tasks", label="Workflow tasks"))
                begin = max(self._begin, min(one.since, self._now))
                lane.spans.append(Span(begin=begin, end=self._now, style=one.style, text=one.text, open_right=True))
            return
        lane = self._own.setdefault(one.event_id, Lane(kind=one.kind, label=one.label))
        span = self._going.pop(one.event_id, None)
        if span is None:
            span = Span(begin=self._begin, end=self._end, style="open", text="", event_id=one.event_id, open_left=True)
            lane.spans.append(span)
        span.end, span.style = self._now, one.style
        span.text = one.text or span.text
        span.open_right = one.until is None
        if one.until is not None and self._now < one.until:
            until = min(one.until, self._end)
            text = f"Due at {one.until.isoformat(sep=' ', timespec='seconds')}"
            lane.spans.append(
                Span(
                    begin=self._now,
                    end=until,
                    style="ahead",
                    text=text,
                    event_id=one.event_id,
                    open_right=until < one.until,
                )
            )

    def leave_open(self, *, has_later: bool) -> None:
        """What has not ended in the window goes on behind it, or until now; what the run's end cut off ends with it."""
        for span in [*self._going.values(), *([self._task] if self._task is not None else [])]:
            span.end = self._end if has_later or self._is_closed else self._now
            span.open_right = has_later or not self._is_closed
            if self._is_closed and not has_later:
                span.style = "canceled"
                span.text = f"{span.text} (the run ended first)"


def label_of(kind: str, event: Event, origin: int) -> str:
    """The thing's name: of the event with which it began, or of what a later one tells of it."""
    attributes = event.attributes
    name = name_in(attributes, "activityType") or name_in(attributes, "workflowType")
    named = str(attributes.get("timerId") or attributes.get("signalName") or attributes.get("operation") or "")
    key = str(attributes.get("activityId") or "") or _child_id(attributes)
    if name:
        return f"{name} ({key})" if key else name
    return f"{kind} {named or _update_name(attributes) or f'#{origin}'}"


def _child_id(attributes: dict[str, Any]) -> str:
    execution = attributes.get("workflowExecution")
    return (
        str(execution.get("workflowId", "")) if isinstance(execution, dict) else str(attributes.get("workflowId", ""))
    )


def _update_name(attributes: dict[str, Any]) -> str:
    request = attributes.get("acceptedRequest")
    given = request.get("input") if isinstance(request, dict) else None
    meta = attributes.get("meta")
    if isinstance(given, dict):
        return str(given.get("name", ""))
    return str(meta.get("updateId", "")) if isinstance(meta, dict) else ""


def _origin(event: Event) -> int:
    """The event with which the thing began that this one is about."""
    named = {word: event_id for event_id, word in named_events(event)}
    for word in ("scheduled", "initiated", "accepted", "started"):
        if word in named:
            return named[word]
    return event.id


def _kind_of_start(event_type: str) -> str:
    return (
        "activity" if event_type.startswith("Activity") else "child" if event_type.startswith("Child") else "operation"
    )


def _span(event: Event, style: str, text: str) -> Span:
    return Span(begin=event.time, end=event.time, style=style, text=text.strip(), event_id=event.id)


def _point(event: Event) -> Point:
    bad = event.type.endswith(("Failed", "TimedOut", "Terminated", "Rejected"))
    style = "bad" if bad else "good" if last_word(event.type) == "completed" else "plain"
    return Point(
        at=event.time,
        style=style,
        text=f"{words_of(event.type)} (event {event.id}) {tell(event)}".strip(),
        event_id=event.id,
    )
