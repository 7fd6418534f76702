"""What the calls about an activity that name it by its id check, whether it is a workflow's or its own.

Source: upstream's chasm/lib/activity/{frontend,validator}.go.
"""

from __future__ import annotations

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument, Unimplemented
from frontend.checks.ids import check_execution, size, too_long
from frontend.config import FrontendConfig

ByActivityId = (
    ws.PauseActivityExecutionRequest
    | ws.UnpauseActivityExecutionRequest
    | ws.ResetActivityExecutionRequest
    | ws.UpdateActivityExecutionOptionsRequest
)


def activity_of_workflow(request: ByActivityId, *, config: FrontendConfig) -> WorkflowExecution:
    """The workflow whose activity is meant. Raises INVALID_ARGUMENT; UNIMPLEMENTED for an activity without a workflow."""
    if not request.workflow_id:
        raise Unimplemented("Standalone activity operator commands are disabled")
    limit = config.id_limit
    if not request.activity_id:
        raise InvalidArgument("activity ID is required")
    for name, value in (("activity ID", request.activity_id), ("identity", request.identity)):
        if too_long(value, limit):
            raise InvalidArgument(f"{name} exceeds length limit. Length={size(value)} Limit={limit}")
    execution = WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id)
    try:
        check_execution(execution, is_set=True)
    except InvalidArgument as error:
        raise InvalidArgument("invalid run id: must be a valid UUID") from error
    return execution
