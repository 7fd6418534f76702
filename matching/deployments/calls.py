"""The calls about worker deployments, as methods of the Matching service: any host answers them."""

from __future__ import annotations

from temporalio.api.workflowservice import v1 as ws

from common.contracts.matching import PlannedVersion
from matching.deployments.service import Deployments
from matching.versions import Versions


class DeploymentCalls:
    """Implements the part of `MatchingClient` that is about worker deployments."""

    deployments: Deployments
    versions: Versions

    async def has_version(self, *, namespace: str, task_queue: str, version: str, reactivate: bool = False) -> bool:
        if not await self.versions.has(namespace=namespace, task_queue=task_queue, kind="workflow", version=version):
            return False
        if reactivate:
            await self.deployments.reactivate(namespace=namespace, version=version)
        return True

    async def note_drainage(self, *, namespace: str, deployment: str, has_open: dict[str, bool]) -> None:
        await self.deployments.note_drainage(namespace=namespace, name=deployment, has_open=has_open)

    async def planned_version(self, *, namespace: str, task_queue: str, workflow_id: str) -> PlannedVersion:
        target = await self.versions.planned(namespace=namespace, task_queue=task_queue, workflow_id=workflow_id)
        return PlannedVersion(target.version, target.revision)

    async def create_worker_deployment(
        self, request: ws.CreateWorkerDeploymentRequest
    ) -> ws.CreateWorkerDeploymentResponse:
        return await self.deployments.create(request)

    async def create_worker_deployment_version(
        self, request: ws.CreateWorkerDeploymentVersionRequest
    ) -> ws.CreateWorkerDeploymentVersionResponse:
        return await self.deployments.create_version(request)

    async def describe_worker_deployment(
        self, request: ws.DescribeWorkerDeploymentRequest
    ) -> ws.DescribeWorkerDeploymentResponse:
        return await self.deployments.describe(request)

    async def describe_worker_deployment_version(
        self, request: ws.DescribeWorkerDeploymentVersionRequest
    ) -> ws.DescribeWorkerDeploymentVersionResponse:
        return await self.deployments.describe_version(request)

    async def list_worker_deployments(
        self, request: ws.ListWorkerDeploymentsRequest
    ) -> ws.ListWorkerDeploymentsResponse:
        return await self.deployments.list(request)

    async def set_worker_deployment_current_version(
        self, request: ws.SetWorkerDeploymentCurrentVersionRequest
    ) -> ws.SetWorkerDeploymentCurrentVersionResponse:
        return await self.deployments.set_current(request)

    async def set_worker_deployment_ramping_version(
        self, request: ws.SetWorkerDeploymentRampingVersionRequest
    ) -> ws.SetWorkerDeploymentRampingVersionResponse:
        return await self.deployments.set_ramping(request)

    async def set_worker_deployment_manager(
        self, request: ws.SetWorkerDeploymentManagerRequest
    ) -> ws.SetWorkerDeploymentManagerResponse:
        return await self.deployments.set_manager(request)

    async def update_worker_deployment_version_metadata(
        self, request: ws.UpdateWorkerDeploymentVersionMetadataRequest
    ) -> ws.UpdateWorkerDeploymentVersionMetadataResponse:
        return await self.deployments.set_metadata(request)

    async def update_worker_deployment_version_compute_config(
        self, request: ws.UpdateWorkerDeploymentVersionComputeConfigRequest
    ) -> ws.UpdateWorkerDeploymentVersionComputeConfigResponse:
        return await self.deployments.set_compute_config(request)

    async def delete_worker_deployment(
        self, request: ws.DeleteWorkerDeploymentRequest
    ) -> ws.DeleteWorkerDeploymentResponse:
        return await self.deployments.delete(request)

    async def delete_worker_deployment_version(
        self, request: ws.DeleteWorkerDeploymentVersionRequest
    ) -> ws.DeleteWorkerDeploymentVersionResponse:
        return await self.deployments.delete_version(request)
