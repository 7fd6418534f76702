"""What StartWorkflowExecution checks and fills in, shared with the other calls that start workflows.

Source: prepareStartWorkflowRequest in upstream's service/frontend/workflow_handler.go, chasm/lib/workflow/validator.go,
and of what History checks first, service/history/api/create_workflow_util.go.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.errors import InvalidArgument, Unimplemented
from common.protos import ZERO, duration, from_duration
from frontend.checks.blobs import check_blob, check_memo
from frontend.checks.durations import check_duration
from frontend.checks.ids import check_request_id, check_workflow_id, new_request_id, too_long
from frontend.checks.links import check_callbacks, check_links, with_callback_links
from frontend.checks.priorities import check_priority
from frontend.checks.retry_policies import check_retry_policy
from frontend.checks.search_attributes import check_search_attributes
from frontend.checks.task_queues import check_user_task_queue
from frontend.config import FrontendConfig
from frontend.services import Frontend
from history.cron import validate_cron
from history.validation import run_timeout_within

TERMINATE_IF_RUNNING = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING
ALLOW_DUPLICATE = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
REJECT_DUPLICATE = WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
FAIL = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL
TERMINATE_EXISTING = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING

_TIMEOUTS = ("workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout")
_TIMEOUT_WORDS = {
    "workflow_execution_timeout": "WorkflowExecutionTimeoutSeconds",
    "workflow_run_timeout": "WorkflowRunTimeoutSeconds",
    "workflow_task_timeout": "WorkflowTaskTimeoutSeconds",
}


async def prepare_start(frontend: Frontend, request: StartWorkflowExecutionRequest) -> None:
    """Checks a start request and fills in its defaults, in place; doing it twice changes nothing more."""
    config = frontend.config
    set_id_policies(request, conflict=FAIL)
    check_workflow_id(request.workflow_id, limit=config.id_limit)
    check_retry_and_delay(request)
    check_cron(frontend, request)
    _check_type(request.workflow_type.name, limit=config.id_limit)
    check_user_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=config.id_limit)
    check_timeouts(request)
    if not request.request_id:
        request.request_id = new_request_id()
    check_request_id(request.request_id, limit=config.id_limit)
    check_id_policies(request)
    if request.on_conflict_options.attach_completion_callbacks and not request.on_conflict_options.attach_request_id:
        raise InvalidArgument("attaching request ID is required for attaching completion callbacks")
    await check_attributes_of(frontend, request)
    check_priority(request.priority, key_limit=config.fairness_key_limit)
    _check_callbacks_and_links(request, config)
    check_time_skipping(request)
    check_sizes(request, config)
    set_timeouts(request, config)


def set_id_policies(request: Any, *, conflict: WorkflowIdConflictPolicy.ValueType) -> None:
    """`conflict` is the conflict policy of a request that names none."""
    if not request.workflow_id_conflict_policy:
        if request.workflow_id_reuse_policy == TERMINATE_IF_RUNNING:
            request.workflow_id_conflict_policy = TERMINATE_EXISTING
            request.workflow_id_reuse_policy = ALLOW_DUPLICATE
        else:
            request.workflow_id_conflict_policy = conflict
    if not request.workflow_id_reuse_policy:
        request.workflow_id_reuse_policy = ALLOW_DUPLICATE


def check_id_policies(request: Any) -> None:
    conflict, reuse = request.workflow_id_conflict_policy, request.workflow_id_reuse_policy
    if conflict and reuse == TERMINATE_IF_RUNNING:
        raise InvalidArgument(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together "
            "with a WorkflowIDConflictPolicy"
        )
    if conflict == TERMINATE_EXISTING and reuse == REJECT_DUPLICATE:
        raise InvalidArgument(
            "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with "
            "WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"
        )


def check_retry_and_delay(request: Any) -> None:
    if request.HasField("retry_policy"):
        check_retry_policy(request.retry_policy)
    if request.HasField("workflow_start_delay"):
        if request.cron_schedule:
            raise InvalidArgument("CronSchedule and WorkflowStartDelay may not be used together.")
        check_duration(
            request.workflow_start_delay, "An invalid WorkflowStartDelaySeconds is set on request. cause: {}"
        )


def check_cron(frontend: Frontend, request: Any) -> None:
    if request.cron_schedule:
        validate_cron(request.cron_schedule, now=frontend.clock.now())


def check_timeouts(request: Any) -> None:
    for field in _TIMEOUTS:
        if request.HasField(field):
            complaint = f"An invalid {_TIMEOUT_WORDS[field]} is set on request. cause: {{}}"
            check_duration(getattr(request, field), complaint)


def set_timeouts(request: Any, config: FrontendConfig) -> None:
    """The run's timeout within the execution's, the workflow task's within the run's and the server's maximum."""
    given = from_duration(request.workflow_run_timeout)
    run = run_timeout_within(given, execution_timeout=from_duration(request.workflow_execution_timeout))
    if run != given:
        request.workflow_run_timeout.CopyFrom(duration(run))
    given = from_duration(request.workflow_task_timeout)
    task = min(given or config.default_task_timeout, config.max_task_timeout, *((run,) if run > ZERO else ()))
    if task != given:
        request.workflow_task_timeout.CopyFrom(duration(task))


async def check_attributes_of(frontend: Frontend, request: Any) -> None:
    if not request.search_attributes.indexed_fields:
        return
    check_search_attributes(
        request.search_attributes,
        namespace=request.namespace,
        custom=await frontend.custom_attributes(request.namespace),
    )


def check_time_skipping(request: Any) -> None:
    if request.HasField("time_skipping_config"):
        raise Unimplemented("The Time-Skipping feature is not enabled for namespace.")


def check_sizes(request: Any, config: FrontendConfig) -> None:
    check_blob(request.input, limit=config.blob_limit)
    if request.HasField("memo"):
        check_memo(request.memo, limit=config.memo_limit)


def _check_type(name: str, *, limit: int) -> None:
    if not name:
        raise InvalidArgument("WorkflowType is not set on request.")
    if too_long(name, limit):
        raise InvalidArgument("WorkflowType length exceeds limit.")


def _check_callbacks_and_links(request: StartWorkflowExecutionRequest, config: FrontendConfig) -> None:
    callbacks = request.completion_callbacks
    if callbacks:
        check_callbacks(callbacks, config=config)
    if request.links:
        _drop_links_of_callbacks(request)
        check_links(with_callback_links(request.links, callbacks), config=config)


def _drop_links_of_callbacks(request: StartWorkflowExecutionRequest) -> None:
    known = [link for callback in request.completion_callbacks if callback.HasField("nexus") for link in callback.links]
    if not known:
        return
    kept: list[Link] = [link for link in request.links if link not in known]
    del request.links[:]
    request.links.extend(kept)
