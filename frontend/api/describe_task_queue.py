"""DescribeTaskQueue."""

from __future__ import annotations

from temporalio.api.enums.v1 import DescribeTaskQueueMode, TaskQueueType
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse

from common.errors import InvalidArgument
from frontend.checks.task_queues import RESERVED_PREFIX, STICKY, check_task_queue
from frontend.reachability import build_reachability
from frontend.services import Frontend
from matching.versioning_rules import default_build

ENHANCED = DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED
WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
REACHABILITY_LIMIT = 5
"""Build ids of one request that asks for their reachability."""


async def describe_task_queue(frontend: Frontend, request: DescribeTaskQueueRequest) -> DescribeTaskQueueResponse:
    enhanced = request.api_mode == ENHANCED
    check_task_queue(
        request.task_queue,
        is_set=request.HasField("task_queue"),
        limit=frontend.config.id_limit,
        partition=not request.api_mode,
    )
    if enhanced or not request.task_queue_type:
        request.task_queue_type = WORKFLOW
    if not request.task_queue_types:
        request.task_queue_types.extend((WORKFLOW, ACTIVITY))
    if request.report_task_reachability and len(request.versions.build_ids) > REACHABILITY_LIMIT:
        raise InvalidArgument(
            f"Too many build ids queried at once with ReportTaskReachability==true, limit: {REACHABILITY_LIMIT}"
        )
    if enhanced:
        _check_enhanced(request)
        return await _describe_versions(frontend, request)
    return await frontend.matching.describe_task_queue(request)


async def _describe_versions(frontend: Frontend, request: DescribeTaskQueueRequest) -> DescribeTaskQueueResponse:
    data = await frontend.matching.build_ids(namespace=request.namespace, task_queue=request.task_queue.name)
    if not request.HasField("versions"):
        request.versions.build_ids.append(default_build(data.assignment_rules))
    response = await frontend.matching.describe_task_queue(request)
    if request.report_task_reachability:
        for build_id, version in response.versions_info.items():
            version.task_reachability = await build_reachability(
                frontend,
                namespace=request.namespace,
                task_queue=request.task_queue.name,
                build_id=build_id,
                data=data,
            )
    return response


def _check_enhanced(request: DescribeTaskQueueRequest) -> None:
    if request.task_queue.kind == STICKY:
        raise InvalidArgument(
            "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal queue."
        )
    if request.task_queue.name.startswith(RESERVED_PREFIX):
        raise InvalidArgument(
            "Enhanced DescribeTaskQueue is not valid for non-root queue partitions, use api_mode=UNSPECIFIED or a "
            "normal queue root name."
        )
