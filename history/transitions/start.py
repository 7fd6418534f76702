"""StartWorkflowExecution's rules: which run a start request comes to.

    start_workflow(work, start: StartWorkflow) -> StartOutcome
    resolve_start(work, start, *, run_id) -> StartOutcome | None     the same without starting: None means start
    start_new(work, start, *, run_id) -> StartOutcome                start unconditionally

Source: upstream's service/history/api/startworkflow and workflow_id_dedup.go.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from temporalio.api.enums.v1 import (
    EventType,
    WorkflowExecutionStatus,
    WorkflowIdConflictPolicy,
    WorkflowIdReusePolicy,
)
from temporalio.api.history.v1 import WorkflowExecutionOptionsUpdatedEventAttributes
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.errors import Internal, WorkflowExecutionAlreadyStarted
from history.events import add_event
from history.payloads import encode_string
from history.records import RUNNING, CurrentRun
from history.transitions.begin import StartWorkflow, begin_run, first_run_attributes
from history.transitions.callbacks import check_callbacks_limit
from history.transitions.close import SERVER_IDENTITY, is_open
from history.transitions.terminate import terminate_run
from history.workspace import Workspace

Reuse = WorkflowIdReusePolicy
Conflict = WorkflowIdConflictPolicy

FAILED_STATUSES = frozenset(
    (
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_FAILED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
    )
)


class StartOutcome(Struct, kw_only=True):
    run_id: str
    first_run_id: str
    kind: Literal["new", "reused", "repeated"]
    """Started now; the running one is used; or this very request has been applied before."""
    started: bool
    status: WorkflowExecutionStatus.ValueType = RUNNING
    attached: bool = False
    """Whether the request id is remembered by an options-updated event of the run."""


def start_workflow(work: Workspace, start: StartWorkflow) -> StartOutcome:
    """Start a run, or answer with the one that stands for it.

    Raises WorkflowExecutionAlreadyStarted as the id policies say.
    """
    run_id = work.new_run_id()
    return resolve_start(work, start, run_id=run_id) or start_new(work, start, run_id=run_id)


def start_new(work: Workspace, start: StartWorkflow, *, run_id: str) -> StartOutcome:
    """Start a run unconditionally and make it the current one."""
    request = start.request
    begin_run(
        work,
        attributes=first_run_attributes(work, start, run_id=run_id),
        run_id=run_id,
        request_id=request.request_id,
        namespace_id=start.namespace_id,
        links=request.links,
        user_metadata=request.user_metadata if request.HasField("user_metadata") else None,
        schedule=start.parent is None and not start.eager,
    )
    return StartOutcome(run_id=run_id, first_run_id=run_id, kind="new", started=True)


def resolve_start(work: Workspace, start: StartWorkflow, *, run_id: str) -> StartOutcome | None:
    """What a start that meets an earlier run of its workflow id comes to; None: start. `run_id` is the run that would be
    started. Terminates the running one where the conflict policy says so."""
    current = work.current
    if current is None:
        return None
    repeated = repeated_start(work, current, request_id=start.request.request_id)
    return repeated or resolve_conflict(work, current, start, run_id=run_id)


def resolve_conflict(work: Workspace, current: CurrentRun, start: StartWorkflow, *, run_id: str) -> StartOutcome | None:
    """As `resolve_start`, for a request that is not a repetition."""
    reuse, conflict = effective_policies(start.request)
    if not is_open(current.status):
        check_reuse(current, reuse)
        return None
    if conflict == Conflict.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
        return use_existing(work, current, start.request)
    if conflict == Conflict.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING:
        terminate_for_new_run(work, start, run_id=run_id)
        return None
    raise already_started("Workflow execution is already running. {}.", current)


def repeated_start(work: Workspace, current: CurrentRun, *, request_id: str) -> StartOutcome | None:
    """The answer to a start that has been applied before: the same run as then, in its present status."""
    if current.create_request_id == request_id:
        return StartOutcome(
            run_id=current.run_id,
            first_run_id=current.first_run_id,
            kind="repeated",
            started=True,
            status=current.status,
        )
    draft = work.find(current.run_id)
    item = None if draft is None else draft.request_ids.get(request_id)
    if item is None or item.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
        return None
    return StartOutcome(
        run_id=current.run_id,
        first_run_id=current.first_run_id,
        kind="repeated",
        started=False,
        status=current.status,
        attached=True,
    )


def effective_policies(
    request: StartWorkflowExecutionRequest,
    *,
    default: Conflict.ValueType = Conflict.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
) -> tuple[Reuse.ValueType, Conflict.ValueType]:
    """The two id policies, the legacy terminate-if-running spelled as what replaced it."""
    reuse, conflict = request.workflow_id_reuse_policy, request.workflow_id_conflict_policy
    if reuse == Reuse.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING:
        return (
            Reuse.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
            Conflict.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
        )
    return (
        reuse or Reuse.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
        conflict or default,
    )


def check_reuse(current: CurrentRun, reuse: Reuse.ValueType) -> None:
    """Raise WorkflowExecutionAlreadyStarted unless the policy allows another run after this closed one."""
    if reuse == Reuse.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE:
        raise already_started(
            "Workflow execution already finished. {}. Workflow Id reuse policy: reject duplicate workflow Id.", current
        )
    failed_only = reuse == Reuse.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
    if failed_only and current.status not in FAILED_STATUSES:
        raise already_started(
            "Workflow execution already finished successfully. {}. "
            "Workflow Id reuse policy: allow duplicate workflow Id if last run failed.",
            current,
        )


def already_started(message: str, current: CurrentRun) -> WorkflowExecutionAlreadyStarted:
    return WorkflowExecutionAlreadyStarted(
        message.format(f"WorkflowId: {current.workflow_id}, RunId: {current.run_id}"),
        start_request_id=current.create_request_id,
        run_id=current.run_id,
        first_run_id=current.first_run_id,
    )


def use_existing(work: Workspace, current: CurrentRun, request: StartWorkflowExecutionRequest) -> StartOutcome:
    """Answer with the running workflow, attaching to it what the request asks for."""
    outcome = StartOutcome(
        run_id=current.run_id, first_run_id=current.first_run_id, kind="reused", started=False, status=RUNNING
    )
    if not request.HasField("on_conflict_options"):
        return outcome
    options = request.on_conflict_options
    if options.attach_completion_callbacks:
        check_callbacks_limit(work.run(current.run_id), len(request.completion_callbacks))
    outcome.attached = options.attach_request_id
    add_event(
        work.run(current.run_id),
        WorkflowExecutionOptionsUpdatedEventAttributes(
            attached_request_id=request.request_id if options.attach_request_id else "",
            attached_completion_callbacks=request.completion_callbacks if options.attach_completion_callbacks else (),
        ),
        links=request.links if options.attach_links else (),
        worker_may_ignore=True,
    )
    return outcome


def terminate_for_new_run(work: Workspace, start: StartWorkflow, *, run_id: str) -> None:
    draft = work.run()
    parent = draft.info.parent
    if start.child_of_parent_only and start.parent is not None:
        if parent is None or parent.workflow_id != start.parent.workflow_id:
            raise Internal(f"Current workflow {work.workflow_id} is not a child of parent {start.parent.workflow_id}.")
    terminate_run(
        draft,
        reason="TerminateIfRunning WorkflowIdReusePolicy",
        details=encode_string(f"terminated by new runID: {run_id}"),
        identity=SERVER_IDENTITY,
    )
