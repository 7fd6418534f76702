"""What a batch must say of itself. Source of the checks, their order and words: ValidateBatchOperation in upstream's
service/worker/batcher/workflow.go, and StartBatchOperation in its service/frontend/workflow_handler.go."""

from __future__ import annotations

import re

from temporalio.api.enums.v1 import ExecutionType, ResetType
from temporalio.api.workflowservice.v1 import (
    SignalWorkflowExecutionRequest,
    StartBatchOperationRequest,
    UpdateWorkflowExecutionOptionsRequest,
)

from common.contracts.batches import ON_ACTIVITIES
from common.errors import InvalidArgument
from common.filters.errors import QueryError
from common.filters.parser import parse
from frontend.api.passing import METHODS
from frontend.config import FrontendConfig

_STATEMENT = "select * from dummy where "
"""What upstream puts before a query, and counts the positions of syntax errors in."""
_SYNTAX_ERROR = re.compile(r".*syntax error at position (\d+)(.*)", re.DOTALL)
_NEITHER = "Either activity type must be set, or match all should be set to true"


def check_batch(request: StartBatchOperationRequest, *, config: FrontendConfig) -> str:
    """The name of the request's operation. Raises InvalidArgument."""
    operation = request.WhichOneof("operation") or ""
    _check_target(request, operation)
    _check_operation(request, operation)
    _check_query(request.visibility_query)
    for name, sample in _samples(request, operation):
        for check in METHODS[name].checks:
            check(sample, config)
    return operation


def _check_target(request: StartBatchOperationRequest, operation: str) -> None:
    selectors = sum(map(bool, (request.visibility_query, request.executions, request.target_executions)))
    if not operation or not request.reason or not selectors:
        raise InvalidArgument(
            "must provide required parameters: BatchType,Reason,Namespace, AND one of (Query OR Executions OR "
            "TargetExecutions)"
        )
    if not request.job_id:
        raise InvalidArgument("JobId is not set on request.")
    if selectors > 1:
        raise InvalidArgument("visibility query, executions, and target executions are mutually exclusive")
    on_activities = operation in ON_ACTIVITIES
    wanted = ExecutionType.EXECUTION_TYPE_ACTIVITY if on_activities else ExecutionType.EXECUTION_TYPE_WORKFLOW
    for number, target in enumerate(request.target_executions):
        if target.type != wanted:
            raise InvalidArgument(
                f"target_executions[{number}] has type {_type_name(target.type)}, "
                f"but operation {_go_type(operation)} requires {_type_name(wanted)}"
            )


def _type_name(kind: ExecutionType.ValueType) -> str:
    return ExecutionType.Name(kind).removeprefix("EXECUTION_TYPE_").title()


def _check_operation(request: StartBatchOperationRequest, operation: str) -> None:
    match operation:
        case "signal_operation":
            _require(bool(request.signal_operation.signal), "must provide signal name")
        case "update_workflow_options_operation":
            update = request.update_workflow_options_operation
            _require(update.HasField("workflow_execution_options"), "must provide UpdateOptions")
            _require(update.HasField("update_mask"), "must provide UpdateMask")
        case "reset_operation":
            _check_reset(request)
        case "unpause_activities_operation":
            chosen = request.unpause_activities_operation.WhichOneof("activity")
            _require(chosen is not None, "activity filter must be set")
            _check_activities(request.unpause_activities_operation)
        case "reset_activities_operation":
            chosen = request.reset_activities_operation.WhichOneof("activity")
            _require(chosen is not None, "must provide ActivityType or MatchAll")
            _check_activities(request.reset_activities_operation)
        case "update_activity_options_operation":
            options = request.update_activity_options_operation
            given = options.HasField("activity_options")
            if given and options.restore_original:
                raise InvalidArgument("cannot set both activity options and restore original")
            _require(
                given or options.restore_original,
                "Either activity type must be set, or restore original should be set to true",
            )
            _check_activities(options)


def _check_reset(request: StartBatchOperationRequest) -> None:
    reset = request.reset_operation
    if reset.HasField("options"):
        _require(reset.options.WhichOneof("target") is not None, "batch reset missing target")
        return
    kind = reset.reset_type
    if kind not in ResetType.values() or kind == ResetType.RESET_TYPE_UNSPECIFIED:
        name = "Unspecified" if kind == ResetType.RESET_TYPE_UNSPECIFIED else str(kind)
        raise InvalidArgument(f"unknown batch reset type {name}")


def _check_activities(operation: object) -> None:
    chosen = operation.WhichOneof("activity")  # type: ignore[attr-defined]
    _require(chosen is None or bool(getattr(operation, chosen)), _NEITHER)


def _check_query(query: str) -> None:
    """Its syntax only; what it speaks of is seen when the batch runs, which then fails."""
    try:
        parse(query)
    except QueryError as error:
        raise InvalidArgument(f"invalid visibility query: {_as_in_statement(error.problem, query)}") from error


def _as_in_statement(problem: str, query: str) -> str:
    found = _SYNTAX_ERROR.match(problem)
    if found is None:
        return problem
    position = int(found[1])
    # Upstream's scanner is one further when it finds a wrong token than when it finds the end.
    shift = len(_STATEMENT) + (1 if position <= len(query) else 0)
    return f"syntax error at position {position + shift}{found[2]}"


def _samples(request: StartBatchOperationRequest, operation: str) -> list[tuple[str, object]]:
    """Calls as the batch will make them, for the checks of their methods: a fault of all is better told at once."""
    if operation == "signal_operation":
        signal = request.signal_operation
        sample = SignalWorkflowExecutionRequest(
            namespace=request.namespace, signal_name=signal.signal, input=signal.input, identity=signal.identity
        )
        sample.workflow_execution.workflow_id = "any"
        return [("SignalWorkflowExecution", sample)]
    if operation == "update_workflow_options_operation":
        update = request.update_workflow_options_operation
        options = UpdateWorkflowExecutionOptionsRequest(
            namespace=request.namespace,
            workflow_execution_options=update.workflow_execution_options,
            update_mask=update.update_mask,
        )
        options.workflow_execution.workflow_id = "any"
        return [("UpdateWorkflowExecutionOptions", options)]
    return []


def _go_type(operation: str) -> str:
    name = "".join(part.title() for part in operation.split("_"))
    return f"*workflowservice.StartBatchOperationRequest_{name}"


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InvalidArgument(otherwise)
