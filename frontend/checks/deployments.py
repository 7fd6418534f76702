"""What the calls about worker deployments must say. Each check also brings its request to today's form: versions as
messages, a request id, the identity.

Source: the methods of the same names in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.api.deployment.v1 import WorkerDeploymentVersion

from common.errors import InvalidArgument
from frontend.checks.versioning import check_build_id, check_deployment_name
from frontend.config import FrontendConfig

UNVERSIONED = "__unversioned__"


def creation(request: Any, config: FrontendConfig) -> None:
    _require_name(request.deployment_name)
    check_deployment_name(request.deployment_name, limit=config.id_limit)
    request.request_id = request.request_id or str(uuid.uuid4())


def version_creation(request: Any, config: FrontendConfig) -> None:
    _require_both(request.deployment_version)
    _check_version(request.deployment_version, config)
    request.request_id = request.request_id or str(uuid.uuid4())


def named_deployment(request: Any, config: FrontendConfig) -> None:
    check_deployment_name(request.deployment_name, limit=config.id_limit)


def named_version(request: Any, config: FrontendConfig) -> None:
    """By message, or in the older form as a text."""
    if request.version:
        version = version_from_text(request.version)
        if version is None:
            raise InvalidArgument(
                f'invalid version string "{request.version}", expected format is "<deployment_name>.<build_id>"'
            )
        request.deployment_version.CopyFrom(version)
    elif not request.HasField("deployment_version"):
        raise InvalidArgument("deployment version cannot be empty")
    _check_version(request.deployment_version, config)


def compute_config(request: Any, config: FrontendConfig) -> None:  # noqa: ARG001
    _require_both(request.deployment_version)


def current_version(request: Any, config: FrontendConfig) -> None:
    _require_name(request.deployment_name)
    _take_text(request)
    _check_target(request, config)


def ramping_version(request: Any, config: FrontendConfig) -> None:
    if not 0 <= request.percentage <= 100:
        raise InvalidArgument("Percentage must be between 0 and 100 (inclusive)")
    _take_text(request)
    _check_target(request, config)


def manager(request: Any, config: FrontendConfig) -> None:
    if not request.identity:
        raise InvalidArgument("Identity is required")
    named_deployment(request, config)


def metadata(request: Any, config: FrontendConfig) -> None:
    if not request.remove_entries and not request.upsert_entries:
        raise InvalidArgument("At least one of remove_entries or upsert_entries must be provided")
    named_version(request, config)


def _take_text(request: Any) -> None:
    """The older form of the target becomes its build id."""
    if not request.version or request.version == UNVERSIONED:
        return
    version = version_from_text(request.version)
    if version is None:
        raise InvalidArgument(
            f"invalid version string: expected delimiter ':' or '.' not found in version string {request.version}"
        )
    if version.deployment_name != request.deployment_name:
        raise InvalidArgument(
            f"invalid version string '{request.version}' does not match deployment name '{request.deployment_name}'"
        )
    request.build_id = version.build_id


def _check_target(request: Any, config: FrontendConfig) -> None:
    check_deployment_name(request.deployment_name, limit=config.id_limit)
    if request.build_id and request.allow_no_pollers:
        check_build_id(request.build_id, limit=config.id_limit)


def _check_version(version: WorkerDeploymentVersion, config: FrontendConfig) -> None:
    check_deployment_name(version.deployment_name, limit=config.id_limit)
    check_build_id(version.build_id, limit=config.id_limit)


def _require_name(name: str) -> None:
    if not name:
        raise InvalidArgument("deployment name cannot be empty")


def _require_both(version: WorkerDeploymentVersion) -> None:
    _require_name(version.deployment_name)
    if not version.build_id:
        raise InvalidArgument("build ID cannot be empty")


def version_from_text(text: str) -> WorkerDeploymentVersion | None:
    """`name.build` or `name:build`, split at whichever delimiter comes first; None for what is neither."""
    first = min((delimiter for delimiter in ".:" if delimiter in text), key=text.find, default="")
    name, _, build_id = text.partition(first) if first else ("", "", "")
    return WorkerDeploymentVersion(deployment_name=name, build_id=build_id) if name and build_id else None
