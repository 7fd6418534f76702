"""Resetting a workflow: a new run takes its place, with the history of a run up to a workflow task, which fails and is tried
again.

    reset_workflow(work, request, *, events) -> str     ResetWorkflowExecution's rules; the new run's id

What came after that point is lost, but for what others sent: signals, updates, changes of options and the ends of children are
applied again, from the run and those it continued as. The workflow's newest run is terminated if it is open. Children live on:
they become the new run's.
Source: upstream's service/history/api/resetworkflow and ndc/workflow_resetter.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace
from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import (
    ResetReapplyExcludeType,
    ResetReapplyType,
    RetryState,
    WorkflowTaskFailedCause,
)
from temporalio.api.failure.v1 import Failure, ResetWorkflowFailureInfo
from temporalio.api.history.v1 import ActivityTaskFailedEventAttributes, HistoryEvent
from temporalio.api.workflow.v1 import PostResetOperation
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from common.errors import InvalidArgument
from history.apply import apply_event
from history.apply.activities import TRANSIENT_EVENT_ID
from history.apply.children import start_request_id
from history.events import add_event
from history.records import ChildItem
from history.state import Draft
from history.transitions import nexus
from history.transitions.activities import dispatch_activity
from history.transitions.begin import blank_info
from history.transitions.callbacks import schedule_settled
from history.transitions.children import dispatch_start
from history.transitions.close import RESETTER_IDENTITY, SERVER_IDENTITY, is_open
from history.transitions.deadlines import recompute_deadline
from history.transitions.external import dispatch_cancel, dispatch_signal
from history.transitions.options import apply_options
from history.transitions.reapply import reapply_chain
from history.transitions.task_events import started_attributes
from history.transitions.terminate import terminate_run
from history.transitions.timers import start_timer_task
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import fail_workflow_task, schedule_workflow_task
from history.versioning_override import check_structure
from history.workspace import Workspace

Exclude = ResetReapplyExcludeType

Known = Mapping[str, Sequence[HistoryEvent]]
"""Run id → its events, from the first, as far as they were known before the transition."""


def reset_workflow(work: Workspace, request: ResetWorkflowExecutionRequest, *, events: Known) -> str:
    """Raises NOT_FOUND, INVALID_ARGUMENT. Repeating a request gives the same run."""
    base = work.run(request.workflow_execution.run_id)
    finish = request.workflow_task_finish_event_id
    if finish <= 1 or finish >= base.info.next_event_id:
        raise InvalidArgument("Workflow task finish ID must be > 1 && <= workflow last event ID.")
    for operation in request.post_reset_operations:
        if operation.WhichOneof("variant") != "update_workflow_options":
            raise InvalidArgument(f"unsupported post reset operation: {_go_name(operation)}")
        options = operation.update_workflow_options.workflow_execution_options
        if options.HasField("versioning_override"):
            check_structure(options.versioning_override)
    current = work.find()
    if current is not None and request.request_id in (current.info.reset_request_id, current.info.create_request_id):
        return current.info.run_id
    run_id = work.new_run_id()
    children = dict(base.children.items())
    base.info.reset_to_run_id = run_id
    if current is not None and is_open(current.info.status):
        terminate_run(current, reason=request.reason, identity=RESETTER_IDENTITY)
    history = history_of(base, events)
    draft = _replay(base, history[: finish - 1], run_id=run_id)
    draft.info.reset_request_id = request.request_id
    _fail_task(draft, base_run_id=base.info.run_id, finish=finish, reason=request.reason)
    _fail_started_activities(draft, reason=request.reason)
    _adopt_children(draft, base, children)
    reapply_chain(
        draft,
        history[finish - 1 :],
        exclude=excluded_types(request.reset_reapply_exclude_types, request.reset_reapply_type),
        find=lambda next_run_id: _find(work, next_run_id, events),
    )
    for operation in request.post_reset_operations:
        change = operation.update_workflow_options
        apply_options(draft, change.workflow_execution_options, paths=change.update_mask.paths, identity="")
    schedule_settled(draft)
    _rearm(draft)
    schedule_workflow_task(draft)
    record_visibility(draft)
    work.make_current(draft)
    return run_id


def _go_name(operation: PostResetOperation) -> str:
    """The operation's kind as upstream's message has it: a Go type."""
    kind = operation.WhichOneof("variant")
    name = "".join(word.title() for word in kind.split("_")) if kind else ""
    return f"*workflow.PostResetOperation_{name}_" if name else "<nil>"


def excluded_types(
    exclude: Iterable[Exclude.ValueType], include: ResetReapplyType.ValueType
) -> frozenset[Exclude.ValueType]:
    """What is not applied again: the types that are named, and those that the older field leaves out."""
    excluded = set(exclude)
    if include in (ResetReapplyType.RESET_REAPPLY_TYPE_SIGNAL, ResetReapplyType.RESET_REAPPLY_TYPE_NONE):
        excluded.add(Exclude.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE)
    if include == ResetReapplyType.RESET_REAPPLY_TYPE_NONE:
        excluded.add(Exclude.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL)
    return frozenset(excluded)


def history_of(draft: Draft, events: Known) -> list[HistoryEvent]:
    """All events of a run: those known, then what came since."""
    history = list(events.get(draft.info.run_id, ()))
    history += [draft.event(event_id) for event_id in range(len(history) + 1, draft.info.next_event_id)]
    return history


def _find(work: Workspace, run_id: str, events: Known) -> list[HistoryEvent] | None:
    draft = work.find(run_id)
    return None if draft is None else history_of(draft, events)


def _replay(base: Draft, history: Sequence[HistoryEvent], *, run_id: str) -> Draft:
    """A new run with copies of the events."""
    work = base.work
    draft = work.create(
        blank_info(work, run_id=run_id, request_id=base.info.create_request_id, namespace_id=base.info.namespace_id)
    )
    for event in history:
        copy = HistoryEvent()
        copy.CopyFrom(event)
        copy.task_id = work.next_task_id()
        draft.events.append(copy)
        apply_event(draft, copy)
    return draft


def _fail_task(draft: Draft, *, base_run_id: str, finish: int, reason: str) -> None:
    task = draft.info.workflow_task
    if task is None or not is_open(draft.info.status):
        raise InvalidArgument(
            f"Can only reset workflow to event ID in range [WorkflowTaskScheduled +1, WorkflowTaskStarted + 1]: {finish}"
        )
    # Its events are written, so it is no transient task, whatever its attempt was.
    draft.info.workflow_task = task = replace(task, attempt=1)
    if not task.started_event_id:
        add_event(
            draft,
            started_attributes(task, scheduled_event_id=task.scheduled_event_id, identity=SERVER_IDENTITY),
        )
    fail_workflow_task(
        draft,
        cause=WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW,
        failure=reset_failure(reason),
        identity=SERVER_IDENTITY,
        base_run_id=base_run_id,
        new_run_id=draft.info.run_id,
    )


def reset_failure(reason: str, last_heartbeat_details: Payloads | None = None) -> Failure:
    return Failure(
        message=reason,
        reset_workflow_failure_info=ResetWorkflowFailureInfo(last_heartbeat_details=last_heartbeat_details),
    )


def _fail_started_activities(draft: Draft, *, reason: str) -> None:
    """Those whose start is in the history: their worker reports to the other run."""
    for item in list(draft.activities.values()):
        if item.started_event_id and item.started_event_id != TRANSIENT_EVENT_ID:
            add_event(
                draft,
                ActivityTaskFailedEventAttributes(
                    scheduled_event_id=item.scheduled_event_id,
                    started_event_id=item.started_event_id,
                    failure=reset_failure(reason, item.heartbeat_details),
                    retry_state=RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE,
                    identity=item.last_worker_identity,
                ),
            )


def _adopt_children(draft: Draft, base: Draft, children: Mapping[int, ChildItem]) -> None:
    """Start them with the request ids of the other run, so that those which exist are found again."""
    for key, item in list(draft.children.items()):
        known = children.get(key)
        request_id = known.create_request_id if known else start_request_id(base.info.run_id, key)
        draft.children[key] = replace(item, create_request_id=request_id)


def _rearm(draft: Draft) -> None:
    """What the run waits for was under way in the other run: set it going for this one."""
    for activity in list(draft.activities.values()):
        dispatch_activity(draft, activity)
    for timer in list(draft.timers.values()):
        start_timer_task(draft, timer)
    for child in draft.children.values():
        dispatch_start(draft, child)
    for initiated in draft.external_signals:
        dispatch_signal(draft, initiated)
    for initiated in draft.external_cancels:
        dispatch_cancel(draft, initiated)
    if draft.info.pending_nexus_operations:
        nexus.rearm(draft)
    recompute_deadline(draft)
