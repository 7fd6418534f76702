"""What of a run's state its events determine, and how two states differ in that.

    differences(stored, folded) -> list[str]     "field: stored … , from events …", empty when they agree

Fields listed here as LIVE are kept outside the history, as upstream keeps them: who is trying what at the moment, what workers
said on the way, and what only callers know. Everything else must come out of the events again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from temporalio.api.common.v1 import Payload

from common.records import Record
from history.records import ExecutionInfo, NexusOperationItem, RunVersioning
from history.state import ExecutionState
from history.transitions.close import is_open

LIVE = frozenset(
    (
        # what only callers know
        "namespace_id", "create_request_id", "cancel_request_id", "reset_to_run_id", "reset_request_id",
        "delete_when_called",
        # when to look again, and bookkeeping
        "deadline_at", "state_transition_count",
        # the pending workflow task (compared apart) and its attempts
        "workflow_task", "task_failures", "last_task_failure_category", "last_task_failure_cause", "first_task_pending",
        # what workers say with a completion, beside its event
        "sticky_queue", "sticky_schedule_to_start", "worker_stamp", "last_worker_identity", "sdk_name", "sdk_version",
        "assigned_build_id", "build_redirects",
        # compared apart
        "search_attributes", "versioning",
    )
)  # fmt: skip
LIVE_SEARCH_ATTRIBUTES = frozenset(
    (
        "BuildIds", "TemporalReportedProblems", "TemporalPauseInfo", "TemporalWorkerDeployment",
        "TemporalWorkerDeploymentVersion", "TemporalWorkflowVersioningBehavior", "TemporalUsedWorkerDeploymentVersions",
    )
)  # fmt: skip
"""Set by the server itself, without an event."""

ACTIVITY_FIELDS = ("activity_id", "activity_type", "first_scheduled_at", "cancel_requested_event_id")
"""The rest of a pending activity may be changed by its attempts and by UpdateActivityOptions."""
TIMER_FIELDS = ("started_event_id", "fires_at")
CHILD_FIELDS = ("namespace", "workflow_id", "workflow_type", "run_id", "started_event_id", "parent_close_policy")
CALLBACK_FIELDS = ("callback", "request_id", "update_id", "registered_at")
"""How often it was tried and what came of it are no events."""
NEXUS_OPERATION_FIELDS = (
    "endpoint", "endpoint_id", "service", "operation", "request_id", "scheduled_at", "schedule_to_close",
    "schedule_to_start", "start_to_close", "operation_token", "started_at",
)  # fmt: skip
"""What its attempts, and those of its cancellation, came to is in the history once it is settled."""
UPDATE_FIELDS = ("state", "accepted_event_id", "completed_event_id", "outcome")

INFO_FIELDS = tuple(name for name in ExecutionInfo.__struct_fields__ if name not in LIVE)


def differences(stored: ExecutionState, folded: ExecutionState) -> list[str]:
    return list(_differences(stored, folded))


def _said(versioning: RunVersioning | None) -> tuple[object, ...] | None:
    """What events tell of a run's worker deployment version: not where it is on its way to, nor what its worker was told."""
    said = versioning and (versioning.behavior, versioning.version, versioning.initial)
    return said if said and any(said) else None


def _differences(stored: ExecutionState, folded: ExecutionState) -> Iterator[str]:
    for name in INFO_FIELDS:
        yield from _unequal(name, getattr(stored.info, name), getattr(folded.info, name))
    yield from _unequal(
        "search_attributes", _lasting(stored.info.search_attributes), _lasting(folded.info.search_attributes)
    )
    yield from _unequal("versioning", _said(stored.info.versioning), _said(folded.info.versioning))
    yield from _task(stored.info, folded.info)
    yield from _items("activity", stored.activities, folded.activities, ACTIVITY_FIELDS)
    yield from _items("timer", stored.timers, folded.timers, TIMER_FIELDS)
    if is_open(stored.info.status):  # a closed run's children go when its close task is done
        yield from _items("child", stored.children, folded.children, CHILD_FIELDS)
    yield from _items("externalSignal", stored.external_signals, folded.external_signals, ("initiated_event_id",))
    yield from _items("externalCancel", stored.external_cancels, folded.external_cancels, ("initiated_event_id",))
    yield from _items("update", stored.updates, folded.updates, UPDATE_FIELDS)
    yield from _items("requestId", stored.request_ids, folded.request_ids, ("event_type", "event_id"))
    yield from _items("callback", stored.callbacks, folded.callbacks, CALLBACK_FIELDS)
    yield from _items("nexusOperation", stored.nexus_operations, folded.nexus_operations, NEXUS_OPERATION_FIELDS)
    for key in stored.nexus_operations.keys() & folded.nexus_operations.keys():
        ours, theirs = (_settled(side.nexus_operations[key]) for side in (stored, folded))
        yield from _unequal(f"nexusOperation {key}.cancellation", ours, theirs)


def _settled(item: NexusOperationItem) -> tuple[int, str]:
    """What the history knows of an operation's cancellation."""
    asked = item.cancellation
    if asked is None:
        return 0, ""
    return asked.requested_event_id, "scheduled" if asked.state == "backingOff" else asked.state


def _lasting(attributes: Mapping[str, Payload]) -> dict[str, Payload]:
    return {name: value for name, value in attributes.items() if name not in LIVE_SEARCH_ATTRIBUTES}


def _task(stored: ExecutionInfo, folded: ExecutionInfo) -> Iterator[str]:
    """A task whose events are written is pending in both, or it has been replaced by a transient attempt."""
    ours, theirs = stored.workflow_task, folded.workflow_task
    if theirs is not None and (ours is None or ours.attempt == 1):
        for name in ("scheduled_event_id", "started_event_id", "scheduled_at", "started_at"):
            yield from _unequal(f"workflow_task.{name}", getattr(ours, name, None), getattr(theirs, name))
    elif theirs is None and ours is not None and ours.attempt == 1 and ours.kind == "normal":
        yield f"workflow_task: stored {ours.scheduled_event_id}, from events none"


def _items(
    kind: str, stored: Mapping[Any, Record], folded: Mapping[Any, Record], fields: tuple[str, ...]
) -> Iterator[str]:
    for key in stored.keys() | folded.keys():
        ours, theirs = stored.get(key), folded.get(key)
        if ours is None or theirs is None:
            yield f"{kind} {key}: {'not stored' if ours is None else 'stored'}, {'in' if theirs else 'not in'} the events"
            continue
        for name in fields:
            yield from _unequal(f"{kind} {key}.{name}", getattr(ours, name), getattr(theirs, name))


def _unequal(name: str, stored: object, folded: object) -> Iterator[str]:
    if stored != folded:
        yield f"{name}: stored {_shown(stored)}, from events {_shown(folded)}"


def _shown(value: object) -> str:
    text = " ".join(str(value).split()) if value not in (None, "") else repr(value)
    return text if len(text) <= 200 else text[:200] + "…"
