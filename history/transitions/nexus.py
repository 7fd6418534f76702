"""Nexus operations that a run calls, from their scheduling to their end.

    dispatch_start(draft, item), dispatch_cancel(draft, item)       have it called, by a transfer task
    record_start(work, attempt, result, *, jitter) -> None          what came of one try to start it
    record_cancel(work, attempt, result, *, jitter) -> None         what came of one try to cancel it
    put_off(work, attempt, *, until, cancel) -> None                a try that was not made: the endpoint is held back
    complete_operation(work, completion) -> None                    its handler says how it ended
    time_out_operations(draft) -> bool                              those whose time is up; whether any was
    retry_start(draft, task), retry_cancel(draft, task)             a back-off is over
    operation_timeouts(item)                                        when each timeout falls due

    scheduled ──called──► started ──completion──► completed, failed, canceled
      ▲    │ ├──answered at once──► completed, failed, canceled
      │    │ ├──refused for good──► failed
      │    │ └──put off: stays scheduled, a timer brings it back
      └─ backingOff ◄──failed, to be tried again
    each of them ──time is up──► timed out
    its cancellation: unstarted ──started──► scheduled ⇄ backingOff, then succeeded or failed

Source: upstream's components/nexusoperations/{statemachine,executors,completion}.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from google.protobuf.message import Message
from msgspec import Struct, field
from msgspec.structs import replace
from temporalio.api.common.v1 import Link, Payload
from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.failure.v1 import CanceledFailureInfo, Failure, NexusOperationFailureInfo, TimeoutFailureInfo
from temporalio.api.history.v1 import (
    NexusOperationCanceledEventAttributes,
    NexusOperationCancelRequestCompletedEventAttributes,
    NexusOperationCancelRequestFailedEventAttributes,
    NexusOperationCompletedEventAttributes,
    NexusOperationFailedEventAttributes,
    NexusOperationStartedEventAttributes,
    NexusOperationTimedOutEventAttributes,
)

from common.contracts.history import NexusCompletion
from common.errors import NotFound
from history.config import HistoryConfig
from history.events import add_event
from history.failures import stored_failure
from history.records import NexusCancellation, NexusOperationItem, TimerKind, TimerTask
from history.state import Draft
from history.transitions import standalone_operations as standalone
from history.transitions.close import is_open
from history.transitions.deadlines import Timeout, lower_deadline, operation_timeouts
from history.transitions.tasks import add_timer_task, add_transfer_task
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace

SCHEDULE_TO_START = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
BACKOFF_COEFFICIENT = 2
JITTER_PORTION = 0.2
NOT_FOUND = "operation not found"

Settled = Literal["started", "completed", "failed", "canceled", "refused", "retry", "timedOut"]


class Attempt(Struct, kw_only=True, frozen=True):
    """One try to start or to cancel an operation; `attempt` tries were made before it."""

    run_id: str
    scheduled_event_id: int
    attempt: int


class CallResult(Struct, kw_only=True):
    """What came of a call. `failed` and `canceled` are the operation's own ends; `refused` is for good, `retry` may be better
    next time, `timedOut` had no time to be made."""

    state: Settled
    payload: Payload | None = None
    failure: Failure | None = None
    token: str = ""
    links: list[Link] = field(default_factory=list)
    timeout_type: TimeoutType.ValueType = TimeoutType.TIMEOUT_TYPE_UNSPECIFIED
    is_destination_down: bool = False
    """Whether its endpoint is at fault, for the circuit breaker."""


def dispatch_start(draft: Draft, item: NexusOperationItem) -> None:
    add_transfer_task(draft, "startNexusOperation", item.scheduled_event_id, attempt=item.attempt)
    for when, _ in operation_timeouts(item):
        lower_deadline(draft, when)


def dispatch_cancel(draft: Draft, item: NexusOperationItem) -> None:
    """Nothing when the operation is not to be canceled now."""
    if item.cancellation is not None and item.cancellation.state == "scheduled":
        attempt = item.cancellation.attempt
        add_transfer_task(draft, "cancelNexusOperation", item.scheduled_event_id, attempt=attempt)


def rearm(draft: Draft) -> None:
    """After a reset: set going what was under way in the other run. Handlers know the request ids."""
    for item in draft.nexus_operations.values():
        if item.state == "started":
            dispatch_cancel(draft, item)
        else:
            dispatch_start(draft, item)


# --- starting


def record_start(work: Workspace, attempt: Attempt, result: CallResult, *, jitter: float = 0.0) -> None:
    """Nothing for an operation that has ended or started meanwhile. `jitter` in [0, 1) spreads the retries."""
    draft = work.find(attempt.run_id)
    item = _tried(draft, attempt)
    if draft is None or item is None:
        return
    if result.state == "retry":
        tried = replace(item, attempt=item.attempt + 1, last_attempt_at=work.now)
        due = work.now + backoff(tried.attempt, config=work.config, jitter=jitter)
        tried = replace(tried, state="backingOff", next_attempt_at=due, last_failure=stored_failure(result.failure))
        draft.nexus_operations[item.scheduled_event_id] = tried
        add_timer_task(draft, "nexusStartRetry", due, event_id=item.scheduled_event_id, attempt=tried.attempt)
        standalone.note_change(draft)
        return
    if result.state == "started":
        start_operation(draft, item, token=result.token, links=result.links)
        started = draft.nexus_operations[item.scheduled_event_id]
        draft.nexus_operations[item.scheduled_event_id] = replace(
            started, attempt=item.attempt + 1, last_attempt_at=work.now, last_failure=None
        )
    else:
        _end(draft, item, result, of_attempt=True)
    _tell_worker(draft)


def start_operation(
    draft: Draft, item: NexusOperationItem, *, token: str, links: list[Link], at: datetime | None = None
) -> None:
    """`at`: when its handler says that it began."""
    if draft.info.archetype:
        standalone.start(draft, item, token=token, links=links, at=at)
    else:
        add_event(
            draft,
            NexusOperationStartedEventAttributes(
                scheduled_event_id=item.scheduled_event_id,
                operation_token=token,
                operation_id=token,
                request_id=item.request_id,
            ),
            links=links,
            event_time=at,
        )
    started = draft.nexus_operations[item.scheduled_event_id]
    for when, _ in operation_timeouts(started):
        lower_deadline(draft, when)
    dispatch_cancel(draft, started)


def _tell_worker(draft: Draft) -> None:
    """An operation without a workflow has none to tell."""
    if not draft.info.archetype:
        schedule_workflow_task(draft)


def _end(draft: Draft, item: NexusOperationItem, result: CallResult, *, of_attempt: bool = False) -> None:
    """`of_attempt`: it is the answer to a try to start it."""
    if draft.info.archetype:
        failure = _timed_out(result.timeout_type) if result.state == "timedOut" else result.failure
        standalone.end(
            draft,
            item,
            standalone.ENDS[result.state],
            payload=result.payload,
            failure=failure,
            links=result.links,
            of_attempt=of_attempt,
        )
        return
    attributes: Message
    same = {"scheduled_event_id": item.scheduled_event_id, "request_id": item.request_id}
    failure = result.failure
    match result.state:
        case "completed":
            attributes = NexusOperationCompletedEventAttributes(result=result.payload, **same)  # type: ignore[arg-type]
        case "canceled":
            attributes = NexusOperationCanceledEventAttributes(
                failure=operation_failure(item, as_canceled(failure or Failure())),
                **same,  # type: ignore[arg-type]
            )
        case "timedOut":
            attributes = NexusOperationTimedOutEventAttributes(
                failure=operation_failure(item, _timed_out(result.timeout_type)),
                **same,  # type: ignore[arg-type]
            )
        case _:
            attributes = NexusOperationFailedEventAttributes(
                failure=operation_failure(item, failure or Failure()),
                **same,  # type: ignore[arg-type]
            )
    add_event(draft, attributes, links=result.links)


def operation_failure(item: NexusOperationItem, cause: Failure) -> Failure:
    info = NexusOperationFailureInfo(
        scheduled_event_id=item.scheduled_event_id,
        endpoint=item.endpoint,
        service=item.service,
        operation=item.operation,
        operation_token=item.operation_token,
        operation_id=item.operation_token,
    )
    return Failure(
        message="nexus operation completed unsuccessfully", nexus_operation_execution_failure_info=info, cause=cause
    )


def as_canceled(failure: Failure) -> Failure:
    """Old SDKs say why an operation was canceled with other kinds of failures."""
    if failure.HasField("canceled_failure_info"):
        return failure
    return Failure(
        message=failure.message,
        stack_trace=failure.stack_trace,
        canceled_failure_info=CanceledFailureInfo(),
        cause=failure.cause if failure.HasField("cause") else None,
    )


def _timed_out(kind: TimeoutType.ValueType) -> Failure:
    return Failure(message="operation timed out", timeout_failure_info=TimeoutFailureInfo(timeout_type=kind))


def retry_start(draft: Draft, task: TimerTask) -> None:
    item = draft.nexus_operations.get(task.command_sequence)
    if item is None or item.attempt != task.attempt or item.state == "started":
        return
    item = replace(item, state="scheduled", next_attempt_at=None)
    draft.nexus_operations[item.scheduled_event_id] = item
    standalone.note_change(draft)
    add_transfer_task(draft, "startNexusOperation", item.scheduled_event_id, attempt=item.attempt)


# --- canceling


def record_cancel(work: Workspace, attempt: Attempt, result: CallResult, *, jitter: float = 0.0) -> None:
    """Its end says the handler later, if ever."""
    draft = work.find(attempt.run_id)
    item, asked = _canceling(draft, attempt)
    if draft is None or item is None or asked is None:
        return
    if result.state == "retry":
        tried = asked.attempt + 1
        due = work.now + backoff(tried, config=work.config, jitter=jitter)
        asked = replace(
            asked,
            attempt=tried,
            state="backingOff",
            last_attempt_at=work.now,
            last_failure=stored_failure(result.failure),
            next_attempt_at=due,
        )
        draft.nexus_operations[item.scheduled_event_id] = replace(item, cancellation=asked)
        add_timer_task(draft, "nexusCancelRetry", due, event_id=item.scheduled_event_id, attempt=tried)
        standalone.note_change(draft)
        return
    if draft.info.archetype:
        standalone.settle_cancellation(draft, item, failure=None if result.state == "completed" else result.failure)
        return
    same = {"scheduled_event_id": item.scheduled_event_id, "requested_event_id": asked.requested_event_id}
    if result.state == "completed":
        add_event(draft, NexusOperationCancelRequestCompletedEventAttributes(**same), worker_may_ignore=True)
    else:
        failed = NexusOperationCancelRequestFailedEventAttributes(failure=result.failure or Failure(), **same)
        add_event(draft, failed, worker_may_ignore=True)
    item = draft.nexus_operations[item.scheduled_event_id]
    assert item.cancellation is not None
    settled = replace(item.cancellation, attempt=asked.attempt + 1)
    draft.nexus_operations[item.scheduled_event_id] = replace(item, cancellation=settled)
    schedule_workflow_task(draft)


def retry_cancel(draft: Draft, task: TimerTask) -> None:
    item = draft.nexus_operations.get(task.command_sequence)
    asked = item.cancellation if item is not None else None
    if item is None or asked is None or asked.attempt != task.attempt:
        return
    if asked.state not in ("scheduled", "backingOff"):
        return
    item = replace(item, cancellation=replace(asked, state="scheduled", next_attempt_at=None))
    draft.nexus_operations[item.scheduled_event_id] = item
    standalone.note_change(draft)
    dispatch_cancel(draft, item)


# --- both


def put_off(work: Workspace, attempt: Attempt, *, until: datetime, cancel: bool) -> None:
    draft = work.find(attempt.run_id)
    item = _canceling(draft, attempt)[0] if cancel else _tried(draft, attempt)
    if draft is not None and item is not None:
        kind: TimerKind = "nexusCancelRetry" if cancel else "nexusStartRetry"
        add_timer_task(draft, kind, until, event_id=item.scheduled_event_id, attempt=attempt.attempt)


def backoff(attempt: int, *, config: HistoryConfig, jitter: float) -> timedelta:
    """The wait after try number `attempt`: doubled each time up to the longest, less up to a fifth."""
    wait = config.nexus_retry_first * float(BACKOFF_COEFFICIENT) ** min(attempt - 1, 30)
    wait = min(wait, config.nexus_retry_longest)
    return wait * (1 - JITTER_PORTION + JITTER_PORTION * jitter)


def _tried(draft: Draft | None, attempt: Attempt) -> NexusOperationItem | None:
    """The operation, unless another try has been recorded since."""
    item = draft.nexus_operations.get(attempt.scheduled_event_id) if draft is not None else None
    return item if item is not None and item.state == "scheduled" and item.attempt == attempt.attempt else None


def _canceling(
    draft: Draft | None, attempt: Attempt
) -> tuple[NexusOperationItem, NexusCancellation] | tuple[None, None]:
    item = draft.nexus_operations.get(attempt.scheduled_event_id) if draft is not None else None
    asked = item.cancellation if item is not None else None
    if item is None or asked is None or asked.state != "scheduled" or asked.attempt != attempt.attempt:
        return None, None
    return item, asked


# --- ends


def complete_operation(work: Workspace, completion: NexusCompletion, *, run_id: str) -> None:
    """Adds the start as well when the completion is quicker than the answer to the call. Raises NOT_FOUND when the run does
    not wait for the operation."""
    draft = work.run(run_id)
    if not is_open(draft.info.status):
        raise NotFound("workflow execution already completed")
    item = draft.nexus_operations.get(completion.scheduled_event_id)
    if item is None or (completion.request_id and item.request_id != completion.request_id):
        raise NotFound(NOT_FOUND)
    if item.state != "started":
        start_operation(draft, item, token=completion.operation_token, links=completion.links, at=completion.started_at)
    item = draft.nexus_operations[completion.scheduled_event_id]
    _end(draft, item, CallResult(state=completion.state, payload=completion.payload, failure=completion.failure))
    _tell_worker(draft)


def time_out_operations(draft: Draft) -> bool:
    """In order of time, then of their scheduling. The first timeout of an operation is the one it gets."""
    now = draft.work.now
    due: list[tuple[datetime, int, TimeoutType.ValueType]] = []
    for item in draft.nexus_operations.values():
        timeouts: list[Timeout] = operation_timeouts(item)
        if timeouts and timeouts[0][0] <= now:
            due.append((timeouts[0][0], item.scheduled_event_id, timeouts[0][1]))
    for _, scheduled_event_id, kind in sorted(due):
        ended = CallResult(state="timedOut", timeout_type=kind)
        _end(draft, draft.nexus_operations[scheduled_event_id], ended)
    return bool(due)
