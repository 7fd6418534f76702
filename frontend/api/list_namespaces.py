"""ListNamespaces."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListNamespacesRequest, ListNamespacesResponse

from common.errors import InvalidArgument
from frontend.namespace_messages import describe
from frontend.services import Frontend

DEFAULT_PAGE = 100
LARGEST_PAGE = 1_000


async def list_namespaces(frontend: Frontend, request: ListNamespacesRequest) -> ListNamespacesResponse:
    """In order of name. The page token is the last name of the page before."""
    try:
        after = request.next_page_token.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgument("Invalid NextPageToken.") from error
    size = min(request.page_size if request.page_size > 0 else DEFAULT_PAGE, LARGEST_PAGE)
    records = await frontend.namespaces.list(
        after=after, limit=size, include_deleted=request.namespace_filter.include_deleted
    )
    return ListNamespacesResponse(
        namespaces=[describe(record, config=frontend.config) for record in records],
        next_page_token=records[-1].name.encode() if len(records) == size else b"",
    )
