"""ExecuteMultiOperation: start a workflow, or use the running one, and update it, in one transaction."""

from __future__ import annotations

from datetime import datetime

from temporalio.api.workflowservice.v1 import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationResponse,
    UpdateWorkflowExecutionRequest,
)

from common.errors import Aborted, MultiOperationFailed, NotFound, TemporalError
from history.api.start_workflow_execution import prepare_start, start_response
from history.api.update_stages import UpdateForgotten, UpdateMoved, forgotten
from history.api.update_workflow_execution import closing, deliver, finish_update
from history.engine.engine import Engine
from history.transitions.begin import StartWorkflow
from history.transitions.updates import aborted, start_and_update, start_failed, update_failed

Response = ExecuteMultiOperationResponse.Response


async def execute_multi_operation(
    engine: Engine, request: ExecuteMultiOperationRequest
) -> ExecuteMultiOperationResponse:
    """Raises MultiOperationFailed. An update that its closing run gave up is tried once more, with a new run if need be."""
    until = engine.clock.now() + engine.config.long_poll
    update = request.operations[1].update_workflow
    try:
        start = await prepare_start(engine, request.operations[0].start_workflow)
    except TemporalError as error:
        raise start_failed(error) from error
    try:
        return await _attempt(engine, start, update, until=until)
    except MultiOperationFailed as error:
        if not _was_given_up(error):
            raise
    try:
        return await _attempt(engine, start, update, until=until)
    except MultiOperationFailed as error:
        if not _was_given_up(error):
            raise
        failed = error.errors[1]
        assert failed is not None
        raise MultiOperationFailed(error.message, errors=[aborted(), Aborted(failed.message)]) from error


def _was_given_up(error: MultiOperationFailed) -> bool:
    """Whether the running workflow closed before it accepted the update; the start's own run would say so with no error of
    the start."""
    start, update = error.errors
    return start is not None and isinstance(update, NotFound) and "aborted by closing workflow" in update.message


async def _attempt(
    engine: Engine, start: StartWorkflow, update: UpdateWorkflowExecutionRequest, *, until: datetime
) -> ExecuteMultiOperationResponse:
    while True:
        both = await engine.update(
            namespace=start.request.namespace,
            workflow_id=start.request.workflow_id,
            transition=lambda work: start_and_update(work, start, update),
            reason="ExecuteMultiOperation",
        )
        deliver(engine, both.admission)
        started = both.start.kind == "new"
        try:
            answer = await finish_update(engine, update, both.admission, until=until)
        except (UpdateMoved, UpdateForgotten) as lost:
            if engine.clock.now() >= until:
                error = closing() if isinstance(lost, UpdateMoved) else forgotten()
                raise update_failed(error, started=started) from lost
            continue
        except TemporalError as error:
            raise update_failed(error, started=started) from error
        return ExecuteMultiOperationResponse(
            responses=[
                Response(start_workflow=start_response(start.request, both.start)),
                Response(update_workflow=answer),
            ]
        )
