"""What must hold of any run at any time, beside what `history.verify` looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.protos import attributes_of
from history.state import ExecutionState
from history.transitions.close import is_open
from tests.history.crashing_hosts import CrashingHost

# What is begun: the events that end it, and their field that names its event.
ENDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "WORKFLOW_TASK_SCHEDULED": (
        "scheduled_event_id",
        ("WORKFLOW_TASK_COMPLETED", "WORKFLOW_TASK_FAILED", "WORKFLOW_TASK_TIMED_OUT"),
    ),
    "ACTIVITY_TASK_SCHEDULED": (
        "scheduled_event_id",
        ("ACTIVITY_TASK_COMPLETED", "ACTIVITY_TASK_FAILED", "ACTIVITY_TASK_TIMED_OUT", "ACTIVITY_TASK_CANCELED"),
    ),
    "TIMER_STARTED": ("started_event_id", ("TIMER_FIRED", "TIMER_CANCELED")),
    "START_CHILD_WORKFLOW_EXECUTION_INITIATED": (
        "initiated_event_id",
        (
            "START_CHILD_WORKFLOW_EXECUTION_FAILED",
            "CHILD_WORKFLOW_EXECUTION_COMPLETED",
            "CHILD_WORKFLOW_EXECUTION_FAILED",
            "CHILD_WORKFLOW_EXECUTION_CANCELED",
            "CHILD_WORKFLOW_EXECUTION_TIMED_OUT",
            "CHILD_WORKFLOW_EXECUTION_TERMINATED",
        ),
    ),
    "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": (
        "initiated_event_id",
        ("SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED"),
    ),
    "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": (
        "initiated_event_id",
        ("REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED", "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED"),
    ),
    "WORKFLOW_EXECUTION_UPDATE_ACCEPTED": ("accepted_event_id", ("WORKFLOW_EXECUTION_UPDATE_COMPLETED",)),
}
STARTS = {
    "WORKFLOW_TASK_STARTED": "scheduled_event_id",
    "ACTIVITY_TASK_STARTED": "scheduled_event_id",
    "CHILD_WORKFLOW_EXECUTION_STARTED": "initiated_event_id",
}


def name_of(event: HistoryEvent) -> str:
    return EventType.Name(event.event_type).removeprefix("EVENT_TYPE_")


def faults(host: CrashingHost) -> list[str]:
    return [fault for run_id in host.states for fault in _faults(host, run_id)]


def _faults(host: CrashingHost, run_id: str) -> Iterator[str]:
    state = host.states[run_id]
    buffered = [item.event for item in sorted(state.buffered.values(), key=lambda item: item.order)]
    yield from ends_once([*host.events[run_id], *buffered], state)
    if is_open(state.info.status):
        yield from lost_wakeups(host, state)
    else:
        yield from left_behind(host, state)


def ends_once(events: Iterable[HistoryEvent], state: ExecutionState) -> Iterator[str]:
    """Everything begun ends at most once, after it began; what has not ended is pending while the run is open."""
    begun: dict[str, set[int]] = {kind: set() for kind in ENDS}
    ended: dict[str, Counter[int]] = {kind: Counter() for kind in ENDS}
    started: dict[str, Counter[int]] = {kind: Counter() for kind in STARTS}
    kinds = {end: (kind, names) for kind, (names, ends) in ENDS.items() for end in ends}
    for event in events:
        name = name_of(event)
        if name in begun:
            begun[name].add(event.event_id)
        if name in STARTS:
            started[name][getattr(attributes_of(event), STARTS[name])] += 1
        if name in kinds:
            kind, field = kinds[name]
            of = getattr(attributes_of(event), field)
            ended[kind][of] += 1
            if of not in begun[kind] and kind != "WORKFLOW_TASK_SCHEDULED":
                yield f"{name} of {of}, which was not begun"
    for kind, counts in (*ended.items(), *started.items()):
        yield from (f"{kind} {of}: {count} times" for of, count in counts.items() if count > 1)
    if not is_open(state.info.status):
        return
    pending = {
        "ACTIVITY_TASK_SCHEDULED": set(state.activities),
        "TIMER_STARTED": {item.started_event_id for item in state.timers.values()},
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED": set(state.children),
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": set(state.external_signals),
        "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": set(state.external_cancels),
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED": {
            item.accepted_event_id for item in state.updates.values() if item.state == "accepted"
        },
    }
    for kind, waiting in pending.items():
        if waiting != begun[kind] - ended[kind].keys():
            yield f"{kind}: pending {sorted(waiting)}, begun and not ended {sorted(begun[kind] - ended[kind].keys())}"


def lost_wakeups(host: CrashingHost, state: ExecutionState) -> Iterator[str]:
    """What waits for time has a row or the run's deadline."""
    run_id = state.info.run_id
    rows = [task for task in host.timer_tasks.values() if task.run_id == run_id]
    timers = {task.task_id for task in rows if task.kind == "userTimer"}
    yield from (f"timer {item.timer_id} has no row" for item in state.timers.values() if item.task_id not in timers)
    retries = {(task.command_sequence, task.attempt, task.stamp) for task in rows if task.kind == "activityRetry"}
    for item in state.activities.values():
        waits = item.retry_at is not None and item.paused_at is None and state.info.pause is None
        if waits and (item.scheduled_event_id, item.attempt, item.stamp) not in retries:
            yield f"the retry of activity {item.activity_id} has no row"
    if state.info.first_task_pending and not any(task.kind == "workflowBackoff" for task in rows):
        yield "the first workflow task's back-off has no row"


def left_behind(host: CrashingHost, state: ExecutionState) -> Iterator[str]:
    """Nothing is pending after the close, but children and callbacks as long as a task for them is."""
    for name in ("activities", "timers", "external_signals", "external_cancels", "buffered", "admitted"):
        if getattr(state, name):
            yield f"{name} after the close"
    if state.info.workflow_task is not None or state.speculative_task is not None:
        yield "a workflow task after the close"
    run_id = state.info.run_id
    kinds = {task.kind for task in host.transfer_tasks if task.run_id == run_id}
    if state.children and not kinds & {"closeExecution", "deleteExecution"}:
        yield "children after the close, and no task for them"
    rows = {task.command_sequence for task in host.timer_tasks.values() if task.run_id == run_id}
    rows |= {task.event_id for task in host.transfer_tasks if task.run_id == run_id and task.kind == "invokeCallback"}
    for item in state.callbacks.values():
        if item.state in ("scheduled", "backingOff") and item.number not in rows:
            yield f"callback {item.number} is {item.state} and has no row"
    yield from (
        f"a row for timer {task.timer_id} after the close"
        for task in host.timer_tasks.values()
        if task.run_id == run_id and task.kind == "userTimer"
    )
