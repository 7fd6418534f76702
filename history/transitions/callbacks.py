"""Completion callbacks: HTTP calls that tell others how a chain of runs, or an update, ended.

    check_callbacks_limit(draft, more, *, update_id="") -> None     before more are attached
    schedule_callbacks(draft) -> None                       the chain has ended: make them, those of updates too
    schedule_update_callbacks(draft) -> None                the run has ended, its chain goes on: those of updates
    schedule_settled(draft) -> None                         those of updates that are completed
    reject_callbacks(draft, update_id, failure) -> None     an update that has callbacks was rejected
    chain_callbacks(draft) -> list[Callback]                those that the chain's next run takes over
    record_attempt(work, attempt, ...) -> None              what came of one try
    put_off(work, attempt, *, until) -> None                a try that was not made, since its destination is held back
    retry_callback(draft, *, number, attempt) -> None       a back-off is over
    untried(draft) -> bool                                  whether any that is due was never tried

    standby ──close──► scheduled ──done──► succeeded
                        ▲     │ ├──refused for good──► failed
                        │     │ └──put off: stays scheduled, a timer brings it back
                        └─ backingOff ◄──failed, to be tried again

A run that is deleted goes once each of its callbacks had one try: `record_attempt` and `put_off` tell their caller when that is so.
A scheduled callback has an `invokeCallback` transfer task or a `callbackRetry` timer, one in back-off has its timer. There is
no last attempt: retention ends them.
Source: upstream's chasm/lib/callback/statemachine.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.common.v1 import Callback
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure

from common.errors import FailedPrecondition
from history.config import HistoryConfig
from history.failures import stored_failure
from history.records import CallbackItem
from history.state import Draft
from history.transitions.tasks import add_timer_task, add_transfer_task
from history.workspace import Workspace

BACKOFF_COEFFICIENT = 2
JITTER_PORTION = 0.2
TO_MAKE = frozenset(("scheduled", "backingOff"))


class Attempt(Struct, kw_only=True, frozen=True):
    """One try of one callback; `attempt` tries were made before it."""

    run_id: str
    number: int
    attempt: int


def check_callbacks_limit(draft: Draft, more: int, *, update_id: str = "") -> None:
    """Raises FAILED_PRECONDITION. `update_id`: they are attached to that update, which has a limit of its own."""
    config = draft.work.config
    _check_limit(more, present=len(draft.callbacks), limit=config.callbacks_limit)
    if update_id:
        _check_limit(more, present=len(_of_update(draft, update_id)), limit=config.update_callbacks_limit)


def _check_limit(more: int, *, present: int, limit: int) -> None:
    if present + more > limit:
        raise FailedPrecondition(
            f"cannot attach more than {limit} callbacks to a workflow ({present} callbacks already attached)"
        )


def _of_update(draft: Draft, update_id: str) -> list[CallbackItem]:
    return [item for item in draft.callbacks.values() if item.update_id == update_id]


def chain_callbacks(draft: Draft) -> list[Callback]:
    return [item.callback for item in draft.callbacks.values() if not item.update_id]


def untried(draft: Draft) -> bool:
    return any(item.state == "scheduled" and not item.attempt for item in draft.callbacks.values())


def schedule_callbacks(draft: Draft) -> None:
    for item in list(draft.callbacks.values()):
        if item.state == "standby":
            _schedule(draft, item)


def schedule_update_callbacks(draft: Draft) -> None:
    for item in list(draft.callbacks.values()):
        if item.state == "standby" and item.update_id:
            _schedule(draft, item)


def schedule_settled(draft: Draft) -> None:
    for item in list(draft.callbacks.values()):
        update = draft.updates.get(item.update_id) if item.update_id else None
        if item.state == "standby" and update is not None and update.state == "completed":
            _schedule(draft, item)


def reject_callbacks(draft: Draft, update_id: str, failure: Failure) -> None:
    for item in _of_update(draft, update_id):
        if item.state == "standby":
            _schedule(draft, replace(item, rejection=failure))


def _schedule(draft: Draft, item: CallbackItem) -> None:
    draft.callbacks[item.number] = replace(item, state="scheduled", next_attempt_at=None)
    add_transfer_task(draft, "invokeCallback", item.number, attempt=item.attempt)


def record_attempt(
    work: Workspace, attempt: Attempt, *, error: str = "", retryable: bool = True, jitter: float = 0.0
) -> bool:
    """`error`: why it failed, empty when it did not. `jitter` in [0, 1) spreads the retries. Returns whether the run is
    to be removed now."""
    draft = work.find(attempt.run_id)
    item = _tried(draft, attempt)
    if draft is None or item is None:
        return False
    item = replace(item, attempt=item.attempt + 1, last_attempt_at=work.now, next_attempt_at=None)
    if not error:
        draft.callbacks[item.number] = replace(item, state="succeeded", last_failure=None)
    else:
        item = replace(item, last_failure=_failure(error, non_retryable=not retryable))
        if retryable:
            due = work.now + backoff(item.attempt, config=work.config, jitter=jitter)
            draft.callbacks[item.number] = replace(item, state="backingOff", next_attempt_at=due)
            _arm(draft, item, due)
        else:
            draft.callbacks[item.number] = replace(item, state="failed")
    return _may_go(draft)


def put_off(work: Workspace, attempt: Attempt, *, until: datetime) -> bool:
    """Returns whether the run is to be removed now: one that is deleted does not wait for a destination."""
    draft = work.find(attempt.run_id)
    item = _tried(draft, attempt)
    if draft is None or item is None:
        return False
    if draft.info.delete_when_called:
        draft.callbacks[item.number] = replace(item, state="failed")
    else:
        _arm(draft, item, until)
    return _may_go(draft)


def _may_go(draft: Draft) -> bool:
    return draft.info.delete_when_called and not untried(draft)


def retry_callback(draft: Draft, *, number: int, attempt: int) -> None:
    item = draft.callbacks.get(number)
    if item is not None and item.attempt == attempt and item.state in TO_MAKE:
        _schedule(draft, item)


def backoff(attempt: int, *, config: HistoryConfig, jitter: float) -> timedelta:
    """The wait after try number `attempt`: doubled each time up to the longest, less up to a fifth."""
    wait = config.callback_retry_first * float(BACKOFF_COEFFICIENT) ** min(attempt - 1, 30)
    wait = min(wait, config.callback_retry_longest)
    return wait * (1 - JITTER_PORTION + JITTER_PORTION * jitter)


def _tried(draft: Draft | None, attempt: Attempt) -> CallbackItem | None:
    """The callback, unless another try has been recorded since."""
    item = draft.callbacks.get(attempt.number) if draft is not None else None
    return item if item is not None and item.state == "scheduled" and item.attempt == attempt.attempt else None


def _arm(draft: Draft, item: CallbackItem, due_at: datetime) -> None:
    add_timer_task(draft, "callbackRetry", due_at, event_id=item.number, attempt=item.attempt)


def _failure(message: str, *, non_retryable: bool) -> Failure | None:
    info = ApplicationFailureInfo(non_retryable=non_retryable)
    return stored_failure(Failure(message=message, application_failure_info=info))
