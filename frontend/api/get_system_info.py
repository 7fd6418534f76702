"""GetSystemInfo."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import GetSystemInfoRequest, GetSystemInfoResponse

from frontend.services import Frontend


async def get_system_info(frontend: Frontend, request: GetSystemInfoRequest) -> GetSystemInfoResponse:  # noqa: ARG001
    """What SDKs ask when they connect, to know what they may use."""
    return GetSystemInfoResponse(
        server_version=frontend.config.server_version,
        capabilities=GetSystemInfoResponse.Capabilities(
            signal_and_query_header=True,
            internal_error_differentiation=True,
            activity_failure_include_heartbeat=True,
            supports_schedules=True,
            encoded_failure_attributes=True,
            build_id_based_versioning=True,
            upsert_memo=True,
            eager_workflow_start=True,
            sdk_metadata=True,
            count_group_by_execution_status=True,
            nexus=True,
            server_scaled_deployments=True,
        ),
    )
