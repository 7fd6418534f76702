"""StartWorkflowExecution: start a run, or answer with the one that stands for it."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import (
    PollWorkflowTaskQueueResponse,
    StartWorkflowExecutionRequest,
    StartWorkflowExecutionResponse,
)

from common.contracts.history import StartChild
from common.errors import InvalidArgument
from common.protos import ZERO, from_duration
from history.api.links import request_id_link, started_event_link
from history.api.versions import check_override
from history.cron import next_backoff
from history.engine.engine import Engine
from history.records import ParentInfo
from history.state import Draft
from history.transitions.begin import StartWorkflow
from history.transitions.eager import eager_task, start_eager_task
from history.transitions.start import StartOutcome, start_workflow
from history.validation import check_blob, check_memo
from history.workspace import Workspace


async def start_workflow_execution(
    engine: Engine,
    request: StartWorkflowExecutionRequest,
    *,
    parent: ParentInfo | None = None,
    root: WorkflowExecution | None = None,
    child: StartChild | None = None,
    child_of_parent_only: bool = False,
) -> StartWorkflowExecutionResponse:
    """`parent`, `root`, `child`: for a child. Raises WorkflowExecutionAlreadyStarted, INVALID_ARGUMENT for what is over a limit."""
    start = await prepare_start(engine, request, parent=parent, root=root, child_of_parent_only=child_of_parent_only)
    if child is not None:
        start = replace(
            start,
            inherited_pin=child.inherited_pin,
            inherited_build_id=child.inherited_build_id,
            source_version_stamp=child.source_version_stamp,
            inherited_upgrade=child.inherited_upgrade,
            inherited_revision=child.inherited_revision,
        )
    outcome, task = await engine.update(
        namespace=request.namespace,
        workflow_id=request.workflow_id,
        transition=lambda work: _start(work, start),
        reason="StartWorkflowExecution",
    )
    response = start_response(request, outcome)
    if task is not None:
        response.eager_workflow_task.CopyFrom(task)
    return response


async def prepare_start(
    engine: Engine,
    request: StartWorkflowExecutionRequest,
    *,
    parent: ParentInfo | None = None,
    root: WorkflowExecution | None = None,
    child_of_parent_only: bool = False,
) -> StartWorkflow:
    """Check the request and add what its transition needs to know beside it."""
    namespace = engine.namespaces.peek(request.namespace) or await engine.namespaces.get(request.namespace)
    if not request.request_id:
        raise InvalidArgument("Missing request ID.")
    check_blob(request.input, engine.config)
    check_memo(request.memo, engine.config)
    if parent is None and request.HasField("versioning_override"):  # the parent's processor has checked a child's
        await check_override(
            engine, request.versioning_override, namespace=request.namespace, task_queue=request.task_queue.name
        )
    backoff = first_task_backoff(engine, request)
    return StartWorkflow(
        request=request,
        namespace_id=namespace.namespace_id,
        first_task_backoff=backoff,
        eager=request.request_eager_execution and not backoff,
        parent=parent,
        root=root,
        child_of_parent_only=child_of_parent_only,
    )


def first_task_backoff(engine: Engine, request: StartWorkflowExecutionRequest) -> timedelta:
    """How long the first workflow task waits: the start delay, or until the cron schedule's first time."""
    if request.HasField("workflow_start_delay"):
        delay = from_duration(request.workflow_start_delay)
        if delay > ZERO:
            return delay
    if not request.cron_schedule:
        return ZERO
    now = engine.clock.now()
    return max(next_backoff(request.cron_schedule, scheduled=now, now=now) or ZERO, ZERO)


def _start(work: Workspace, start: StartWorkflow) -> tuple[StartOutcome, PollWorkflowTaskQueueResponse | None]:
    """The outcome, and the run's first workflow task when it goes out with the answer."""
    outcome = start_workflow(work, start)
    if not start.eager or not outcome.started:
        return outcome, None
    draft = work.run(outcome.run_id)
    if outcome.kind == "new":
        start_eager_task(draft, request=start.request)
    elif not has_eager_task(draft):
        return outcome, None
    return outcome, eager_task(draft)


def has_eager_task(draft: Draft) -> bool:
    """Whether a repeated start may be given the first task again: it must still be the run's first, in its first attempt."""
    task = draft.workflow_task
    return task is not None and task.started_event_id == 3 and task.attempt == 1


def start_response(request: StartWorkflowExecutionRequest, outcome: StartOutcome) -> StartWorkflowExecutionResponse:
    where = {"namespace": request.namespace, "workflow_id": request.workflow_id, "run_id": outcome.run_id}
    if outcome.attached:
        link = request_id_link(
            **where,
            request_id=request.request_id,
            event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        )
    else:
        link = started_event_link(**where)
    return StartWorkflowExecutionResponse(
        run_id=outcome.run_id,
        first_execution_run_id=outcome.first_run_id,
        started=outcome.started,
        status=outcome.status,
        link=link,
    )
