"""OperatorService.AddOrUpdateRemoteCluster: a remote cluster is looked for, and none can be added: replication between clusters
is for global namespaces, which there are none of here.

Source: AddOrUpdateRemoteCluster and validateRemoteClusterMetadata in upstream's service/frontend/operator_handler.go.
"""

from __future__ import annotations

from typing import Never

import grpc
from temporalio.api.operatorservice.v1 import AddOrUpdateRemoteClusterRequest
from temporalio.api.workflowservice.v1 import GetClusterInfoRequest
from temporalio.api.workflowservice.v1.service_pb2_grpc import WorkflowServiceStub

from common.errors import InvalidArgument, Unavailable
from frontend.services import Frontend

CONNECT_S = 10.0


async def add_or_update_remote_cluster(frontend: Frontend, request: AddOrUpdateRemoteClusterRequest) -> Never:
    name = await _name_of(request.frontend_address)
    if name == frontend.config.cluster_name:
        fault = "Cannot update current cluster metadata from rpc calls"
    else:
        fault = "Cannot add remote cluster as global namespace is not supported"
    raise InvalidArgument(f"Unable connect to remote cluster with invalid config: {fault}.")


async def _name_of(address: str) -> str:
    """The name of the cluster at that address; raises Unavailable when there is none."""
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            info = await WorkflowServiceStub(channel).GetClusterInfo(GetClusterInfoRequest(), timeout=CONNECT_S)
        except grpc.aio.AioRpcError as error:
            raise Unavailable(f"Unable connect to remote cluster {address} with error: {error.details()}.") from error
    return str(info.cluster_name)
