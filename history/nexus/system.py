"""The operations that the server itself offers to workflows, at the endpoint `__temporal_system`.

    check_system_operation(attributes, *, namespace) -> str         what is wrong with a call of one; empty when nothing is
    system_request(...) -> SignalWithStartWorkflowExecutionRequest  the call that it stands for

There is one: SignalWithStartWorkflowExecution of the workflow service. Its input is the request as protobuf, in the caller's
own namespace; request id and link are the operation's.
Source: upstream's chasm/lib/workflow/{nexus_service,validator}.go and chasm/nexus_operation_processor.go.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError
from temporalio.api.command.v1 import ScheduleNexusOperationCommandAttributes
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import TaskQueueKind, WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.workflowservice.v1 import SignalWithStartWorkflowExecutionRequest

from common.codec import CodecError, from_json
from common.errors import InvalidArgument
from history.validation import duration_fault

SERVICE = "temporal.api.workflowservice.v1.WorkflowService"
OPERATION = "SignalWithStartWorkflowExecution"
ID_LIMIT = 1_000
USE_EXISTING = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
ALLOW_DUPLICATE = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE


def check_system_operation(attributes: ScheduleNexusOperationCommandAttributes, *, namespace: str) -> str:
    if attributes.service != SERVICE:
        return f'service "{attributes.service}" not found'
    if attributes.operation != OPERATION:
        return f'operation "{attributes.operation}" not found'
    try:
        system_request(attributes.input, namespace=namespace)
    except InvalidArgument as error:
        return error.message
    return ""


def system_request(payload: Payload, *, namespace: str) -> SignalWithStartWorkflowExecutionRequest:
    """The request with its defaults. Raises INVALID_ARGUMENT."""
    request = _read(payload)
    if request.namespace and request.namespace != namespace:
        raise InvalidArgument(
            f'Namespace in request "{request.namespace}" does not match namespace in context "{namespace}"'
        )
    request.namespace = namespace
    if request.request_id:
        raise InvalidArgument("RequestID should not be set on the request")
    if request.links:
        raise InvalidArgument("Links should not be set on the request")
    _check(request)
    if not request.task_queue.kind:
        request.task_queue.kind = TaskQueueKind.TASK_QUEUE_KIND_NORMAL
    if not request.workflow_id_conflict_policy:
        request.workflow_id_conflict_policy = USE_EXISTING
    if not request.workflow_id_reuse_policy:
        request.workflow_id_reuse_policy = ALLOW_DUPLICATE
    return request


def _read(payload: Payload) -> SignalWithStartWorkflowExecutionRequest:
    encoding = payload.metadata.get("encoding", b"")
    try:
        if encoding == b"binary/protobuf":
            return SignalWithStartWorkflowExecutionRequest.FromString(payload.data)
        if encoding in (b"json/protobuf", b"json/plain"):
            return from_json(SignalWithStartWorkflowExecutionRequest, payload.data)
    except (DecodeError, CodecError):
        pass
    raise InvalidArgument("invalid input")


def _check(request: SignalWithStartWorkflowExecutionRequest) -> None:
    if not request.workflow_id:
        raise InvalidArgument("WorkflowId is not set on request.")
    if (size := len(request.workflow_id.encode())) > ID_LIMIT:
        raise InvalidArgument(f"WorkflowId exceeds maximum allowed length ({size}/{ID_LIMIT})")
    if not request.signal_name:
        raise InvalidArgument("SignalName is not set on request.")
    if not request.workflow_type.name:
        raise InvalidArgument("WorkflowType is not set on request.")
    if not request.task_queue.name:
        raise InvalidArgument("taskQueue is not set")
    for name in ("workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout"):
        if fault := duration_fault(getattr(request, name)):
            words = "".join(part.title() for part in name.split("_"))
            raise InvalidArgument(f"An invalid {words}Seconds is set on request. cause: {fault}")
    if request.workflow_id_conflict_policy == WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL:
        raise InvalidArgument(
            "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation."
        )
