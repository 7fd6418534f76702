"""Activities without a workflow: starting, cancelling, terminating and deleting them. What goes on in between: `standalone`.

    start_execution(work, request, *, namespace_id) -> Started
    request_cancel(work, request), terminate(work, request), delete(work, request)

Source: upstream's chasm/lib/activity/{handler,activity}.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Callback, Link, Payloads
from temporalio.api.enums.v1 import ActivityIdConflictPolicy, ActivityIdReusePolicy, WorkflowExecutionStatus
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import ACTIVITY
from common.errors import ActivityExecutionAlreadyStarted, FailedPrecondition
from common.protos import from_duration
from history.payloads import encode_string
from history.records import ActivityExecution, ActivityItem, CallbackItem, ExecutionInfo, RequestIdItem
from history.state import Draft
from history.transitions import standalone
from history.transitions.activities import put
from history.transitions.activity_changes import schedule_attempt
from history.transitions.close import is_open
from history.transitions.executions import Conflict, Reuse, changed, create, delete_execution, existing_of
from history.workspace import Workspace

_REUSE: dict[int, Reuse] = {
    ActivityIdReusePolicy.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE: "allow",
    ActivityIdReusePolicy.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY: "failedOnly",
    ActivityIdReusePolicy.ACTIVITY_ID_REUSE_POLICY_REJECT_DUPLICATE: "reject",
}
_CONFLICT: dict[int, Conflict] = {
    ActivityIdConflictPolicy.ACTIVITY_ID_CONFLICT_POLICY_FAIL: "fail",
    ActivityIdConflictPolicy.ACTIVITY_ID_CONFLICT_POLICY_USE_EXISTING: "useExisting",
}
SERVER_IDENTITY = ""
DELETED = "Delete activity execution"


class Started(Struct, kw_only=True, frozen=True):
    run_id: str
    started: bool
    """Whether this request has made it."""


def start_execution(work: Workspace, request: ws.StartActivityExecutionRequest, *, namespace_id: str) -> Started:
    """Raises ActivityExecutionAlreadyStarted as the id policies say, FAILED_PRECONDITION for what can't be attached."""
    existing = existing_of(
        work,
        request_id=request.request_id,
        reuse=_REUSE[request.id_reuse_policy],
        conflict=_CONFLICT[request.id_conflict_policy],
    )
    if existing is not None:
        run = existing.run
        if existing.refused:
            raise ActivityExecutionAlreadyStarted(start_request_id=run.create_request_id, run_id=run.run_id)
        if request.HasField("on_conflict_options") and run.create_request_id != request.request_id:
            _attach_to_existing(work.run(run.run_id), request)
        return Started(run_id=run.run_id, started=False)
    draft = create(work, _info(work, request, namespace_id=namespace_id))
    draft.activity_executions[""] = ActivityExecution(
        input=request.input if request.HasField("input") else None,
        header=request.header if request.HasField("header") else None,
        original_options=_options(request),
        start_delay=from_duration(request.start_delay),
    )
    _attach(draft, request.completion_callbacks, request_id=request.request_id)
    draft.activity_ids[request.activity_id] = standalone.ITEM
    schedule_attempt(draft, _item(draft, request), at=draft.info.execution_time)
    return Started(run_id=draft.info.run_id, started=True)


def _info(work: Workspace, request: ws.StartActivityExecutionRequest, *, namespace_id: str) -> ExecutionInfo:
    run_id = work.new_run_id()
    return ExecutionInfo(
        namespace=work.namespace,
        namespace_id=namespace_id,
        archetype=ACTIVITY,
        workflow_id=work.workflow_id,
        run_id=run_id,
        shard_id=work.shard_id,
        workflow_type=request.activity_type.name,
        task_queue=request.task_queue.name,
        started_at=work.now,
        execution_time=work.now + from_duration(request.start_delay),
        first_run_id=run_id,
        create_request_id=request.request_id,
        search_attributes=dict(request.search_attributes.indexed_fields),
        user_metadata=request.user_metadata if request.HasField("user_metadata") else None,
        links=list(request.links),
    )


def _options(request: ws.StartActivityExecutionRequest) -> ActivityOptions:
    options = ActivityOptions(
        task_queue=request.task_queue,
        schedule_to_close_timeout=request.schedule_to_close_timeout,
        schedule_to_start_timeout=request.schedule_to_start_timeout,
        start_to_close_timeout=request.start_to_close_timeout,
        heartbeat_timeout=request.heartbeat_timeout,
        retry_policy=request.retry_policy,
    )
    if request.HasField("priority"):
        options.priority.CopyFrom(request.priority)
    if request.HasField("start_delay"):
        options.start_delay.CopyFrom(request.start_delay)
    return options


def _item(draft: Draft, request: ws.StartActivityExecutionRequest) -> ActivityItem:
    item = ActivityItem(
        scheduled_event_id=standalone.ITEM,
        activity_id=request.activity_id,
        activity_type=request.activity_type.name,
        task_queue=request.task_queue.name,
        scheduled_at=draft.info.execution_time,
        first_scheduled_at=draft.info.execution_time,
        schedule_to_close=from_duration(request.schedule_to_close_timeout),
        schedule_to_start=from_duration(request.schedule_to_start_timeout),
        start_to_close=from_duration(request.start_to_close_timeout),
        heartbeat=from_duration(request.heartbeat_timeout),
        retry_policy=request.retry_policy,
        priority=request.priority if request.HasField("priority") else None,
    )
    return standalone.with_expiry(item)


# --- callbacks and links


def _attach_to_existing(draft: Draft, request: ws.StartActivityExecutionRequest) -> None:
    """A repeated request attaches nothing more."""
    options = request.on_conflict_options
    callbacks = request.completion_callbacks if options.attach_completion_callbacks else ()
    links: Iterable[Link] = request.links if options.attach_links else ()
    if not (callbacks or links) or draft.request_ids.get(request.request_id) is not None:
        return
    _attach(draft, callbacks, request_id=request.request_id)
    if links:
        _check_is_open(draft, "links")
        known = draft.info.links
        draft.info.links = [*known, *(link for link in links if link not in known)]
    draft.request_ids[request.request_id] = RequestIdItem(request_id=request.request_id, event_type=0)
    changed(draft)


def _attach(draft: Draft, callbacks: Iterable[Callback], *, request_id: str) -> None:
    callbacks = list(callbacks)
    if not callbacks:
        return
    _check_is_open(draft, "callbacks")
    present, limit = len(draft.callbacks), draft.work.config.callbacks_limit
    if len(callbacks) + present > limit:
        raise FailedPrecondition(
            f"cannot attach more than {limit} callbacks to an activity ({present} callbacks already attached)"
        )
    for number, callback in enumerate(callbacks, present + 1):
        draft.callbacks[number] = CallbackItem(
            number=number, callback=callback, request_id=request_id, registered_at=draft.work.now
        )


def _check_is_open(draft: Draft, what: str) -> None:
    if not is_open(draft.info.status):
        raise FailedPrecondition(f"cannot attach {what} to a closed activity")


# --- ending


def request_cancel(work: Workspace, request: ws.RequestCancelActivityExecutionRequest) -> None:
    """A worker that has it hears of it with its next heartbeat; without one it is canceled at once."""
    draft = work.run(request.run_id)
    execution = standalone.own(draft)
    if execution.cancel_request_id == request.request_id:
        return
    item = draft.activities[standalone.ITEM]
    state = standalone.state_of(draft.info, item)
    if not is_open(draft.info.status):
        raise FailedPrecondition(f"activity is in terminal state {state}")
    if state == "CancelRequested":
        raise FailedPrecondition(f"cancellation already requested with request ID {execution.cancel_request_id}")
    standalone.change(
        draft,
        cancel_identity=request.identity,
        cancel_reason=request.reason,
        cancel_request_id=request.request_id,
        restores_options=False,
        stays_paused=False,
    )
    item = replace(item, cancel_requested=True, reset_requested=False, reset_heartbeats=False)
    if item.started_event_id:
        put(draft, item)
    else:
        standalone.cancel(draft, item, details=Payloads(payloads=encode_string(request.reason).payloads))


def terminate(work: Workspace, request: ws.TerminateActivityExecutionRequest) -> None:
    draft = work.run(request.run_id)
    status = draft.info.status
    if status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED:
        known = standalone.own(draft).terminate_request_id
        if known != request.request_id:
            raise FailedPrecondition(f"already terminated with request ID {known}")
        return
    if not is_open(status):
        state = standalone.state_of(draft.info, draft.activities[standalone.ITEM])
        raise FailedPrecondition(f"invalid transition from {state}")
    standalone.change(draft, terminate_request_id=request.request_id)
    standalone.terminate(draft, reason=request.reason, identity=request.identity)


def delete(work: Workspace, request: ws.DeleteActivityExecutionRequest) -> None:
    delete_execution(
        work,
        run_id=request.run_id,
        terminate=lambda draft: standalone.terminate(draft, reason=DELETED, identity=SERVER_IDENTITY),
    )
