"""ExecuteMultiOperation: exactly a start and an update of one workflow, checked together before either happens.

Source: convertToHistoryMultiOperationRequest in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    ExecuteMultiOperationRequest,
    ExecuteMultiOperationResponse,
    StartWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
)

from common.errors import Aborted, InvalidArgument, MultiOperationFailed, TemporalError
from frontend.checks.durations import nanoseconds
from frontend.checks.starting import prepare_start
from frontend.checks.updating import prepare_update
from frontend.services import Frontend

MESSAGE = "Update-with-Start could not be executed."


async def execute_multi_operation(
    frontend: Frontend, request: ExecuteMultiOperationRequest
) -> ExecuteMultiOperationResponse:
    kinds = [operation.WhichOneof("operation") for operation in request.operations]
    if kinds != ["start_workflow", "update_workflow"]:
        raise InvalidArgument("Operations have to be exactly [Start, Update].")
    start = request.operations[0].start_workflow
    update = request.operations[1].update_workflow
    await _check_both(frontend, request.namespace, start, update)
    try:
        return await frontend.history.execute_multi_operation(request)
    except MultiOperationFailed as error:
        raise MultiOperationFailed(MESSAGE, errors=error.errors) from error


async def _check_both(
    frontend: Frontend,
    namespace: str,
    start: StartWorkflowExecutionRequest,
    update: UpdateWorkflowExecutionRequest,
) -> None:
    """Raises MultiOperationFailed with an error for each operation; the one that was in order is aborted."""
    faults: list[TemporalError | None] = [None, None]
    try:
        await _check_start(frontend, namespace, start)
    except TemporalError as error:
        faults[0] = error
    try:
        _check_update(frontend, namespace, update)
        if faults[0] is None and update.workflow_execution.workflow_id != start.workflow_id:
            raise InvalidArgument("WorkflowId is not consistent with previous operation(s).")
    except TemporalError as error:
        faults[1] = error
    if any(faults):
        raise MultiOperationFailed(MESSAGE, errors=[fault or Aborted("Operation was aborted.") for fault in faults])


async def _check_start(frontend: Frontend, namespace: str, start: StartWorkflowExecutionRequest) -> None:
    _check_namespace(namespace, start)
    await prepare_start(frontend, start)
    if start.cron_schedule:
        raise InvalidArgument("CronSchedule is not allowed.")
    if start.request_eager_execution:
        raise InvalidArgument("RequestEagerExecution is not supported.")
    if nanoseconds(start.workflow_start_delay) > 0:
        raise InvalidArgument("WorkflowStartDelay is not supported.")


def _check_update(frontend: Frontend, namespace: str, update: UpdateWorkflowExecutionRequest) -> None:
    _check_namespace(namespace, update)
    prepare_update(update, config=frontend.config)
    if update.first_execution_run_id:
        raise InvalidArgument("FirstExecutionRunId is not allowed.")
    if update.workflow_execution.run_id:
        raise InvalidArgument("RunId is not allowed.")


def _check_namespace(namespace: str, operation: StartWorkflowExecutionRequest | UpdateWorkflowExecutionRequest) -> None:
    if operation.namespace and operation.namespace != namespace:
        raise InvalidArgument("Operation namespace did not match request's namespace.")
    operation.namespace = namespace
