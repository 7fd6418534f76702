"""UpdateActivityExecutionOptions: for an activity of a workflow, or one without."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import (
    UpdateActivityExecutionOptionsRequest,
    UpdateActivityExecutionOptionsResponse,
    UpdateActivityOptionsRequest,
)

from common.errors import InvalidArgument
from frontend.checks.activity_executions import workflow_of
from frontend.checks.activity_starting import check_new_options
from frontend.services import Frontend

PATHS = frozenset(
    (
        "taskQueue.name", "scheduleToCloseTimeout", "scheduleToStartTimeout", "startToCloseTimeout", "heartbeatTimeout",
        "priority", "priority.priorityKey", "priority.fairnessKey", "priority.fairnessWeight",
        "retryPolicy", "retryPolicy.initialInterval", "retryPolicy.backoffCoefficient", "retryPolicy.maximumInterval",
        "retryPolicy.maximumAttempts", "startDelay",
    )
)  # fmt: skip
"""What may be named as to be changed. Source: upstream's chasm/lib/activity/validator.go."""


async def update_activity_execution_options(
    frontend: Frontend, request: UpdateActivityExecutionOptionsRequest
) -> UpdateActivityExecutionOptionsResponse:
    execution = workflow_of(request, config=frontend.config)
    check_mask(request)
    if execution is None:
        check_new_options(request, config=frontend.config)
        return await frontend.history.update_activity_execution_options(request)
    response = await frontend.history.update_activity_options(
        UpdateActivityOptionsRequest(
            namespace=request.namespace,
            execution=execution,
            id=request.activity_id,
            activity_options=request.activity_options if request.HasField("activity_options") else None,
            update_mask=request.update_mask if request.HasField("update_mask") else None,
            restore_original=request.restore_original,
            identity=request.identity,
        )
    )
    return UpdateActivityExecutionOptionsResponse(activity_options=response.activity_options)


def check_mask(request: UpdateActivityExecutionOptionsRequest) -> None:
    """Raises INVALID_ARGUMENT unless the request says what to change, and in one way only."""
    paths = request.update_mask.paths
    if request.restore_original:
        if paths:
            raise InvalidArgument("Both UpdateMask and RestoreOriginal are provided")
        return
    if not request.HasField("activity_options"):
        raise InvalidArgument("ActivityOptions are not provided")
    if not request.HasField("update_mask"):
        raise InvalidArgument("UpdateMask is not provided")
    if not paths:
        raise InvalidArgument("UpdateMask must specify at least one path")
    for path in paths:
        if camel_case(path) not in PATHS:
            raise InvalidArgument(f'unsupported update_mask path: "{path}"')


def camel_case(path: str) -> str:
    """`retry_policy.maximum_attempts` as `retryPolicy.maximumAttempts`; what is in camel case already stays."""
    return ".".join(_camel_case(part) for part in path.split("."))


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first[:1].lower() + first[1:] + "".join(word.capitalize() for word in others)
