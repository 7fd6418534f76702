"""DeprecateNamespace."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeprecateNamespaceRequest, DeprecateNamespaceResponse

from common.errors import InvalidArgument
from frontend.namespace_checks import require_namespace
from frontend.services import Frontend


async def deprecate_namespace(frontend: Frontend, request: DeprecateNamespaceRequest) -> DeprecateNamespaceResponse:
    """No new executions from now on; those that run go on."""
    if not request.namespace:
        raise InvalidArgument("Namespace not set on request.")
    await require_namespace(frontend, request.namespace)
    await frontend.namespaces.deprecate(request.namespace)
    return DeprecateNamespaceResponse()
