"""Updates of a run: admitted in memory, delivered with a workflow task, accepted and completed in the history.

    admit_update(work, request) -> Admission           UpdateWorkflowExecution's rules
    admit(draft, request) -> Admission                 the same for a run already found
    start_and_update(work, start, request) -> StartAndUpdate       ExecuteMultiOperation's
    reject(work, draft, admitted, failure), reject_unprocessed(draft)
    fail_sent(draft)                                   the task that carried them failed unexpectedly

An idle run gets a speculative workflow task: in memory only until an update is accepted. How an update ended that left nothing
in the state is told through its ticket, after the commit. Everything else its callers see in the state.
Source: upstream's service/history/workflow/update and service/history/api/{updateworkflow,multioperation}.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope, WorkflowIdConflictPolicy
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.history.v1 import WorkflowExecutionOptionsUpdatedEventAttributes
from temporalio.api.update.v1 import Outcome, Request
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest

from common.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    MultiOperationFailed,
    NotFound,
    ResourceExhausted,
    TemporalError,
    WorkflowNotReady,
)
from history.events import add_event
from history.records import TransferTask, WorkflowTask
from history.state import AdmittedUpdate, Draft, UpdateTicket
from history.transitions.begin import StartWorkflow
from history.transitions.callbacks import check_callbacks_limit, reject_callbacks
from history.transitions.close import is_open
from history.transitions.start import StartOutcome, start_workflow
from history.transitions.workflow_tasks import schedule_first_workflow_task, schedule_workflow_task
from history.workspace import Workspace

FAILING_ATTEMPT = 3
"""From this attempt of a workflow task on a new update is refused: it would not be handled."""
TOTAL_LIMIT_REACHED = (
    "The limit on the total number of distinct updates in this workflow has been reached ({}). Make sure any duplicate "
    "updates share an Update ID so the server can deduplicate them, and consider rejecting updates that you aren't going "
    "to process. You can also Continue-as-New to avoid this; we recommend you check Continue-as-New Suggested in your "
    "Workflow."
)


class Admission(Struct, kw_only=True, frozen=True):
    """Where to wait for an update."""

    run_id: str
    update_id: str
    ticket: UpdateTicket | None
    """None for an update whose fate is in the state: accepted, or completed."""
    delivery: TransferTask | None = None
    """A speculative workflow task to hand to Matching; it is in no table."""


class StartAndUpdate(Struct, kw_only=True, frozen=True):
    start: StartOutcome
    """Its kind is "reused" when the update went to the running workflow."""
    admission: Admission


def admit_update(work: Workspace, request: UpdateWorkflowExecutionRequest) -> Admission:
    """Raises NOT_FOUND, FAILED_PRECONDITION, RESOURCE_EXHAUSTED, WorkflowNotReady. An id that is known joins that update."""
    draft = work.run(request.workflow_execution.run_id)
    first_run_id = request.first_execution_run_id
    if first_run_id and draft.info.first_run_id != first_run_id:
        raise NotFound("workflow execution not found")
    return admit(draft, request)


def admit(draft: Draft, request: UpdateWorkflowExecutionRequest) -> Admission:
    update_id = request.request.meta.update_id
    known = _known(draft, update_id)
    if not is_open(draft.info.status):
        if known is None:
            raise NotFound("workflow execution already completed")
        return known
    if draft.info.pause is not None:
        raise FailedPrecondition("Workflow is paused. Cannot update the workflow.")
    if draft.info.task_failures + 1 >= FAILING_ATTEMPT:
        raise WorkflowNotReady("Unable to perform workflow execution update due to Workflow Task in failed state.")
    if known is not None:
        _attach_callbacks(draft, request.request)
        return known
    check_limits(draft)
    _check(request)
    admitted = AdmittedUpdate(request=request.request, protocol_instance_id=update_id)
    draft.admitted[update_id] = admitted
    return Admission(
        run_id=draft.info.run_id, update_id=update_id, ticket=admitted.ticket, delivery=_schedule_task(draft)
    )


def _known(draft: Draft, update_id: str) -> Admission | None:
    """Of an update that the run knows. An admission from the history gets a ticket once somebody waits for it."""
    run_id = draft.info.run_id
    admitted = draft.admitted.get(update_id)
    if admitted is not None:
        return Admission(run_id=run_id, update_id=update_id, ticket=admitted.ticket)
    item = draft.updates.get(update_id)
    if item is None:
        return None
    if item.state != "admitted" or not is_open(draft.info.status):
        return Admission(run_id=run_id, update_id=update_id, ticket=None)
    admitted = draft.admitted[update_id] = AdmittedUpdate(request=None, protocol_instance_id=update_id)
    return Admission(run_id=run_id, update_id=update_id, ticket=admitted.ticket)


def _attach_callbacks(draft: Draft, request: Request) -> None:
    """Another caller's, of an update that is under way; a completed one needs none: its callers have the outcome. Source:
    AttachCallbacks in upstream's service/history/workflow/update/update.go, which loses those of an update that no worker
    has yet."""
    if not request.completion_callbacks:
        return
    _check_callbacks(request)
    update_id = request.meta.update_id
    admitted, item = draft.admitted.get(update_id), draft.updates.get(update_id)
    if item is not None and item.state == "accepted":
        attach_callbacks(draft, request)
    elif admitted is not None and request.request_id not in _waiting(admitted):
        draft.admitted[update_id] = replace(admitted, more=(*admitted.more, request))


def _waiting(admitted: AdmittedUpdate) -> set[str]:
    """Ids of the requests whose callbacks are attached with the acceptance."""
    own = [admitted.request] if admitted.request is not None else []
    return {request.request_id for request in (*own, *admitted.more)}


def attach_callbacks(draft: Draft, request: Request) -> None:
    """By an event, unless the request was here before. Raises FAILED_PRECONDITION for too many."""
    if request.request_id in draft.request_ids:
        return
    update_id = request.meta.update_id
    check_callbacks_limit(draft, len(request.completion_callbacks), update_id=update_id)
    options = WorkflowExecutionOptionsUpdatedEventAttributes.WorkflowUpdateOptionsUpdate(
        update_id=update_id,
        attached_request_id=request.request_id,
        attached_completion_callbacks=request.completion_callbacks,
    )
    add_event(
        draft, WorkflowExecutionOptionsUpdatedEventAttributes(workflow_update_options=[options]), worker_may_ignore=True
    )


def _check_callbacks(update: Request) -> None:
    if update.completion_callbacks and not update.request_id:
        raise InvalidArgument("invalid *update.Request: request_id is required when completion_callbacks are set")


def _check(request: UpdateWorkflowExecutionRequest) -> None:
    update = request.request
    if not update.meta.update_id:
        raise InvalidArgument("invalid *update.Request: meta.update_id is not set")
    if not update.input.name:
        raise InvalidArgument("invalid *update.Request: input.name is not set")
    _check_callbacks(update)


def check_limits(draft: Draft) -> None:
    """Raises RESOURCE_EXHAUSTED when too many are in flight, FAILED_PRECONDITION when the run has had too many."""
    config = draft.work.config
    info = draft.info
    fresh = sum(update.request is not None for update in draft.admitted.values())
    if 0 < config.updates_in_flight_limit <= fresh + info.updates_in_flight:
        raise ResourceExhausted(
            f"limit on number of concurrent in-flight updates has been reached ({config.updates_in_flight_limit})",
            cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
            scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
        )
    check_total(draft)


def check_total(draft: Draft) -> None:
    limit = draft.work.config.updates_total_limit
    fresh = sum(update.request is not None for update in draft.admitted.values())
    if 0 < limit <= fresh + draft.info.update_count:
        raise FailedPrecondition(TOTAL_LIMIT_REACHED.format(limit))


def _schedule_task(draft: Draft) -> TransferTask | None:
    """See that a workflow task carries the update. One that is scheduled will; after one that is started another follows."""
    if draft.workflow_task is not None:
        return None
    if draft.info.first_task_pending:
        schedule_first_workflow_task(draft)  # an update does not wait for a start delay
        return None
    task = schedule_workflow_task(draft, kind="speculative")
    return _delivery(draft, task) if task is not None and task.kind == "speculative" else None


def _delivery(draft: Draft, task: WorkflowTask) -> TransferTask:
    info = draft.info
    return TransferTask(
        task_id=0,
        kind="workflowTask",
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        task_queue=task.task_queue,
        sticky=task.sticky,
        event_id=task.scheduled_event_id,
        attempt=task.attempt,
        stamp=task.stamp,
        schedule_to_start=info.sticky_schedule_to_start,
        available_at=draft.work.now,
        priority=info.priority,
    )


# --- update with start


def start_and_update(work: Workspace, start: StartWorkflow, request: UpdateWorkflowExecutionRequest) -> StartAndUpdate:
    """Update the running workflow if the start allows that, or start one and update it. Raises MultiOperationFailed."""
    draft = work.find()
    if draft is not None and _is_updatable(draft, start, request.request.meta.update_id):
        return StartAndUpdate(start=_not_started(draft), admission=_admit(draft, request))
    try:
        outcome = start_workflow(work, start)
    except TemporalError as error:
        raise start_failed(error) from error
    return StartAndUpdate(start=outcome, admission=_admit(work.run(outcome.run_id), request))


def _is_updatable(draft: Draft, start: StartWorkflow, update_id: str) -> bool:
    item = draft.updates.get(update_id)
    if item is not None and item.state == "completed":
        return True
    if not is_open(draft.info.status):
        return False
    return (
        draft.info.create_request_id == start.request.request_id
        or item is not None
        or update_id in draft.admitted
        or start.request.workflow_id_conflict_policy
        == WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
    )


def _not_started(draft: Draft) -> StartOutcome:
    info = draft.info
    return StartOutcome(
        run_id=info.run_id, first_run_id=info.first_run_id, kind="reused", started=False, status=info.status
    )


def _admit(draft: Draft, request: UpdateWorkflowExecutionRequest) -> Admission:
    try:
        return admit(draft, request)
    except TemporalError as error:
        raise update_failed(error) from error


def start_failed(error: TemporalError) -> MultiOperationFailed:
    return MultiOperationFailed(
        f"MultiOperation could not be executed: Start failed: {error.message}", errors=[error, aborted()]
    )


def update_failed(error: TemporalError, *, started: bool = False) -> MultiOperationFailed:
    """`started`: the start has been carried out, only the update failed."""
    return MultiOperationFailed(
        f"MultiOperation could not be executed: Update failed: {error.message}",
        errors=[None if started else aborted(), error],
    )


def aborted() -> Aborted:
    return Aborted("Operation was aborted.")


# --- updates that leave nothing in the history


def settle(
    draft: Draft, admitted: AdmittedUpdate, *, outcome: Outcome | None = None, error: TemporalError | None = None
) -> None:
    """Forget the update, and tell its callers once that is committed."""
    ticket = admitted.ticket

    def tell() -> None:
        ticket.outcome, ticket.error = outcome, error

    draft.admitted.pop(admitted.protocol_instance_id)
    draft.work.after_commit.append(tell)


def reject(draft: Draft, admitted: AdmittedUpdate, failure: Failure) -> None:
    reject_callbacks(draft, admitted.protocol_instance_id, failure)
    settle(draft, admitted, outcome=Outcome(failure=failure))


def reject_unprocessed(draft: Draft) -> None:
    """Reject the updates that went out with a task and that the worker said nothing of: it does not know of updates."""
    for admitted in list(draft.admitted.values()):
        if admitted.sent:
            reject(draft, admitted, unprocessed_failure())


def fail_sent(draft: Draft) -> None:
    """The task that carried updates came to nothing in an unforeseen way: their callers are told. Others wait on."""
    for admitted in list(draft.admitted.values()):
        if admitted.sent:
            error = WorkflowNotReady(
                "Unable to perform workflow execution update due to unexpected workflow task failure."
            )
            settle(draft, admitted, error=error)


def unprocessed_failure() -> Failure:
    return _failure(
        "Workflow Update is rejected because it wasn't processed by worker. Probably, Workflow Update is not supported by "
        "the worker.",
        "UnprocessedUpdate",
    )


def closed_failure() -> Failure:
    """The outcome of an update that was accepted by a run which then closed."""
    return _failure(
        "Workflow Update failed because the Workflow completed before the Update completed.",
        "AcceptedUpdateCompletedWorkflow",
    )


def _failure(message: str, kind: str) -> Failure:
    return Failure(
        message=message,
        source="Server",
        application_failure_info=ApplicationFailureInfo(type=kind, non_retryable=True),
    )
