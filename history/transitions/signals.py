"""Signals, and the start of a run for the sake of one.

    signal_workflow(work, request, *, parent_only, external) -> str           SignalWorkflowExecution's rules; the run's id
    signal_with_start(work, request, start) -> StartOutcome                   SignalWithStartWorkflowExecution's
    add_signal(draft, ...) -> None

A signal's request id is remembered with the run, also after its end: repeating the call changes nothing.
Source: upstream's service/history/api/signalworkflow and signalwithstartworkflow.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.common.v1 import Header, Link, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import WorkflowExecutionSignaledEventAttributes
from temporalio.api.workflowservice.v1 import SignalWithStartWorkflowExecutionRequest, SignalWorkflowExecutionRequest

from common.errors import InvalidArgument, NotFound
from history.events import add_event
from history.state import Draft
from history.transitions.addressing import check_parent
from history.transitions.begin import StartWorkflow, begin_run, first_run_attributes, schedule_first_task
from history.transitions.close import is_open
from history.transitions.start import (
    Conflict,
    StartOutcome,
    effective_policies,
    resolve_conflict,
)
from history.transitions.workflow_tasks import schedule_first_workflow_task, schedule_workflow_task
from history.validation import check_blob
from history.workspace import Workspace

SIGNALED = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED


def signal_workflow(
    work: Workspace,
    request: SignalWorkflowExecutionRequest,
    *,
    child_only: bool = False,
    external: WorkflowExecution | None = None,
) -> str:
    """`external`: the workflow that sends it; with `child_only` it must be the run's parent. The signaled run's id.

    Raises NOT_FOUND for an unknown or closed run, INVALID_ARGUMENT over a limit.
    """
    draft = work.run(request.workflow_execution.run_id)
    run_id = draft.info.run_id
    if is_signaled(draft, request.request_id):
        return run_id
    if not is_open(draft.info.status):
        raise NotFound("workflow execution already completed")
    check_signal(draft, request.input)
    if child_only:
        check_parent(draft, external or WorkflowExecution())
    add_signal(
        draft,
        name=request.signal_name,
        payloads=request.input if request.HasField("input") else None,
        identity=request.identity,
        header=request.header if request.HasField("header") else None,
        external=external,
        request_id=request.request_id,
        links=request.links,
    )
    # A run that waits for its first task's time hears of the signal then.
    schedule_workflow_task(draft)
    return run_id


def is_signaled(draft: Draft, request_id: str) -> bool:
    """Whether the run has had this very signal."""
    item = draft.request_ids.get(request_id) if request_id else None
    return item is not None and item.event_type == SIGNALED


def check_signal(draft: Draft, payloads: Payloads) -> None:
    """Raises INVALID_ARGUMENT when the signal, or the number of signals, is over its limit."""
    config = draft.work.config
    check_blob(payloads, config)
    if 0 < config.signals_limit <= draft.info.signal_count:
        raise InvalidArgument("exceeded workflow execution limit for signal events")


def add_signal(
    draft: Draft,
    *,
    name: str,
    payloads: Payloads | None,
    identity: str,
    header: Header | None,
    request_id: str,
    external: WorkflowExecution | None = None,
    links: Iterable[Link] = (),
) -> None:
    add_event(
        draft,
        WorkflowExecutionSignaledEventAttributes(
            signal_name=name,
            input=payloads,
            identity=identity,
            header=header,
            external_workflow_execution=external,
            request_id=request_id,
        ),
        links=links,
    )


def signal_with_start(
    work: Workspace, request: SignalWithStartWorkflowExecutionRequest, start: StartWorkflow
) -> StartOutcome:
    """Signal the running workflow, or start one with the signal as its second event. `start.request` is the same request
    as a start request."""
    draft = work.find()
    if draft is not None and is_signaled(draft, request.request_id):
        # Also when that run has ended meanwhile: a repeated call must not start another (upstream's does).
        return _signaled_outcome(draft)
    if draft is not None and is_open(draft.info.status):
        _, conflict = effective_policies(start.request, default=Conflict.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING)
        if conflict == Conflict.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
            check_signal(draft, request.signal_input)
            _add(draft, request)
            schedule_first_workflow_task(draft)  # it does not wait for a start delay
            return _signaled_outcome(draft)
    run_id = work.new_run_id()
    if work.current is not None:
        resolve_conflict(work, work.current, start, run_id=run_id)
    return _start_signaled(work, request, start, run_id=run_id)


def _signaled_outcome(draft: Draft) -> StartOutcome:
    info = draft.info
    return StartOutcome(
        run_id=info.run_id, first_run_id=info.first_run_id, kind="reused", started=False, status=info.status
    )


def _start_signaled(
    work: Workspace, request: SignalWithStartWorkflowExecutionRequest, start: StartWorkflow, *, run_id: str
) -> StartOutcome:
    check_blob(request.signal_input, work.config)
    draft = begin_run(
        work,
        attributes=first_run_attributes(work, start, run_id=run_id),
        run_id=run_id,
        request_id=request.request_id,
        namespace_id=start.namespace_id,
        links=request.links,
        user_metadata=request.user_metadata if request.HasField("user_metadata") else None,
        schedule=False,
    )
    _add(draft, request)
    schedule_first_task(draft)
    return StartOutcome(run_id=run_id, first_run_id=run_id, kind="new", started=True)


def _add(draft: Draft, request: SignalWithStartWorkflowExecutionRequest) -> None:
    add_signal(
        draft,
        name=request.signal_name,
        payloads=request.signal_input if request.HasField("signal_input") else None,
        identity=request.identity,
        header=request.header if request.HasField("header") else None,
        request_id=request.request_id,
        links=request.links,
    )
