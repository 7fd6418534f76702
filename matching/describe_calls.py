"""DescribeTaskQueue and ListTaskQueuePartitions over the queues of all hosts: whom to ask, `matching.describe` says with what
words."""

from __future__ import annotations

from msgspec.structs import replace
from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument
from matching.build_id_routing import queue_of_build
from matching.config import MatchingConfig
from matching.describe import (
    KINDS,
    add_description,
    add_version,
    describe_partition,
    describe_version,
    describe_versions,
    list_partitions,
    versioning_info,
)
from matching.names import parse_partition
from matching.other_hosts import OtherHosts
from matching.placement import Placement
from matching.routes import Routes
from matching.task_queue import TaskQueue
from matching.task_queues import TaskQueueKey, TaskQueues


class DescribeCalls:
    """What `MatchingService` answers of it."""

    queues: TaskQueues
    others: OtherHosts
    _placement: Placement
    _config: MatchingConfig

    async def describe_task_queue(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse:
        """`version`: only what is for workers of a worker deployment version."""
        name, partition = parse_partition(request.task_queue.name)
        is_enhanced = request.api_mode == DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED
        if partition and request.report_stats and not is_enhanced:
            raise InvalidArgument("DescribeTaskQueue stats are only supported for the root partition")
        response = await self.describe_partitions(request, version=version)
        if partition or request.task_queue.normal_name:
            return response
        others = self.others.partitions(namespace=request.namespace, family=name)
        for part in await self.others.ask(others, lambda other: self._described_elsewhere(request, other, version)):
            add_description(response, part)
        return response

    async def _described_elsewhere(
        self, request: ws.DescribeTaskQueueRequest, partition: str, version: str
    ) -> ws.DescribeTaskQueueResponse:
        asked = ws.DescribeTaskQueueRequest()
        asked.CopyFrom(request)
        asked.task_queue.name = partition
        return await self.others.client.describe_partitions(asked, version=version)

    async def describe_partitions(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse:
        name, partition = parse_partition(request.task_queue.name)
        if request.api_mode == DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED:
            return await self._describe_versions(request, name)
        kind = KINDS.get(request.task_queue_type or TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
        if kind is None:
            raise InvalidArgument(f"Invalid task queue type {request.task_queue_type}.")
        key = TaskQueueKey(request.namespace, name, kind)
        queue = await self.queues.load(key, normal_name=request.task_queue.normal_name)
        if version:
            return describe_version(queue, self.queues.loaded(replace(key, version=version)), version)
        response = describe_partition(queue, request, partition=partition)
        if not queue.is_sticky:
            routes = queue.routes or Routes()
            for name in sorted(routes.versions):
                add_version(response, self.queues.loaded(replace(key, version=name)))
            response.versioning_info.CopyFrom(versioning_info(routes))
        return response

    async def _describe_versions(self, request: ws.DescribeTaskQueueRequest, name: str) -> ws.DescribeTaskQueueResponse:
        kinds = list(request.task_queue_types) or [
            TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
            TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
        ]
        versions = request.versions if request.HasField("versions") else None
        build_ids = [""] if versions is None else list(dict.fromkeys(versions.build_ids))
        if versions is not None and versions.unversioned and "" not in build_ids:
            build_ids.append("")
        queues: dict[str, dict[int, TaskQueue | None]] = {}
        for build_id in build_ids:
            queues[build_id] = {}
            for kind in kinds:
                version = build_id if ":" in build_id else queue_of_build(build_id)
                key = TaskQueueKey(request.namespace, name, KINDS[kind], version)
                queues[build_id][kind] = self.queues.loaded(key) if build_id else await self.queues.load(key)
        return describe_versions(request, queues)

    async def list_task_queue_partitions(
        self, request: ws.ListTaskQueuePartitionsRequest
    ) -> ws.ListTaskQueuePartitionsResponse:
        name, _ = parse_partition(request.task_queue.name)
        partitions = list_partitions(
            task_queue=name,
            hosts=[
                self._placement.host(namespace=request.namespace, family=name, partition=partition)
                for partition in range(self._config.partitions_of(namespace=request.namespace, family=name))
            ],
        )
        return ws.ListTaskQueuePartitionsResponse(
            activity_task_queue_partitions=partitions, workflow_task_queue_partitions=partitions
        )
