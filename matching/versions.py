"""The versions of a queue: polls that bring one, queries and activities that look for one."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace
from temporalio.api.deployment.v1 import WorkerDeploymentOptions, WorkerDeploymentVersion

from common.contracts.build_ids import BuildIds
from common.contracts.matching import DispatchNexusTask, QueryWorkflow
from common.errors import FailedPrecondition
from matching.build_id_routing import check_poll, polled_version
from matching.deployments.service import Deployments
from matching.names import parse_partition
from matching.records import Family
from matching.routes import PINNED, UNVERSIONED, Target
from matching.task_queue import TaskQueue
from matching.task_queues import TaskQueueKey, TaskQueues


class Versions:
    def __init__(self, *, queues: TaskQueues, deployments: Deployments) -> None:
        self._queues = queues
        self._deployments = deployments
        self._registering = asyncio.Lock()

    async def enter(self, key: TaskQueueKey, options: WorkerDeploymentOptions) -> None:
        """A poll of a version: the default queue is loaded too, as its tasks go to those pollers, and the version is part of
        its deployment from now on. Raises ResourceExhausted when there are too many."""
        base = await self._default(key)
        base.used_by_version()
        if _knows(base, key.version):
            return
        async with self._registering:
            if _knows(base, key.version):
                return
            version = WorkerDeploymentVersion(deployment_name=options.deployment_name, build_id=options.build_id)
            await self._deployments.register(
                namespace=key.namespace, version=version, task_queue=key.name, kind=key.kind
            )

    async def of_build(self, key: TaskQueueKey, poll: Any) -> TaskQueueKey:
        """Where a worker with the older versioning polls. Raises NewerBuildExists."""
        build_id = poll.worker_version_capabilities.build_id
        if normal_name := poll.task_queue.normal_name:
            queue = self._queues.loaded(key) or await self._queues.load(key, normal_name=normal_name)
            check_poll(_build_ids(queue), build_id)
            return key
        base = await self._default(key)
        base.used_by_version()
        return replace(key, version=polled_version(_build_ids(base), build_id))

    async def has(self, *, namespace: str, task_queue: str, kind: Family, version: str) -> bool:
        """Whether workers of the version have polled the queue."""
        return _knows(await self._default(TaskQueueKey(namespace, task_queue, kind)), version)

    async def planned(self, *, namespace: str, task_queue: str, workflow_id: str) -> Target:
        """Where the queue's routing sends a workflow's tasks."""
        base = await self._default(TaskQueueKey(namespace, task_queue, "workflow"))
        return UNVERSIONED if base.routes is None else base.routes.planned(workflow_id)

    async def for_nexus(self, call: DispatchNexusTask, task_id: str) -> TaskQueue:
        """The queue of the workers that the routing chooses for a Nexus call, by its id when a version is ramped up."""
        base = await self._default(TaskQueueKey(call.namespace, parse_partition(call.task_queue)[0], "nexus"))
        version = "" if base.routes is None else base.routes.planned(task_id).version
        return (
            base if not version else await self._queues.load(TaskQueueKey(base.namespace, base.name, "nexus", version))
        )

    async def for_query(self, queue: TaskQueue, request: QueryWorkflow) -> TaskQueue:
        """The queue whose pollers may answer. Raises FailedPrecondition for a drained version without any pollers, and
        StickyWorkerUnavailable when the workflow has to leave its worker."""
        routes = queue.routes
        assert routes is not None
        directive = request.version_directive
        if request.normal_name:
            routes.check_sticky(request)
            return queue
        version = directive.removeprefix(PINNED) if directive.startswith(PINNED) else routes.target(request).version
        if not version:
            return queue
        found = await self._queues.load(TaskQueueKey(queue.namespace, queue.name, queue.kind, version))
        if directive.startswith(PINNED) and version in routes.drained and not found.pollers.infos():
            build_id = version.partition(":")[2]
            raise FailedPrecondition(
                f"You are trying to query a closed Workflow that is PINNED to Worker Deployment Version {build_id}, but "
                f"{build_id} is drained and has no pollers to answer the query. Immediately: You can re-deploy Workers in "
                "this Deployment Version to take those queries, or you can workflow update-options to change your "
                "workflow to AUTO_UPGRADE. For the future: In your infrastructure, consider waiting longer after the last "
                "queried timestamp as reported in Describe Deployment before you sunset Workers. Or mark this workflow as "
                "AUTO_UPGRADE."
            )
        return found

    async def _default(self, key: TaskQueueKey) -> TaskQueue:
        key = replace(key, version="")
        return self._queues.loaded(key) or await self._queues.load(key)


def _knows(base: TaskQueue, version: str) -> bool:
    return base.routes is not None and version in base.routes.versions


def _build_ids(queue: TaskQueue) -> BuildIds:
    return (None if queue.user_data is None else queue.user_data.build_ids) or BuildIds()
