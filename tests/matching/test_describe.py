"""DescribeTaskQueue, ListTaskQueuePartitions and the advice in poll answers."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import DescribeTaskQueueMode, RateLimitSource, TaskQueueType

from common.errors import InvalidArgument
from common.protos import from_duration, from_timestamp
from matching.config import MatchingConfig

from .fakes import NAMESPACE, QUEUE, World, activity_poll, begin_poll, settled, ws

WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
ENHANCED = DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED


def describe(name: str = QUEUE, **fields: object) -> ws.DescribeTaskQueueRequest:
    request = ws.DescribeTaskQueueRequest(namespace=NAMESPACE, **fields)  # type: ignore[arg-type]
    request.task_queue.name = name
    return request


async def test_pollers_are_listed_until_five_minutes_after_their_last_poll(world: World) -> None:
    service = await world.service()
    await begin_poll(service, "old")
    seen = world.clock.now()
    poll = await begin_poll(service, "new")
    [old, new] = (await service.describe_task_queue(describe())).pollers
    assert (old.identity, new.identity) == ("old", "new")
    assert from_timestamp(new.last_access_time) == seen
    assert old.rate_per_second == 100_000
    world.clock.advance(timedelta(minutes=1))
    await poll
    world.clock.advance(timedelta(minutes=4, seconds=59))
    assert len((await service.describe_task_queue(describe())).pollers) == 2
    world.clock.advance(timedelta(seconds=2))
    assert not (await service.describe_task_queue(describe())).pollers


async def test_a_pollers_own_rate_is_shown_and_effective(world: World) -> None:
    service = await world.service()
    await service.add_task(world.task("a", kind="activity"))
    await service.poll_activity_task_queue(activity_poll(rate=7.5))
    answer = await service.describe_task_queue(describe(task_queue_type=ACTIVITY))
    assert [poller.rate_per_second for poller in answer.pollers] == [7.5]
    assert answer.effective_rate_limit.requests_per_second == 7.5
    assert answer.effective_rate_limit.rate_limit_source == RateLimitSource.RATE_LIMIT_SOURCE_WORKER


async def test_status_and_stats_tell_rows_from_tasks_awaiting_dispatch(world: World) -> None:
    service = await world.service()
    for name in "abc":
        await service.add_task(world.task(name))
    await (await begin_poll(service))
    world.clock.advance(timedelta(seconds=0.5))
    answer = await service.describe_task_queue(describe(include_task_queue_status=True, report_stats=True))
    status = answer.task_queue_status
    assert (status.read_level, status.ack_level, status.backlog_count_hint) == (3, 1, 2)
    assert world.store.rows() == [1, 2, 3]
    assert answer.stats.approximate_backlog_count == 2
    assert from_duration(answer.stats.approximate_backlog_age) == timedelta(seconds=0.5)
    assert answer.stats.tasks_add_rate == pytest.approx(6.0)
    assert answer.stats.tasks_dispatch_rate == pytest.approx(2.0)
    assert list(answer.stats_by_priority_key) == [3]
    assert status.task_id_block.start_id == 4


async def test_stats_of_a_partition_are_refused(world: World) -> None:
    service = await world.service()
    with pytest.raises(InvalidArgument, match="only supported for the root partition"):
        await service.describe_task_queue(describe(f"/_sys/{QUEUE}/1", report_stats=True))
    assert (await service.describe_task_queue(describe(f"/_sys/{QUEUE}/1"))).effective_rate_limit.requests_per_second


async def test_enhanced_mode_tells_versions_and_kinds_apart(world: World) -> None:
    service = await world.service()
    await begin_poll(service)
    await service.add_task(world.task("a", kind="activity"))
    answer = await service.describe_task_queue(describe(api_mode=ENHANCED, report_stats=True, report_pollers=True))
    unversioned = answer.versions_info[""]
    assert [poller.identity for poller in unversioned.types_info[WORKFLOW].pollers] == ["worker"]
    assert unversioned.types_info[ACTIVITY].stats.approximate_backlog_count == 1
    request = describe(api_mode=ENHANCED, report_stats=True, report_pollers=True)
    request.versions.build_ids.append("never")
    answer = await service.describe_task_queue(request)
    assert list(answer.versions_info) == ["never"]
    assert not answer.versions_info["never"].types_info[WORKFLOW].pollers
    request.versions.Clear()
    request.versions.all_active = True
    assert not (await service.describe_task_queue(request)).versions_info


async def test_config_is_reported_when_asked_for(world: World) -> None:
    service = await world.service()
    assert not (await service.describe_task_queue(describe(report_config=True))).HasField("config")
    update = ws.UpdateTaskQueueConfigRequest(
        namespace=NAMESPACE, task_queue=QUEUE, task_queue_type=WORKFLOW, set_fairness_weight_overrides={"gold": 5.0}
    )
    await service.update_task_queue_config(update)
    assert not (await service.describe_task_queue(describe())).HasField("config")
    answer = await service.describe_task_queue(describe(report_config=True))
    assert dict(answer.config.fairness_weight_overrides) == {"gold": 5.0}


async def test_partitions_are_listed_by_name() -> None:
    world = World(MatchingConfig(partitions=3))
    service = await world.service("here")
    request = ws.ListTaskQueuePartitionsRequest(namespace=NAMESPACE)
    request.task_queue.name = QUEUE
    answer = await service.list_task_queue_partitions(request)
    keys = [partition.key for partition in answer.workflow_task_queue_partitions]
    assert keys == [QUEUE, f"/_sys/{QUEUE}/1", f"/_sys/{QUEUE}/2"]
    assert {p.owner_host_name for p in answer.activity_task_queue_partitions} == {"here"}
    await world.close()


async def test_a_poller_that_was_idle_is_advised_to_poll_less(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.clock.advance(timedelta(seconds=2))
    await service.add_task(world.task("a"))
    assert (await poll).poller_scaling_decision.poll_request_delta_suggestion == -1


async def test_a_poller_with_an_old_backlog_is_advised_to_poll_more(world: World) -> None:
    service = await world.service()
    for name in "abc":
        await service.add_task(world.task(name))
    world.clock.advance(timedelta(seconds=1))
    answer = await (await begin_poll(service))
    await settled()
    assert answer.poller_scaling_decision.poll_request_delta_suggestion == 1


async def test_no_more_pollers_are_advised_while_a_rate_limit_holds_tasks_back(world: World) -> None:
    service = await world.service()
    for name in "abc":
        await service.add_task(world.task(name, kind="activity"))
    world.clock.advance(timedelta(seconds=1))
    assert (await service.poll_activity_task_queue(activity_poll(rate=1.0))).task_token == b"a"
    held_back = asyncio.ensure_future(service.poll_activity_task_queue(activity_poll(rate=1.0)))
    await settled()
    assert not held_back.done()
    world.clock.advance(timedelta(seconds=1))
    assert (await held_back).task_token == b"b"
    assert held_back.result().poller_scaling_decision.poll_request_delta_suggestion == 0


async def test_advice_to_poll_more_is_not_given_with_every_answer(world: World) -> None:
    service = await world.service()
    for n in range(40):
        await service.add_task(world.task(f"t{n}"))
    world.clock.advance(timedelta(seconds=1))
    advice = []
    for _ in range(20):
        answer = await (await begin_poll(service))
        advice.append(answer.poller_scaling_decision.poll_request_delta_suggestion)
        world.clock.advance(timedelta(milliseconds=10))
    assert sum(advice) == 200 * world.config.scaling_decisions_per_second / 1_000


async def test_workers_that_serve_nexus_operations_are_listed(world: World) -> None:
    service = await world.service()
    poll = ws.PollNexusTaskQueueRequest(namespace=NAMESPACE, identity="worker", worker_instance_key="key")
    poll.task_queue.name = QUEUE
    polling = asyncio.ensure_future(service.poll_nexus_task_queue(poll))
    await settled()
    request = ws.DescribeTaskQueueRequest(namespace=NAMESPACE, task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_NEXUS)
    request.task_queue.name = QUEUE
    assert [poller.identity for poller in (await service.describe_task_queue(request)).pollers] == ["worker"]
    await service.shutdown_worker(ws.ShutdownWorkerRequest(namespace=NAMESPACE, worker_instance_key="key"))
    assert await polling == ws.PollNexusTaskQueueResponse()
