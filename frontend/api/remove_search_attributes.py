"""OperatorService.RemoveSearchAttributes."""

from __future__ import annotations

import msgspec
from temporalio.api.operatorservice.v1 import RemoveSearchAttributesRequest, RemoveSearchAttributesResponse

from common.errors import InvalidArgument
from common.search_attributes import PREDEFINED, SYSTEM
from frontend.namespace_checks import require_namespace
from frontend.services import Frontend
from history.records import NamespaceRecord


async def remove_search_attributes(
    frontend: Frontend, request: RemoveSearchAttributesRequest
) -> RemoveSearchAttributesResponse:
    """One that does not exist is no error. Values that executions hold stay with them."""
    if request.namespace:
        await require_namespace(frontend, request.namespace)
    if not request.search_attributes:
        raise InvalidArgument("SearchAttributes are not set on request.")
    if not request.namespace:
        raise InvalidArgument("Namespace is not set on request.")
    names = list(request.search_attributes)
    await frontend.namespaces.update(request.namespace, lambda record: _without(record, names))
    return RemoveSearchAttributesResponse()


def _without(record: NamespaceRecord, names: list[str]) -> NamespaceRecord:
    for name in names:
        if name not in record.search_attributes and (name in SYSTEM or name in PREDEFINED):
            raise InvalidArgument(f"Unable to remove non-custom search attributes: {name}.")
    kept = {name: kind for name, kind in record.search_attributes.items() if name not in names}
    return msgspec.structs.replace(record, search_attributes=kept)
