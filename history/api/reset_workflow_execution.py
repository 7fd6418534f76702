"""ResetWorkflowExecution."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest, ResetWorkflowExecutionResponse

from common.errors import NotFound
from history.api.versions import check_override
from history.engine.cache import CachedRun
from history.engine.engine import Engine
from history.transitions.reset import reset_workflow
from history.versioning_override import named_version


async def reset_workflow_execution(
    engine: Engine, request: ResetWorkflowExecutionRequest
) -> ResetWorkflowExecutionResponse:
    """NOT_FOUND for an unknown run; INVALID_ARGUMENT for an event that no workflow task ends with."""
    workflow_id = request.workflow_execution.workflow_id
    await _check_overrides(engine, request)
    events = await _histories(engine, request)
    run_id = await engine.update(
        namespace=request.namespace,
        workflow_id=workflow_id,
        transition=lambda work: reset_workflow(work, request, events=events),
        reason="ResetWorkflowExecution",
    )
    return ResetWorkflowExecutionResponse(run_id=run_id)


async def _check_overrides(engine: Engine, request: ResetWorkflowExecutionRequest) -> None:
    for operation in request.post_reset_operations:
        override = operation.update_workflow_options.workflow_execution_options.versioning_override
        if named_version(override) is not None:
            execution = request.workflow_execution
            run = await engine.run(
                namespace=request.namespace, workflow_id=execution.workflow_id, run_id=execution.run_id
            )
            await check_override(engine, override, namespace=request.namespace, task_queue=run.state.info.task_queue)


async def _histories(engine: Engine, request: ResetWorkflowExecutionRequest) -> dict[str, Sequence[HistoryEvent]]:
    """The events of the run and of those it continued as, read ahead of the transition: it would have to ask for each."""
    workflow_id, run_id = request.workflow_execution.workflow_id, request.workflow_execution.run_id
    run = await engine.run(namespace=request.namespace, workflow_id=workflow_id, run_id=run_id)
    histories: dict[str, Sequence[HistoryEvent]] = {}
    while run.state.info.run_id not in histories:
        events = histories[run.state.info.run_id] = await _events(engine, run)
        if not events or events[-1].event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
            break
        next_run_id = events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id
        try:
            run = await engine.run(namespace=request.namespace, workflow_id=workflow_id, run_id=next_run_id)
        except NotFound:  # deleted
            break
    return histories


async def _events(engine: Engine, run: CachedRun) -> Sequence[HistoryEvent]:
    info = run.state.info
    return await engine.events(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        first=1,
        last=info.next_event_id,
    )
