"""What workers say about their version.

Source: validateVersioningInfo in upstream's service/frontend/workflow_handler.go and common/worker_versioning.
"""

from __future__ import annotations

from temporalio.api.common.v1 import WorkerVersionCapabilities, WorkerVersionStamp
from temporalio.api.deployment.v1 import WorkerDeploymentOptions
from temporalio.api.enums.v1 import WorkerVersioningMode
from temporalio.api.taskqueue.v1 import TaskQueue

from common.errors import InvalidArgument, PermissionDenied
from frontend.checks.ids import too_long
from frontend.checks.task_queues import STICKY
from frontend.config import FrontendConfig

VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED

_PREFIX_BYTES = 39
"""What upstream keeps free of the id limit: both names become part of a workflow id."""


def check_versioning(
    worker: WorkerVersionCapabilities | WorkerVersionStamp,
    options: WorkerDeploymentOptions | None,
    queue: TaskQueue,
    *,
    config: FrontendConfig,
) -> None:
    """`options` is None when the request has none."""
    if worker.use_versioning and not config.build_id_versioning:
        raise PermissionDenied("Worker versioning in workflow progress APIs is disabled on this namespace.")
    if queue.kind == STICKY and not queue.normal_name and (worker.use_versioning or options is not None):
        raise InvalidArgument(
            "NormalName must be set on sticky queue when UseVersioning is true or DeploymentOptions are set."
        )
    if worker.use_versioning and not worker.build_id:
        raise InvalidArgument("WorkerVersionStamp must be present if UseVersioning is true.")
    if too_long(worker.build_id, config.build_id_limit):
        raise InvalidArgument("Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID.")
    if options is not None and options.worker_versioning_mode == VERSIONED:
        _check_deployment(options, limit=config.id_limit)


def _check_deployment(options: WorkerDeploymentOptions, *, limit: int) -> None:
    if not options.deployment_name or not options.build_id:
        raise InvalidArgument("Deployment name and build id must be set together.")
    check_deployment_name(options.deployment_name, limit=limit)
    check_build_id(options.build_id, limit=limit)


def check_deployment_name(name: str, *, limit: int) -> None:
    """`limit` is that of ids, in bytes."""
    _check_size("WorkerDeploymentName", name, limit=limit)
    _check_delimiters(name)
    _check_reserved("WorkerDeploymentName", name)


def check_build_id(build_id: str, *, limit: int) -> None:
    _check_size("BuildID", build_id, limit=limit)
    _check_reserved("BuildID", build_id)


def _check_size(field: str, value: str, *, limit: int) -> None:
    if not value:
        raise InvalidArgument(f"{field} cannot be empty")
    if too_long(value, (limit - _PREFIX_BYTES) // 2):
        raise InvalidArgument(f"size of {field} larger than the maximum allowed")


def _check_reserved(field: str, value: str) -> None:
    if value.startswith("__"):
        raise InvalidArgument(f"{field} cannot start with '__'")


def _check_delimiters(deployment_name: str) -> None:
    for delimiter in (".", ":"):
        if delimiter in deployment_name:
            raise InvalidArgument(f"worker deployment name cannot contain '{delimiter}'")
