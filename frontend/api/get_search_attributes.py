"""GetSearchAttributes: every key that a list may filter by, in whatever namespace (the request names none)."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import GetSearchAttributesRequest, GetSearchAttributesResponse

from common.search_attributes import PREDEFINED, SYSTEM, TYPE_VALUES
from frontend.services import Frontend

NAMESPACES = 1_000


async def get_search_attributes(
    frontend: Frontend,
    request: GetSearchAttributesRequest,  # noqa: ARG001
) -> GetSearchAttributesResponse:
    keys = SYSTEM | PREDEFINED
    for record in await frontend.namespaces.list(limit=NAMESPACES):
        keys |= record.search_attributes
    return GetSearchAttributesResponse(keys={name: TYPE_VALUES[type_name] for name, type_name in keys.items()})
