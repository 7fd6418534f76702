"""Methods that are checked and then handed to another role as they are: one row each.

Source of the checks and their order: the method of the same name in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from msgspec import Struct
from temporalio.api.taskqueue.v1 import TaskQueue

from common.errors import InvalidArgument, TemporalError, Unimplemented
from frontend.checks import deployments
from frontend.checks.blobs import check_blob
from frontend.checks.build_ids import check_rules_enabled, check_rules_update, check_sets_enabled, check_sets_update
from frontend.checks.ids import (
    check_execution,
    check_identity,
    check_is_of_workflow,
    check_request_id,
    check_run_id,
    too_long,
)
from frontend.checks.links import check_links
from frontend.checks.priorities import check_priority
from frontend.checks.task_queues import check_task_queue
from frontend.checks.versioning import check_versioning
from frontend.config import FrontendConfig
from frontend.services import Frontend

Check = Callable[[Any, FrontendConfig], None]


class Passing(Struct, frozen=True):
    to: Literal["history", "matching"]
    call: str
    """The client's method."""
    checks: tuple[Check, ...] = ()


def entry(method: str, *, absent: TemporalError) -> Callable[[Frontend, Any], Awaitable[Any]]:
    """The entry function; raises `absent` when the other role does not have the method."""
    row = METHODS[method]

    async def passing(frontend: Frontend, request: Any) -> Any:
        for check in row.checks:
            check(request, frontend.config)
        call = getattr(getattr(frontend, row.to), row.call, None)
        if call is None:
            raise Unimplemented(absent.message)
        return await call(request)

    return passing


def _execution(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
    check_execution(request.execution, is_set=request.HasField("execution"))


def _workflow_execution(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
    check_execution(request.workflow_execution, is_set=request.HasField("workflow_execution"))


def _workflow_id_of(field: str) -> Check:
    def check(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
        workflow_id = getattr(request, field).workflow_id
        if not workflow_id:
            raise InvalidArgument("WorkflowId is not set on request.")
        check_is_of_workflow(workflow_id)

    return check


def _links(request: Any, config: FrontendConfig) -> None:
    check_links(request.links, config=config)


def _identity(request: Any, config: FrontendConfig) -> None:
    check_identity(request.identity, limit=config.id_limit)


def _signal(request: Any, config: FrontendConfig) -> None:
    if not request.signal_name:
        raise InvalidArgument("SignalName is not set on request.")
    if too_long(request.signal_name, config.id_limit):
        raise InvalidArgument("SignalName length exceeds limit.")
    check_request_id(request.request_id, limit=config.id_limit)


def _signal_input(request: Any, config: FrontendConfig) -> None:
    check_blob(request.input, limit=config.blob_limit)


def _completing_worker(request: Any, config: FrontendConfig) -> None:
    options = request.deployment_options if request.HasField("deployment_options") else None
    queue = request.sticky_attributes.worker_task_queue
    check_versioning(request.worker_version_stamp, options, queue, config=config)


def _activity(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
    if request.WhichOneof("activity") is None:
        raise InvalidArgument("Either Activity.Id or Activity.Type should be set on request.")


def _activity_priority(request: Any, config: FrontendConfig) -> None:
    check_priority(request.activity_options.priority, key_limit=config.fairness_key_limit)


def _task_queue(request: Any, config: FrontendConfig) -> None:
    check_task_queue(request.task_queue, is_set=request.HasField("task_queue"), limit=config.id_limit)


def _named_queue(request: Any, config: FrontendConfig) -> None:
    check_task_queue(TaskQueue(name=request.task_queue), is_set=True, limit=config.id_limit)


def _options_mask(request: Any, config: FrontendConfig) -> None:
    if not request.HasField("update_mask"):
        raise InvalidArgument("UpdateMask is required")
    if not request.HasField("workflow_execution_options"):
        raise InvalidArgument("WorkflowExecutionOptions is required")
    options = request.workflow_execution_options
    for path in request.update_mask.paths:
        _check_path(options.DESCRIPTOR, path)
    check_priority(options.priority, key_limit=config.fairness_key_limit)


def _check_path(descriptor: Any, path: str) -> None:
    current = descriptor
    for name in path.split("."):
        field = None if current is None else current.fields_by_name.get(name)
        if field is None:
            raise InvalidArgument(
                f'error parsing UpdateMask: proto: invalid path "{path}" for message "{descriptor.full_name}"'
            )
        current = field.message_type


def _of_run(field: str) -> Check:
    """A run id that could be one, in the message `field` or, when that is empty, in the request itself."""

    def check(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
        check_run_id(getattr(request, field).run_id if field else request.run_id)

    return check


def _paused_workflow(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
    if not request.workflow_id:
        raise InvalidArgument("Can't load workflow execution.  WorkflowId not set.")
    check_is_of_workflow(request.workflow_id)


def _pause_enabled(request: Any, config: FrontendConfig) -> None:
    if not config.workflow_pause:
        raise Unimplemented(f"workflow pause is not enabled for namespace: {request.namespace}")


def _pause_texts(request: Any, config: FrontendConfig) -> None:
    for field, words in (("reason", "reason"), ("request_id", "request id"), ("identity", "identity")):
        if too_long(getattr(request, field), config.id_limit):
            raise InvalidArgument(f"{words} is too long.")


_OF_ACTIVITY = (_workflow_id_of("execution"), _activity)

METHODS: dict[str, Passing] = {
    "RespondWorkflowTaskCompleted": Passing(
        "history", "respond_workflow_task_completed", (_identity, _completing_worker)
    ),
    "RequestCancelWorkflowExecution": Passing(
        "history", "request_cancel_workflow_execution", (_workflow_execution, _links)
    ),
    "SignalWorkflowExecution": Passing(
        "history", "signal_workflow_execution", (_workflow_execution, _signal, _links, _signal_input)
    ),
    "DeleteWorkflowExecution": Passing("history", "delete_workflow_execution", (_workflow_execution,)),
    "DescribeWorkflowExecution": Passing("history", "describe_workflow_execution", (_execution,)),
    "ResetStickyTaskQueue": Passing("history", "reset_sticky_task_queue", (_execution,)),
    "UpdateWorkflowExecutionOptions": Passing(
        "history",
        "update_workflow_execution_options",
        (_workflow_id_of("workflow_execution"), _options_mask, _of_run("workflow_execution")),
    ),
    "PauseWorkflowExecution": Passing(
        "history", "pause_workflow_execution", (_pause_enabled, _pause_texts, _paused_workflow, _of_run(""))
    ),
    "UnpauseWorkflowExecution": Passing(
        "history", "unpause_workflow_execution", (_pause_texts, _paused_workflow, _of_run(""))
    ),
    "PauseActivity": Passing("history", "pause_activity", _OF_ACTIVITY),
    "UnpauseActivity": Passing("history", "unpause_activity", _OF_ACTIVITY),
    "ResetActivity": Passing("history", "reset_activity", _OF_ACTIVITY),
    "UpdateActivityOptions": Passing("history", "update_activity_options", (*_OF_ACTIVITY, _activity_priority)),
    "ListTaskQueuePartitions": Passing("matching", "list_task_queue_partitions", (_task_queue,)),
    "ListWorkers": Passing("matching", "list_workers"),
    "CountWorkers": Passing("matching", "count_workers"),
    "DescribeWorker": Passing("matching", "describe_worker"),
    "UpdateTaskQueueConfig": Passing("matching", "update_task_queue_config"),
    "UpdateWorkerBuildIdCompatibility": Passing(
        "matching", "update_worker_build_id_compatibility", (check_sets_enabled, check_sets_update, _named_queue)
    ),
    "GetWorkerBuildIdCompatibility": Passing(
        "matching", "get_worker_build_id_compatibility", (check_sets_enabled, _named_queue)
    ),
    "UpdateWorkerVersioningRules": Passing(
        "matching", "update_worker_versioning_rules", (check_rules_enabled, check_rules_update, _named_queue)
    ),
    "GetWorkerVersioningRules": Passing("matching", "get_worker_versioning_rules", (check_rules_enabled, _named_queue)),
    "CreateWorkerDeployment": Passing("matching", "create_worker_deployment", (deployments.creation,)),
    "CreateWorkerDeploymentVersion": Passing(
        "matching", "create_worker_deployment_version", (deployments.version_creation,)
    ),
    "DescribeWorkerDeployment": Passing("matching", "describe_worker_deployment", (deployments.named_deployment,)),
    "DescribeWorkerDeploymentVersion": Passing(
        "matching", "describe_worker_deployment_version", (deployments.named_version,)
    ),
    "ListWorkerDeployments": Passing("matching", "list_worker_deployments"),
    "SetWorkerDeploymentCurrentVersion": Passing(
        "matching", "set_worker_deployment_current_version", (deployments.current_version,)
    ),
    "SetWorkerDeploymentRampingVersion": Passing(
        "matching", "set_worker_deployment_ramping_version", (deployments.ramping_version,)
    ),
    "SetWorkerDeploymentManager": Passing("matching", "set_worker_deployment_manager", (deployments.manager,)),
    "UpdateWorkerDeploymentVersionMetadata": Passing(
        "matching", "update_worker_deployment_version_metadata", (deployments.metadata,)
    ),
    "UpdateWorkerDeploymentVersionComputeConfig": Passing(
        "matching", "update_worker_deployment_version_compute_config", (deployments.compute_config,)
    ),
    "DeleteWorkerDeployment": Passing("matching", "delete_worker_deployment", (deployments.named_deployment,)),
    "DeleteWorkerDeploymentVersion": Passing(
        "matching", "delete_worker_deployment_version", (deployments.named_version,)
    ),
}
