"""OperatorService.ListSearchAttributes."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest, ListSearchAttributesResponse

from common.errors import InvalidArgument
from common.search_attributes import PREDEFINED, SYSTEM, TYPE_VALUES
from frontend.namespace_checks import require_namespace
from frontend.services import Frontend


async def list_search_attributes(
    frontend: Frontend, request: ListSearchAttributesRequest
) -> ListSearchAttributesResponse:
    if not request.namespace:
        raise InvalidArgument("Namespace is not set on request.")
    await require_namespace(frontend, request.namespace)
    record = await frontend.namespaces.read(request.namespace)
    return ListSearchAttributesResponse(
        custom_attributes={name: TYPE_VALUES[kind] for name, kind in record.search_attributes.items()},
        system_attributes={name: TYPE_VALUES[kind] for name, kind in (SYSTEM | PREDEFINED).items()},
    )
