"""OperatorService.GetNexusEndpoint."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import GetNexusEndpointRequest, GetNexusEndpointResponse

from frontend.checks.nexus_endpoints import check_endpoint_id, endpoint_message
from frontend.services import Frontend


async def get_nexus_endpoint(frontend: Frontend, request: GetNexusEndpointRequest) -> GetNexusEndpointResponse:
    check_endpoint_id(request.id)
    record = await frontend.endpoints.read(request.id)
    return GetNexusEndpointResponse(endpoint=endpoint_message(record))
