"""UpdateNamespace: description, owner, data, state and retention.

Source: UpdateNamespace and validateStateUpdate in upstream's service/frontend/namespace_handler.go.
"""

from __future__ import annotations

import msgspec
from temporalio.api.enums.v1 import ReplicationState
from temporalio.api.workflowservice.v1 import UpdateNamespaceRequest, UpdateNamespaceResponse

from common.errors import InvalidArgument
from frontend.checks.namespaces import check_local_clusters, check_retention
from frontend.config import FrontendConfig
from frontend.namespace_checks import require_namespace
from frontend.namespace_messages import describe
from frontend.services import Frontend
from history.namespaces import DELETED, DEPRECATED, REGISTERED
from history.records import NamespaceRecord

_STATE_CHANGES: dict[int, tuple[int, ...]] = {REGISTERED: (DEPRECATED, DELETED), DEPRECATED: (DELETED,)}


async def update_namespace(frontend: Frontend, request: UpdateNamespaceRequest) -> UpdateNamespaceResponse:
    if not request.namespace:
        raise InvalidArgument("Namespace not set on request.")
    await require_namespace(frontend, request.namespace)
    record = await frontend.namespaces.update(
        request.namespace, lambda record: changed(record, request, config=frontend.config)
    )
    described = describe(record, config=frontend.config)
    return UpdateNamespaceResponse(
        namespace_info=described.namespace_info,
        config=described.config,
        replication_config=described.replication_config,
        is_global_namespace=described.is_global_namespace,
    )


def changed(record: NamespaceRecord, request: UpdateNamespaceRequest, *, config: FrontendConfig) -> NamespaceRecord:
    """The record as the request wants it; raises InvalidArgument."""
    after = _with_info(record, request)
    if request.config.HasField("workflow_execution_retention_ttl"):
        retention = check_retention(request.config.workflow_execution_retention_ttl, config=config)
        after = msgspec.structs.replace(after, retention=retention)
    if request.delete_bad_binary:
        raise InvalidArgument(f"Bad binary checksum {request.delete_bad_binary} doesn't exists.")
    _check_replication(request, config)
    return after


def _with_info(record: NamespaceRecord, request: UpdateNamespaceRequest) -> NamespaceRecord:
    info = request.update_info
    if info.state and info.state != record.state and info.state not in _STATE_CHANGES.get(record.state, ()):
        raise InvalidArgument("Invalid namespace state update.")
    return msgspec.structs.replace(
        record,
        description=info.description or record.description,
        owner_email=info.owner_email or record.owner_email,
        custom_data={**record.custom_data, **info.data},
        state=info.state or record.state,
    )


def _check_replication(request: UpdateNamespaceRequest, config: FrontendConfig) -> None:
    replication = request.replication_config
    if replication.state == ReplicationState.REPLICATION_STATE_HANDOVER:
        raise InvalidArgument("Handover can only be set for global namespace")
    if request.promote_namespace:
        raise InvalidArgument(
            "global namespace is not enabled on this cluster, cannot update global namespace or promote local "
            f"namespace: {request.namespace}"
        )
    check_local_clusters(
        active=replication.active_cluster_name,
        clusters=[cluster.cluster_name for cluster in replication.clusters],
        config=config,
    )
