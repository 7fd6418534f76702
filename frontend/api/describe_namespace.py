"""DescribeNamespace, by name or by id."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, DescribeNamespaceResponse

from common.errors import InvalidArgument
from frontend.namespace_checks import check_name
from frontend.namespace_messages import describe
from frontend.services import Frontend


async def describe_namespace(frontend: Frontend, request: DescribeNamespaceRequest) -> DescribeNamespaceResponse:
    """As the store has it: what another process changed a moment ago is seen."""
    check_name(request.namespace, limit=frontend.config.id_limit)
    if request.namespace and request.id:
        raise InvalidArgument("GetNamespace operation failed. Both ID and Name specified in request.")
    if not request.namespace and not request.id:
        raise InvalidArgument("Namespace not set on request.")
    name = request.namespace or (await frontend.namespaces.get_by_id(request.id)).name
    return describe(await frontend.namespaces.read(name), config=frontend.config)
