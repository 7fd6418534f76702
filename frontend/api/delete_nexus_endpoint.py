"""OperatorService.DeleteNexusEndpoint: the version is asked for and, as upstream, not looked at."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import DeleteNexusEndpointRequest, DeleteNexusEndpointResponse

from frontend.checks.nexus_endpoints import check_endpoint_id
from frontend.services import Frontend


async def delete_nexus_endpoint(frontend: Frontend, request: DeleteNexusEndpointRequest) -> DeleteNexusEndpointResponse:
    check_endpoint_id(request.id, version=request.version)
    await frontend.endpoints.delete(request.id)
    return DeleteNexusEndpointResponse()
