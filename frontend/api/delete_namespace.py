"""OperatorService.DeleteNamespace."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest, DeleteNamespaceResponse

from common.errors import FailedPrecondition, InvalidArgument
from frontend.namespace_checks import require_namespace
from frontend.namespace_removal import finish_removal
from frontend.services import Frontend
from history.namespaces import SYSTEM_NAMESPACE

_ID_DIGITS = 5


async def delete_namespace(frontend: Frontend, request: DeleteNamespaceRequest) -> DeleteNamespaceResponse:
    """The namespace is gone for everybody at once; its executions are deleted before this answers.

    When the caller gives up meanwhile, the next registration of the name (or deletion, by the worker role) goes on.
    """
    if not request.namespace and not request.namespace_id:
        raise InvalidArgument("Namespace not set on request.")
    if request.namespace and request.namespace_id:
        raise InvalidArgument("Only one of namespace name or Id should be set on request.")
    if request.namespace:
        record = await require_namespace(frontend, request.namespace)
    else:
        record = await frontend.namespaces.get_by_id(request.namespace_id)
    if record.name == SYSTEM_NAMESPACE:
        raise FailedPrecondition("unable to delete system namespace")
    endpoint = await frontend.endpoints.targeting(record.name)
    if endpoint is not None:
        raise FailedPrecondition(f"cannot delete a namespace that is a target of a Nexus endpoint {endpoint.spec.name}")
    await frontend.namespaces.mark_deleted(record.name)
    await finish_removal(frontend, record.name)
    return DeleteNamespaceResponse(deleted_namespace=f"{record.name}-deleted-{record.namespace_id[:_ID_DIGITS]}")
