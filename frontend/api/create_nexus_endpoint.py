"""OperatorService.CreateNexusEndpoint."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest, CreateNexusEndpointResponse

from frontend.checks.nexus_endpoints import check_spec, endpoint_message
from frontend.services import Frontend


async def create_nexus_endpoint(frontend: Frontend, request: CreateNexusEndpointRequest) -> CreateNexusEndpointResponse:
    await check_spec(frontend, request.spec)
    record = await frontend.endpoints.create(request.spec)
    return CreateNexusEndpointResponse(endpoint=endpoint_message(record))
