"""What the calls about an activity that name it by its id check, whether it is a workflow's or its own.

Source: upstream's chasm/lib/activity/{frontend,validator}.go.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument
from frontend.checks.ids import check_run_id, check_workflow_id, new_request_id, size, too_long
from frontend.config import FrontendConfig

ByActivityId = (
    ws.PauseActivityExecutionRequest
    | ws.UnpauseActivityExecutionRequest
    | ws.ResetActivityExecutionRequest
    | ws.UpdateActivityExecutionOptionsRequest
)


def check_activity(request: Any, *, config: FrontendConfig) -> None:
    """Any request that names an activity. Fills in its request id, if there is room for one and the client gave none."""
    limit = config.id_limit
    if "request_id" in request.DESCRIPTOR.fields_by_name:
        request.request_id = request.request_id or new_request_id()
        check_length("request ID", request.request_id, limit=limit)
    if not request.activity_id:
        raise InvalidArgument("activity ID is required")
    check_length("activity ID", request.activity_id, limit=limit)
    check_length("identity", getattr(request, "identity", ""), limit=limit)
    try:
        check_run_id(request.run_id)
    except InvalidArgument as error:
        raise InvalidArgument("invalid run id: must be a valid UUID") from error
    if size(getattr(request, "reason", "")) > config.blob_limit:
        raise InvalidArgument("reason exceeds length limit")


def check_length(name: str, value: str, *, limit: int) -> None:
    if too_long(value, limit):
        raise InvalidArgument(f"{name} exceeds length limit. Length={size(value)} Limit={limit}")


def workflow_of(request: ByActivityId, *, config: FrontendConfig) -> WorkflowExecution | None:
    """The workflow whose activity is meant; None: it has none. Raises INVALID_ARGUMENT."""
    check_activity(request, config=config)
    if not request.workflow_id:
        return None
    check_workflow_id(request.workflow_id, limit=config.id_limit)
    return WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id)
