"""OperatorService.ListNexusEndpoints: all in order of their ids, or the one of a name."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import ListNexusEndpointsRequest, ListNexusEndpointsResponse

from common.errors import InvalidArgument
from frontend.checks.nexus_endpoints import endpoint_message
from frontend.services import Frontend


async def list_nexus_endpoints(frontend: Frontend, request: ListNexusEndpointsRequest) -> ListNexusEndpointsResponse:
    """A page's token is the id with which the next one begins."""
    if request.name:
        found = await frontend.endpoints.find(request.name)
        return ListNexusEndpointsResponse(endpoints=[endpoint_message(found)] if found is not None else [])
    size = request.page_size or frontend.config.endpoint_page
    if size < 0:
        raise InvalidArgument("page_size is negative")
    if size > frontend.config.endpoint_page_limit:
        raise InvalidArgument(f"page_size exceeds limit of {frontend.config.endpoint_page_limit}")
    first = request.next_page_token.decode(errors="replace")
    records = await frontend.endpoints.list(first=first, limit=size + 1)
    return ListNexusEndpointsResponse(
        endpoints=[endpoint_message(record) for record in records[:size]],
        next_page_token=records[size].endpoint_id.encode() if len(records) > size else b"",
    )
