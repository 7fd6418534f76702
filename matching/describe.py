"""DescribeTaskQueue and ListTaskQueuePartitions, in both of the API's modes, as the official server answers them."""

from __future__ import annotations

import math
from collections.abc import Iterable, MutableSequence, Sequence
from datetime import timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import (
    PollerInfo,
    TaskIdBlock,
    TaskQueuePartitionMetadata,
    TaskQueueStats,
    TaskQueueStatus,
    TaskQueueTypeInfo,
    TaskQueueVersionInfo,
    TaskQueueVersioningInfo,
)
from temporalio.api.workflowservice import v1 as ws

from common.protos import ZERO, duration
from matching.deployments.records import older_version, split_version
from matching.names import partition_name
from matching.physical_queue import PhysicalQueue
from matching.records import DEFAULT_PRIORITY, Family
from matching.routes import Routes
from matching.task_queue import TaskQueue

LAST_TASK_ID = (1 << 63) - 1

KINDS: dict[int, Family] = {
    TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW: "workflow",
    TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY: "activity",
    TaskQueueType.TASK_QUEUE_TYPE_NEXUS: "nexus",
}


def stats_by_priority(queue: TaskQueue) -> dict[int, TaskQueueStats]:
    """Backlog (tasks awaiting dispatch, not rows), its age, and rates over half a minute."""
    found: dict[int, TaskQueueStats] = {}

    def of(priority: int) -> TaskQueueStats:
        return found.setdefault(priority, TaskQueueStats(approximate_backlog_age=duration(ZERO)))

    now = queue.clock.now()
    ages: dict[int, timedelta] = {}
    for partition in queue.partitions:
        for priority, sub in partition.subqueues.items():
            of(priority).approximate_backlog_count += sub.unhandled
        for priority, since in partition.oldest():
            ages[priority] = max(ages.get(priority, ZERO), now - since)
    for priority, age in ages.items():
        of(priority).approximate_backlog_age.CopyFrom(duration(age))
    for priority, tracker in queue.added.items():
        of(priority).tasks_add_rate = tracker.rate()
    for priority, tracker in queue.dispatched.items():
        of(priority).tasks_dispatch_rate = tracker.rate()
    limited = queue.limits.limited_lately()
    for stats in found.values():
        stats.rate_limiting_active = limited
    return found


def merged(parts: Iterable[TaskQueueStats]) -> TaskQueueStats:
    total = TaskQueueStats(approximate_backlog_age=duration(ZERO))
    for part in parts:
        total.approximate_backlog_count += part.approximate_backlog_count
        total.tasks_add_rate += part.tasks_add_rate
        total.tasks_dispatch_rate += part.tasks_dispatch_rate
        total.rate_limiting_active = total.rate_limiting_active or part.rate_limiting_active
        mine, theirs = total.approximate_backlog_age, part.approximate_backlog_age
        if (theirs.seconds, theirs.nanos) > (mine.seconds, mine.nanos):
            mine.CopyFrom(theirs)
    return total


def describe_partition(
    queue: TaskQueue, request: ws.DescribeTaskQueueRequest, *, partition: int
) -> ws.DescribeTaskQueueResponse:
    """The mode that describes one kind of one queue."""
    response = ws.DescribeTaskQueueResponse(pollers=queue.pollers.infos())
    rate, source = queue.limits.effective()
    if request.include_task_queue_status:
        physical = next((p for p in queue.partitions if p.key.partition == partition), None)
        response.task_queue_status.CopyFrom(_status(physical, rate=rate))
    if request.report_stats:
        by_priority = stats_by_priority(queue)
        response.stats.CopyFrom(merged(by_priority.values()))
        for priority, stats in by_priority.items():
            response.stats_by_priority_key[priority].CopyFrom(stats)
    if request.report_config and queue.user_data is not None and queue.kind in queue.user_data.configs:
        response.config.CopyFrom(queue.user_data.configs[queue.kind])
    response.effective_rate_limit.requests_per_second = rate
    response.effective_rate_limit.rate_limit_source = source
    return response


def describe_version(base: TaskQueue, queue: TaskQueue | None, version: str) -> ws.DescribeTaskQueueResponse:
    """What there is for a worker deployment version: what is pinned to it, and its share of what waits in the default queue.
    `queue` is None when nobody has polled with it lately."""
    by_priority = {} if queue is None else stats_by_priority(queue)
    share = 0.0 if base.routes is None else base.routes.share_of(version)
    for priority, stats in (stats_by_priority(base) if share else {}).items():
        by_priority[priority] = merged([by_priority.get(priority, TaskQueueStats()), _part(stats, share)])
    by_priority.setdefault(DEFAULT_PRIORITY, TaskQueueStats(approximate_backlog_age=duration(ZERO)))
    response = ws.DescribeTaskQueueResponse(
        pollers=[] if queue is None else queue.pollers.infos(), stats=merged(by_priority.values())
    )
    for priority, stats in by_priority.items():
        response.stats_by_priority_key[priority].CopyFrom(stats)
    return response


def _part(stats: TaskQueueStats, share: float) -> TaskQueueStats:
    """Which tasks are whose is not counted. Source: upstream attributes them by the ramp's percentage, too."""
    return TaskQueueStats(
        approximate_backlog_count=math.ceil(stats.approximate_backlog_count * share),
        approximate_backlog_age=stats.approximate_backlog_age,
        tasks_add_rate=stats.tasks_add_rate * share,
        tasks_dispatch_rate=stats.tasks_dispatch_rate * share,
        rate_limiting_active=stats.rate_limiting_active,
    )


def add_version(whole: ws.DescribeTaskQueueResponse, queue: TaskQueue | None) -> None:
    """The default mode shows the pollers and the backlog of all versions."""
    if queue is None:
        return
    _add_pollers(whole.pollers, queue.pollers.infos())
    if whole.HasField("stats"):
        for priority, stats in stats_by_priority(queue).items():
            whole.stats_by_priority_key[priority].CopyFrom(merged([whole.stats_by_priority_key[priority], stats]))
        whole.stats.CopyFrom(merged(whole.stats_by_priority_key.values()))


def versioning_info(routes: Routes) -> TaskQueueVersioningInfo:
    """Where the tasks of the queue go, in today's form and the older one."""
    info = TaskQueueVersioningInfo(
        current_version=older_version(routes.current.version),
        ramping_version="" if routes.ramping is None else older_version(routes.ramping.version),
        ramping_version_percentage=routes.percentage,
        update_time=routes.updated_at,
    )
    if routes.current.version:
        info.current_deployment_version.CopyFrom(split_version(routes.current.version))
    if routes.ramping is not None and routes.ramping.version:
        info.ramping_deployment_version.CopyFrom(split_version(routes.ramping.version))
    return info


def describe_versions(
    request: ws.DescribeTaskQueueRequest, queues: dict[str, dict[int, TaskQueue | None]]
) -> ws.DescribeTaskQueueResponse:
    """The enhanced mode: by build id, by kind. None stands for a version that is not in use. Reachability is the frontend's."""
    response = ws.DescribeTaskQueueResponse()
    for build_id, by_kind in queues.items():
        version = TaskQueueVersionInfo()
        for kind, queue in by_kind.items():
            version.types_info[kind].CopyFrom(_type_info(queue, request))
        response.versions_info[build_id].CopyFrom(version)
    return response


def add_description(whole: ws.DescribeTaskQueueResponse, part: ws.DescribeTaskQueueResponse) -> None:
    """Take into the root's description what another host says of what it holds."""
    _add_pollers(whole.pollers, part.pollers)
    if part.HasField("stats"):
        whole.stats.CopyFrom(merged([whole.stats, part.stats]))
    for priority, stats in part.stats_by_priority_key.items():
        whole.stats_by_priority_key[priority].CopyFrom(merged([whole.stats_by_priority_key[priority], stats]))
    for build_id, version in part.versions_info.items():
        for kind, info in version.types_info.items():
            mine = whole.versions_info[build_id].types_info[kind]
            _add_pollers(mine.pollers, info.pollers)
            if info.HasField("stats"):
                mine.stats.CopyFrom(merged([mine.stats, info.stats]))


def _add_pollers(mine: MutableSequence[PollerInfo], theirs: Iterable[PollerInfo]) -> None:
    """A poller that was at several hosts is listed once, as it was seen last."""
    places = {poller.identity: place for place, poller in enumerate(mine)}
    for poller in theirs:
        place = places.get(poller.identity)
        if place is None:
            mine.append(poller)
        elif poller.last_access_time.ToNanoseconds() > mine[place].last_access_time.ToNanoseconds():
            mine[place].CopyFrom(poller)


def list_partitions(*, task_queue: str, hosts: Sequence[str]) -> list[TaskQueuePartitionMetadata]:
    """`hosts` of the partitions, the root's first."""
    return [
        TaskQueuePartitionMetadata(key=partition_name(task_queue=task_queue, partition=number), owner_host_name=host)
        for number, host in enumerate(hosts)
    ]


def _type_info(queue: TaskQueue | None, request: ws.DescribeTaskQueueRequest) -> TaskQueueTypeInfo:
    info = TaskQueueTypeInfo()
    if request.report_stats:
        info.stats.CopyFrom(merged(stats_by_priority(queue).values() if queue else []))
    if request.report_pollers and queue is not None:
        info.pollers.extend(queue.pollers.infos())
    return info


def _status(physical: PhysicalQueue | None, *, rate: float) -> TaskQueueStatus:
    """The ids that the range's owner may still give out are all above the last one: ids are consecutive here."""
    last = physical.record.last_task_id if physical else 0
    status = TaskQueueStatus(rate_per_second=rate, task_id_block=TaskIdBlock(start_id=last + 1, end_id=LAST_TASK_ID))
    if physical is not None:
        status.read_level = physical.read_level
        status.ack_level = physical.ack_level
        status.backlog_count_hint = physical.unhandled
    return status
