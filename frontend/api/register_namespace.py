"""RegisterNamespace."""

from __future__ import annotations

from uuid import uuid4

from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest, RegisterNamespaceResponse

from common.errors import InvalidArgument
from frontend.checks.namespaces import check_local_clusters, check_retention
from frontend.namespace_checks import check_name
from frontend.namespace_removal import finish_removal
from frontend.services import Frontend
from history.records import NamespaceRecord


async def register_namespace(frontend: Frontend, request: RegisterNamespaceRequest) -> RegisterNamespaceResponse:
    """The namespace can be used as soon as this has answered, through any frontend."""
    check_name(request.namespace, limit=frontend.config.id_limit)
    if not request.namespace:
        raise InvalidArgument("Namespace not set on request.")
    if request.is_global_namespace:
        raise InvalidArgument("Cannot register global namespace when not enabled")
    retention = check_retention(request.workflow_execution_retention_period, config=frontend.config)
    check_local_clusters(
        active=request.active_cluster_name,
        clusters=[cluster.cluster_name for cluster in request.clusters],
        config=frontend.config,
    )
    await finish_removal(frontend, request.namespace)
    await frontend.namespaces.create(
        NamespaceRecord(
            name=request.namespace,
            namespace_id=str(uuid4()),
            retention=retention,
            description=request.description,
            owner_email=request.owner_email,
            custom_data=dict(request.data),
            created_at=frontend.clock.now(),
        )
    )
    return RegisterNamespaceResponse()
