"""What StartActivityExecution checks and fills in, and changes of an activity's options.

Source: upstream's chasm/lib/activity/{frontend,validator}.go.
"""

from __future__ import annotations

from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.enums.v1 import ActivityIdConflictPolicy, ActivityIdReusePolicy
from temporalio.api.workflowservice.v1 import StartActivityExecutionRequest, UpdateActivityExecutionOptionsRequest

from common.errors import InvalidArgument
from frontend.checks.activity_executions import check_length
from frontend.checks.durations import check_duration
from frontend.checks.ids import new_request_id, size, too_long
from frontend.checks.links import check_callbacks, check_links, with_callback_links
from frontend.checks.priorities import check_priority
from frontend.checks.search_attributes import check_search_attributes
from frontend.checks.task_queues import check_user_task_queue
from frontend.config import FrontendConfig
from frontend.services import Frontend
from history.config import HistoryConfig
from history.transitions.activity_options import adjusted
from history.transitions.field_masks import normalized
from history.validation import checked_policy

_DEFAULTS = HistoryConfig()
_TIMEOUTS = ("schedule_to_close_timeout", "schedule_to_start_timeout", "start_to_close_timeout", "heartbeat_timeout")
_REUSE = ActivityIdReusePolicy.ACTIVITY_ID_REUSE_POLICY_ALLOW_DUPLICATE
_CONFLICT = ActivityIdConflictPolicy.ACTIVITY_ID_CONFLICT_POLICY_FAIL


async def prepare_activity_start(frontend: Frontend, request: StartActivityExecutionRequest) -> None:
    """Checks a start request and fills in its defaults, in place. Raises INVALID_ARGUMENT."""
    config = frontend.config
    request.request_id = request.request_id or new_request_id()
    check_duration(request.start_delay, "invalid StartDelay: {}")
    _check_options(request, config)
    check_length("request ID", request.request_id, limit=config.id_limit)
    check_length("identity", request.identity, limit=config.id_limit)
    _set_policies(request)
    if request.input.ByteSize() > config.blob_limit:
        raise InvalidArgument("input exceeds length limit")
    _check_metadata(request, config)
    if request.search_attributes.indexed_fields:
        check_search_attributes(
            request.search_attributes,
            namespace=request.namespace,
            custom=await frontend.custom_attributes(request.namespace),
        )
    if request.completion_callbacks:
        check_callbacks(request.completion_callbacks, config=config)
    check_links(with_callback_links(request.links, request.completion_callbacks), config=config)
    _check_conflict_options(request)


def _check_options(request: StartActivityExecutionRequest, config: FrontendConfig) -> None:
    check_user_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=config.id_limit)
    if not request.activity_id:
        raise InvalidArgument("activityId is not set")
    if not request.activity_type.name:
        raise InvalidArgument("activityType is not set")
    request.retry_policy.CopyFrom(checked_policy(request.retry_policy, _DEFAULTS))
    for name, value in (("activityId", request.activity_id), ("activityType", request.activity_type.name)):
        if too_long(value, config.id_limit):
            raise InvalidArgument(f"{name} exceeds length limit. Length={size(value)} Limit={config.id_limit}")
    try:
        check_priority(request.priority, key_limit=config.fairness_key_limit)
    except InvalidArgument as error:
        raise InvalidArgument(f"invalid priorities: {error.message}") from error
    options = ActivityOptions(**{name: getattr(request, name) for name in _TIMEOUTS})
    options = adjusted(options, activity_id=request.activity_id, activity_type=request.activity_type.name)
    for name in _TIMEOUTS:
        getattr(request, name).CopyFrom(getattr(options, name))


def _set_policies(request: StartActivityExecutionRequest) -> None:
    request.id_reuse_policy = request.id_reuse_policy or _REUSE
    request.id_conflict_policy = request.id_conflict_policy or _CONFLICT
    if request.id_reuse_policy not in ActivityIdReusePolicy.values():
        raise InvalidArgument(f"unsupported ID reuse policy: {request.id_reuse_policy}")
    if request.id_conflict_policy not in ActivityIdConflictPolicy.values():
        raise InvalidArgument(f"unsupported ID conflict policy: {request.id_conflict_policy}")


def _check_metadata(request: StartActivityExecutionRequest, config: FrontendConfig) -> None:
    for name, limit in (("summary", config.summary_limit), ("details", config.details_limit)):
        length = getattr(request.user_metadata, name).ByteSize()
        if length > limit:
            raise InvalidArgument(f"user_metadata.{name} exceeds size limit. Length={length} Limit={limit}")


def _check_conflict_options(request: StartActivityExecutionRequest) -> None:
    options = request.on_conflict_options
    if options.attach_completion_callbacks and not options.attach_request_id:
        raise InvalidArgument("on_conflict_options: attach_completion_callbacks requires attach_request_id to be set")
    if options.attach_request_id and not request.completion_callbacks and not request.links:
        raise InvalidArgument(
            "on_conflict_options: attach_request_id requires at least one completion callback or link"
        )


def check_new_options(request: UpdateActivityExecutionOptionsRequest, *, config: FrontendConfig) -> None:
    """The values that a change of an activity without a workflow names; a whole retry policy gets its defaults."""
    if request.restore_original:
        return
    options, paths = request.activity_options, normalized(request.update_mask.paths)
    if "task_queue.name" in paths:
        check_user_task_queue(options.task_queue, is_set=options.HasField("task_queue"), limit=config.id_limit)
    if any(path.startswith("priority") for path in paths):
        check_priority(options.priority, key_limit=config.fairness_key_limit)
    if "start_delay" in paths:
        check_duration(options.start_delay, "invalid StartDelay: {}")
    if "retry_policy" in paths:
        options.retry_policy.CopyFrom(checked_policy(options.retry_policy, _DEFAULTS))
