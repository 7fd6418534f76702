"""OperatorService.ListClusters: there is one."""

from __future__ import annotations

from temporalio.api.operatorservice.v1 import ClusterMetadata, ListClustersRequest, ListClustersResponse

from frontend.cluster import INITIAL_FAILOVER_VERSION, cluster_id
from frontend.services import Frontend


async def list_clusters(frontend: Frontend, request: ListClustersRequest) -> ListClustersResponse:  # noqa: ARG001
    config = frontend.config
    return ListClustersResponse(
        clusters=[
            ClusterMetadata(
                cluster_name=config.cluster_name,
                cluster_id=await cluster_id(frontend),
                address=config.public_address or frontend.address,
                http_address=config.public_http_address or frontend.http_address,
                initial_failover_version=INITIAL_FAILOVER_VERSION,
                history_shard_count=config.history_shards,
                is_connection_enabled=True,
            )
        ]
    )
