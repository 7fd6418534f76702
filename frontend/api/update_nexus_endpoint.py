"""OperatorService.UpdateNexusEndpoint."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import UpdateNexusEndpointRequest, UpdateNexusEndpointResponse

from frontend.checks.nexus_endpoints import check_spec, endpoint_message
from frontend.services import Frontend


async def update_nexus_endpoint(frontend: Frontend, request: UpdateNexusEndpointRequest) -> UpdateNexusEndpointResponse:
    await check_spec(frontend, request.spec)
    record = await frontend.endpoints.update(request.id, version=request.version, spec=request.spec)
    return UpdateNexusEndpointResponse(endpoint=endpoint_message(record))
