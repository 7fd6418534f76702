"""SignalWithStartWorkflowExecution: much as a start, in other words.

Source: ValidateSignalWithStartRequest in upstream's chasm/lib/workflow/validator.go.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowIdConflictPolicy
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    SignalWithStartWorkflowExecutionResponse,
)

from common.errors import InvalidArgument
from frontend.checks import starting
from frontend.checks.blobs import check_blob
from frontend.checks.ids import check_workflow_id, new_request_id, size, too_long
from frontend.checks.links import check_links
from frontend.checks.priorities import check_priority
from frontend.checks.task_queues import check_user_task_queue
from frontend.services import Frontend

USE_EXISTING = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING


async def signal_with_start_workflow_execution(
    frontend: Frontend, request: SignalWithStartWorkflowExecutionRequest
) -> SignalWithStartWorkflowExecutionResponse:
    config = frontend.config
    starting.check_cron(frontend, request)
    check_workflow_id(request.workflow_id, limit=config.id_limit)
    _check_name(request.signal_name, missing="signal", long="signal name", limit=config.id_limit)
    _check_name(request.workflow_type.name, missing="workflow type", long="workflow type name", limit=config.id_limit)
    check_user_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=config.id_limit)
    _set_request_id(request, limit=config.id_limit)
    starting.check_timeouts(request)
    starting.check_retry_and_delay(request)
    starting.check_id_policies(request)
    if request.workflow_id_conflict_policy == starting.FAIL:
        raise InvalidArgument(
            "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation."
        )
    starting.set_id_policies(request, conflict=USE_EXISTING)
    await starting.check_attributes_of(frontend, request)
    check_priority(request.priority, key_limit=config.fairness_key_limit)
    check_links(request.links, config=config)
    starting.check_time_skipping(request)
    starting.check_sizes(request, config)
    check_blob(request.signal_input, limit=config.blob_limit)
    starting.set_timeouts(request, config)
    return await frontend.history.signal_with_start_workflow_execution(request)


def _check_name(name: str, *, missing: str, long: str, limit: int) -> None:
    if not name:
        raise InvalidArgument(f"{missing} not set")
    if too_long(name, limit):
        raise InvalidArgument(f"{long} exceeds maximum allowed length ({size(name)}/{limit})")


def _set_request_id(request: SignalWithStartWorkflowExecutionRequest, *, limit: int) -> None:
    if not request.request_id:
        request.request_id = new_request_id()
    elif too_long(request.request_id, limit):
        raise InvalidArgument(f"Request ID exceeds maximum allowed length ({size(request.request_id)}/{limit})")
