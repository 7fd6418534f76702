"""OperatorService.AddSearchAttributes: custom search attributes belong to one namespace."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import msgspec
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, AddSearchAttributesResponse

from common.errors import InvalidArgument, Unavailable
from common.search_attributes import TYPE_NAMES, is_reserved
from frontend.namespace_checks import require_namespace
from frontend.services import Frontend
from history.records import NamespaceRecord

log = logging.getLogger(__name__)


async def add_search_attributes(frontend: Frontend, request: AddSearchAttributesRequest) -> AddSearchAttributesResponse:
    """One that exists is left as it is. There may be any number of each type; upstream on SQL has 3, and 10 keywords."""
    if request.namespace:
        await require_namespace(frontend, request.namespace)
    if not request.search_attributes:
        raise InvalidArgument("SearchAttributes are not set on request.")
    for name, value in request.search_attributes.items():
        if is_reserved(name):
            raise InvalidArgument(f"Search attribute {name} is reserved by system.")
        if value and value not in TYPE_NAMES:
            raise InvalidArgument(f"Unknown search attribute type: {value}.")
    if not request.namespace:
        raise InvalidArgument("Namespace is not set on request.")
    wanted = dict(request.search_attributes)
    await frontend.namespaces.update(request.namespace, lambda record: _with(record, wanted))
    await _index(frontend, request.namespace, wanted)
    return AddSearchAttributesResponse()


async def _index(frontend: Frontend, namespace: str, wanted: Mapping[str, int]) -> None:
    """The attributes are there already; without an index they are only found more slowly."""
    known = await frontend.custom_attributes(namespace)
    try:
        await frontend.visibility.index_attributes({name: known[name] for name in wanted if name in known})
    except Unavailable as error:
        log.warning("search attributes of namespace %s are not indexed: %s", namespace, error)


def _with(record: NamespaceRecord, wanted: Mapping[str, int]) -> NamespaceRecord:
    attributes = dict(record.search_attributes)
    for name, value in wanted.items():
        if name in attributes:
            continue
        type_name = TYPE_NAMES.get(value, "")
        if not type_name:
            raise InvalidArgument(
                "Unable to create search attributes: cannot have more than 0 search attribute of type Unspecified."
            )
        attributes[name] = type_name
    return msgspec.structs.replace(record, search_attributes=attributes)
