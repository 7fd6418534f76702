"""GetClusterInfo."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import GetClusterInfoRequest, GetClusterInfoResponse

from frontend.cluster import FAILOVER_VERSION_INCREMENT, INITIAL_FAILOVER_VERSION, SUPPORTED_CLIENTS, cluster_id
from frontend.services import Frontend


async def get_cluster_info(frontend: Frontend, request: GetClusterInfoRequest) -> GetClusterInfoResponse:  # noqa: ARG001
    config = frontend.config
    return GetClusterInfoResponse(
        supported_clients=SUPPORTED_CLIENTS,
        server_version=config.server_version,
        cluster_id=await cluster_id(frontend),
        cluster_name=config.cluster_name,
        history_shard_count=config.history_shards,
        persistence_store=config.persistence_store,
        visibility_store=config.persistence_store,
        initial_failover_version=INITIAL_FAILOVER_VERSION,
        failover_version_increment=FAILOVER_VERSION_INCREMENT,
    )
