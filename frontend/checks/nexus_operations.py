"""What the calls about a Nexus operation without a workflow check and fill in.

Source: upstream's chasm/lib/nexusoperation/{frontend,validator,config}.go.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import (
    NexusOperationIdConflictPolicy,
    NexusOperationIdReusePolicy,
    NexusOperationWaitStage,
)
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument
from frontend.checks.durations import check_duration
from frontend.checks.ids import check_run_id, new_request_id, size
from frontend.checks.search_attributes import check_search_attributes
from frontend.config import FrontendConfig
from frontend.services import Frontend

_STAGES = (
    NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_STARTED,
    NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_CLOSED,
)
_NAME_LIMIT = 1_000
_REASON_LIMIT = 1_000
_HEADERS_LIMIT = 8 * 1024
_DISALLOWED = frozenset(
    (
        "request-timeout",
        "xdc-redirection",
        "xdc-redirection-api",
        "xdc-redirection-source-cell",
        "caller-name",
        "caller-type",
        "call-initiation",
        "temporal-principal-type",
        "temporal-principal-name",
    )
)


async def prepare_operation_start(frontend: Frontend, request: ws.StartNexusOperationExecutionRequest) -> None:
    """Checks a start request and fills in its defaults, in place. Raises INVALID_ARGUMENT."""
    config = frontend.config
    _fill_request_id(request, config)
    _check_operation_id(request, config)
    _check_length("identity", request.identity, limit=config.id_limit)
    _check_target(request)
    _check_timeouts(request)
    if request.input.ByteSize() > config.blob_limit:
        length = request.input.ByteSize()
        raise InvalidArgument(f"input exceeds size limit. Length={length} Limit={config.blob_limit}")
    for name, limit in (("summary", config.summary_limit), ("details", config.details_limit)):
        length = getattr(request.user_metadata, name).ByteSize()
        if length > limit:
            raise InvalidArgument(f"user_metadata.{name} exceeds size limit. Length={length} Limit={limit}")
    _lower_headers(request)
    if request.search_attributes.indexed_fields:
        check_search_attributes(
            request.search_attributes,
            namespace=request.namespace,
            custom=await frontend.custom_attributes(request.namespace),
        )
    request.id_reuse_policy = (
        request.id_reuse_policy or NexusOperationIdReusePolicy.NEXUS_OPERATION_ID_REUSE_POLICY_ALLOW_DUPLICATE
    )
    request.id_conflict_policy = (
        request.id_conflict_policy or NexusOperationIdConflictPolicy.NEXUS_OPERATION_ID_CONFLICT_POLICY_FAIL
    )


def _check_target(request: ws.StartNexusOperationExecutionRequest) -> None:
    if not request.endpoint:
        raise InvalidArgument("endpoint is required")
    for name in ("service", "operation"):
        value = getattr(request, name)
        if not value:
            raise InvalidArgument(f"{name} is required")
        _check_length(name, value, limit=_NAME_LIMIT)


def _check_timeouts(request: ws.StartNexusOperationExecutionRequest) -> None:
    """None is longer than that of the whole."""
    names = ("schedule_to_close_timeout", "schedule_to_start_timeout", "start_to_close_timeout")
    for name in names:
        check_duration(getattr(request, name), name + " is invalid: {}")
    whole: Duration = request.schedule_to_close_timeout
    if not whole.ToNanoseconds():
        return
    for name in names[1:]:
        if getattr(request, name).ToNanoseconds() > whole.ToNanoseconds():
            getattr(request, name).CopyFrom(whole)


def _lower_headers(request: ws.StartNexusOperationExecutionRequest) -> None:
    headers = dict(request.nexus_header)
    for name in headers:
        if name.lower() in _DISALLOWED:
            raise InvalidArgument(f'nexus_header contains a disallowed key: "{name}"')
    if sum(size(name) + size(value) for name, value in headers.items()) > _HEADERS_LIMIT:
        raise InvalidArgument("nexus_header exceeds size limit")
    request.ClearField("nexus_header")
    request.nexus_header.update({name.lower(): value for name, value in headers.items()})


def check_describe(request: ws.DescribeNexusOperationExecutionRequest, *, config: FrontendConfig) -> None:
    _check_operation_id(request, config)
    if request.long_poll_token and not request.run_id:
        raise InvalidArgument("run_id is required when long_poll_token is provided")
    _check_run_id(request)


def check_poll(request: ws.PollNexusOperationExecutionRequest, *, config: FrontendConfig) -> None:
    request.wait_stage = request.wait_stage or NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_CLOSED
    if request.wait_stage not in _STAGES:
        raise InvalidArgument(f"unsupported wait_stage: {request.wait_stage}")
    _check_operation_id(request, config)
    _check_run_id(request)


def check_operation(request: Any, *, config: FrontendConfig) -> None:
    """A request to cancel, terminate or delete one. Fills in its request id, if there is room for one."""
    if "request_id" in request.DESCRIPTOR.fields_by_name:
        _fill_request_id(request, config)
    _check_operation_id(request, config)
    _check_run_id(request)
    _check_length("identity", getattr(request, "identity", ""), limit=config.id_limit)
    _check_length("reason", getattr(request, "reason", ""), limit=_REASON_LIMIT)


def _fill_request_id(request: Any, config: FrontendConfig) -> None:
    request.request_id = request.request_id or new_request_id()
    _check_length("request_id", request.request_id, limit=config.id_limit)


def _check_operation_id(request: Any, config: FrontendConfig) -> None:
    if not request.operation_id:
        raise InvalidArgument("operation_id is required")
    _check_length("operation_id", request.operation_id, limit=config.id_limit)


def _check_run_id(request: Any) -> None:
    try:
        check_run_id(request.run_id)
    except InvalidArgument as error:
        raise InvalidArgument("run_id is not a valid UUID") from error


def _check_length(name: str, value: str, *, limit: int) -> None:
    if size(value) > limit:
        raise InvalidArgument(f"{name} exceeds length limit. Length={size(value)} Limit={limit}")
