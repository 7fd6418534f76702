"""What UpdateWorkflowExecution checks and fills in, shared with ExecuteMultiOperation.

Source: prepareUpdateWorkflowRequest in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage as Stage
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest

from common.errors import InvalidArgument, PermissionDenied
from frontend.checks.ids import check_execution, new_request_id, too_long
from frontend.checks.links import check_callbacks, check_links, with_callback_links
from frontend.config import FrontendConfig

UNSPECIFIED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_UNSPECIFIED
ADMITTED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ADMITTED
COMPLETED = Stage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED


def prepare_update(request: UpdateWorkflowExecutionRequest, *, config: FrontendConfig) -> None:
    check_execution(request.workflow_execution, is_set=request.HasField("workflow_execution"))
    update = request.request
    if not update.HasField("meta"):
        raise InvalidArgument("Update meta is not set on request.")
    if too_long(update.meta.update_id, config.id_limit):
        raise InvalidArgument("UpdateId length exceeds limit.")
    if not update.meta.update_id:
        update.meta.update_id = new_request_id()
    if not update.HasField("input"):
        raise InvalidArgument("Update input is not set on request.")
    if not update.input.name:
        raise InvalidArgument("Update name is not set on request.")
    if request.wait_policy.lifecycle_stage == UNSPECIFIED:
        request.wait_policy.lifecycle_stage = COMPLETED
    if request.wait_policy.lifecycle_stage == ADMITTED:
        raise PermissionDenied(
            "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported."
        )
    if update.completion_callbacks:
        check_callbacks(update.completion_callbacks, config=config)
    check_links(with_callback_links(update.links, update.completion_callbacks), config=config)
