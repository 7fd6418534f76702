"""Ranges, spooling, acknowledgement levels and checkpoints, as the seed on queue ownership and recovery tells them."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.workflowservice import v1 as ws

from common.errors import ConditionFailed, InvalidArgument, OutcomeUnknown, ResourceExhausted, Unavailable
from matching.config import MatchingConfig
from matching.records import QueueKey
from matching.service import MatchingService
from matching.task_queues import TaskQueueKey

from .fakes import KEY, NAMESPACE, QUEUE, FakeHistory, World, activity_poll, begin_poll, settled, workflow_poll

LOADED = TaskQueueKey(NAMESPACE, QUEUE, "workflow")


async def spool(world: World, service: MatchingService, *names: str) -> None:
    for name in names:
        await service.add_task(world.task(name))


class Gated(FakeHistory):
    """Holds up the starts of the tasks it was told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, asyncio.Event] = {}

    async def record_workflow_task_started(self, request):  # type: ignore[no-untyped-def]
        if request.workflow_id in self.gates:
            await self.gates[request.workflow_id].wait()
        return await super().record_workflow_task_started(request)


async def gated_world() -> tuple[World, Gated]:
    world = World()
    world.history = Gated()
    return world, world.history


async def test_task_ids_are_consecutive_and_counted_in_the_metadata(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a", "b", "c")
    queue = world.store.queue()
    assert (queue.range_id, queue.ack_level, queue.last_task_id) == (1, 0, 3)
    assert queue.subqueues["3"].stored == 3
    assert world.store.rows() == [1, 2, 3]


async def test_a_dispatched_task_above_a_gap_stays_until_the_gap_closes() -> None:
    """Tasks 1, 2, 3 are read and 2 is dispatched first: rows 1, 2, 3 stay. Then 1: rows 1 and 2 go."""
    world, history = await gated_world()
    service = await world.service()
    await spool(world, service, "1", "2", "3")
    history.gates = {name: asyncio.Event() for name in "123"}
    polls = [await begin_poll(service) for _ in range(3)]
    history.gates["2"].set()
    await settled()
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    queue = service.queues.loaded(LOADED)
    assert queue is not None
    [physical] = queue.partitions
    assert (physical.read_level, physical.ack_level) == (3, 0)
    assert (physical.stored, physical.unhandled) == (3, 2)
    assert world.store.queue().ack_level == 0
    assert world.store.rows() == [1, 2, 3]
    history.gates["1"].set()
    await settled()
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert world.store.queue().ack_level == 2
    assert world.store.rows() == [3]
    assert (physical.stored, physical.unhandled) == (1, 1)
    history.gates["3"].set()
    await asyncio.gather(*polls)
    await world.close()


async def test_after_a_crash_the_next_owner_rereads_and_history_refuses_the_repetition() -> None:
    world, history = await gated_world()
    crashed = await world.service()
    await spool(world, crashed, "1", "2", "3")
    history.gates = {"1": asyncio.Event()}
    await begin_poll(crashed)
    assert (await (await begin_poll(crashed))).task_token == b"2"
    # The process dies here; the start of 1 never got to History.
    survivor = await world.service("two")
    history.gates = {}
    polls = [await begin_poll(survivor) for _ in range(2)]
    assert {(await poll).task_token for poll in polls} == {b"1", b"3"}
    assert history.started == ["2", "1", "3"]
    await settled()
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    queue = world.store.queue()
    assert (queue.range_id, queue.ack_level, queue.last_task_id) == (2, 3, 3)
    assert world.store.rows() == []


async def test_stopping_saves_the_progress_and_a_reload_increments_the_range(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a", "b")
    assert (await (await begin_poll(service))).task_token == b"a"
    await service.stop()
    assert world.store.queue().ack_level == 1
    assert world.store.rows() == [2]
    again = await world.service("two")
    assert (await (await begin_poll(again))).task_token == b"b"
    assert world.store.queue().range_id == 2
    await spool(world, again, "c")
    assert world.store.rows()[-1] == 3


async def test_each_load_is_a_generation_of_its_own_which_is_not_stored(world: World) -> None:
    service = await world.service()
    generations = []
    for name in "abc":
        await spool(world, service, name)
        queue = service.queues.loaded(LOADED)
        assert queue is not None
        generations.append(queue.partitions[0].generation)
        assert queue.partitions[0].record.range_id == len(generations)
        await service.unload_task_queue(physical_queue=KEY.physical_queue)
    assert generations == sorted(set(generations))
    assert b"generation" not in world.store.queues[KEY.physical_queue]


async def test_a_loser_unloads_its_queue_and_takes_it_back_when_used(world: World) -> None:
    one, two = await world.service("one"), await world.service("two")
    await spool(world, one, "a")
    await spool(world, two, "b")
    assert world.store.queue().range_id == 2
    await spool(world, one, "c")
    assert world.store.queue().range_id == 3
    assert world.store.queue().owner == "one"
    assert world.store.rows() == [1, 2, 3]


async def test_an_old_owner_can_neither_append_nor_checkpoint_nor_delete(world: World) -> None:
    one = await world.service("one")
    await spool(world, one, "a", "b")
    old = one.queues.loaded(LOADED)
    assert old is not None
    assert (await (await begin_poll(one))).task_token == b"a"
    two = await world.service("two")
    await spool(world, two, "c")
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert old.is_unloaded
    assert world.store.queue().ack_level == 0
    assert world.store.rows() == [1, 2, 3]


async def test_pollers_of_the_loser_get_tasks_again(world: World) -> None:
    one, two = await world.service("one"), await world.service("two")
    await spool(world, one, "a")
    assert (await (await begin_poll(one))).task_token == b"a"
    poll = await begin_poll(one)
    await spool(world, two, "b")
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert not poll.done()
    world.clock.advance(world.config.reload_delay)
    assert (await poll).task_token == b"b"
    assert world.history.started == ["a", "b"]


async def test_appends_that_come_during_a_commit_go_out_together(world: World) -> None:
    service = await world.service()
    world.store.gate = asyncio.Event()
    adds = [asyncio.ensure_future(service.add_task(world.task(f"t{n}"))) for n in range(50)]
    adds += [
        asyncio.ensure_future(service.add_task(world.task(f"a{n}", kind="activity", task_queue="other")))
        for n in range(50)
    ]
    await settled()
    world.store.gate.set()
    await asyncio.gather(*adds)
    assert len(world.store.commits) <= 3
    assert world.store.rows() == list(range(1, 51))
    assert world.store.rows(QueueKey(namespace=NAMESPACE, task_queue="other", kind="activity")) == list(range(1, 51))


async def test_a_queue_that_lost_its_range_fails_alone(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a")
    await service.add_task(world.task("b", kind="activity", task_queue="other"))
    await world.store.acquire_queue(key=KEY, normal_name="", owner="thief", now=world.clock.now())
    world.store.gate = asyncio.Event()
    adds = [
        asyncio.ensure_future(service.add_task(world.task("c"))),
        asyncio.ensure_future(service.add_task(world.task("d", kind="activity", task_queue="other"))),
    ]
    await settled()
    world.store.gate.set()
    await asyncio.gather(*adds)
    assert world.store.queue().owner == "one"
    assert world.store.rows() == [1, 2]
    assert world.store.queue(QueueKey(namespace=NAMESPACE, task_queue="other", kind="activity")).range_id == 1


async def test_a_database_that_is_away_fails_the_append_and_keeps_the_ids(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a")
    world.store.failures = [Unavailable("away")]
    with pytest.raises(Unavailable, match="away"):
        await service.add_task(world.task("b"))
    await spool(world, service, "c")
    assert world.store.rows() == [1, 2]
    assert [(await (await begin_poll(service))).task_token for _ in range(2)] == [b"a", b"c"]


async def test_an_unknown_outcome_reloads_the_queue(world: World) -> None:
    service = await world.service()
    world.store.failures_after = [OutcomeUnknown("broken")]
    with pytest.raises(OutcomeUnknown):
        await service.add_task(world.task("a"))
    await spool(world, service, "a")
    assert world.store.queue().range_id == 2
    assert world.store.rows() == [1, 2]
    assert (await (await begin_poll(service))).task_token == b"a"
    await settled()
    assert world.history.started == ["a"]


async def test_rows_that_are_not_what_the_owner_believes_reload_the_queue(world: World) -> None:
    service = await world.service()
    world.store.failures = [ConditionFailed(statement="insert tasks")]
    with pytest.raises(ConditionFailed):
        await service.add_task(world.task("a"))
    await spool(world, service, "a")
    assert world.store.queue().range_id == 2


async def test_a_checkpoint_that_fails_is_made_later(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a")
    await (await begin_poll(service))
    world.store.failures = [Unavailable("away")]
    await settled()
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert world.store.rows() == [1]
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert world.store.rows() == []
    assert world.store.queue().ack_level == 1


async def test_too_many_waiting_appends_are_refused() -> None:
    world = World(MatchingConfig(match_wait=timedelta(), append_limit=3, append_batch=1))
    service = await world.service()
    await spool(world, service, "a")
    world.store.gate = asyncio.Event()
    adds = [asyncio.ensure_future(service.add_task(world.task(f"t{n}"))) for n in range(6)]
    await settled()
    world.store.gate.set()
    results = await asyncio.gather(*adds, return_exceptions=True)
    assert any(isinstance(result, ResourceExhausted) for result in results)
    assert sum(result == "" for result in results) == len(world.store.rows()) - 1
    await world.close()


async def test_a_long_backlog_is_read_in_pages_and_dispatched_in_order() -> None:
    world = World(MatchingConfig(match_wait=timedelta(), page_size=10, reload_at=3))
    service = await world.service()
    await spool(world, service, *(f"t{n:02}" for n in range(45)))
    assert world.store.page_reads == 0
    queue = service.queues.loaded(LOADED)
    assert queue is not None
    assert queue.awaiting_dispatch == 45
    assert len(queue.partitions[0].subqueues[3].deliveries) <= 20
    for n in range(45):
        response = await (await begin_poll(service))
        assert response.task_token == f"t{n:02}".encode()
        assert response.backlog_count_hint in (44 - n, 45 - n)
    assert 0 < world.store.page_reads <= 5
    world.clock.advance(world.config.checkpoint_delay)
    await settled()
    assert world.store.rows() == []


async def test_appends_during_a_read_are_not_missed() -> None:
    world = World(MatchingConfig(match_wait=timedelta(), page_size=4, reload_at=4))
    first = await world.service("one")
    await spool(world, first, "a", "b", "c")
    second = await world.service("two")
    world.store.read_gate = asyncio.Event()
    await spool(world, second, "d", "e", "f")
    polls = [await begin_poll(second) for _ in range(6)]
    world.store.read_gate.set()
    assert [(await poll).task_token for poll in polls] == [b"a", b"b", b"c", b"d", b"e", b"f"]
    await world.close()


async def test_an_idle_queue_is_unloaded_and_a_used_one_is_not(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    await service.add_task(world.task("a"))
    await poll
    queue = service.queues.loaded(LOADED)
    assert queue is not None
    for _ in range(4):
        waiting = await begin_poll(service)
        world.clock.advance(timedelta(minutes=2))
        await waiting
    assert service.queues.loaded(LOADED) is queue
    world.clock.advance(timedelta(minutes=11))
    await settled()
    assert service.queues.loaded(LOADED) is None
    await begin_poll(service)
    assert world.store.queue().range_id == 2


async def test_a_queue_is_unloaded_when_asked_to_and_loaded_by_its_next_user(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a", "b")
    assert (await (await begin_poll(service))).task_token == b"a"
    assert world.store.queue().ack_level == 0
    assert await service.unload_task_queue(physical_queue=KEY.physical_queue)
    assert service.queues.loaded(LOADED) is None
    assert (world.store.queue().ack_level, world.store.rows()) == (1, [2])
    assert not await service.unload_task_queue(physical_queue=KEY.physical_queue)
    assert (await (await begin_poll(service))).task_token == b"b"
    poll = await begin_poll(service)
    assert await service.unload_task_queue(physical_queue=KEY.physical_queue)
    await settled()
    world.clock.advance(world.config.reload_delay)
    await settled()
    await spool(world, service, "c")
    assert (await poll).task_token == b"c"
    assert world.store.queue().range_id == 3
    with pytest.raises(InvalidArgument, match="names no physical task queue"):
        await service.unload_task_queue(physical_queue="orders")


async def test_nothing_is_left_of_a_deleted_namespace(world: World) -> None:
    service = await world.service()
    await spool(world, service, "a", "b")
    await service.update_task_queue_config(
        ws.UpdateTaskQueueConfigRequest(
            namespace=NAMESPACE,
            task_queue=KEY.task_queue,
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            update_queue_rate_limit={"rate_limit": {"requests_per_second": 5}},
        )
    )
    await service.forget_namespace(namespace="another")
    assert world.store.rows() == [1, 2]
    await service.forget_namespace(namespace=NAMESPACE)
    assert service.queues.loaded(LOADED) is None
    assert (world.store.queues, world.store.tasks, world.store.user_data) == ({}, {}, {})
    await spool(world, service, "c")
    assert world.store.queue().range_id == 1
    assert world.store.rows() == [1]


async def test_who_waits_in_a_deleted_namespace_goes_and_leaves_no_row(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    await service.forget_namespace(namespace=NAMESPACE)
    assert not (await poll).task_token
    assert world.store.queues == {}


async def test_kinds_and_versions_are_owned_apart(world: World) -> None:
    service = await world.service()
    await spool(world, service, "w")
    await service.add_task(world.task("a", kind="activity"))
    await service.add_task(world.task("p", version_directive="pinned:billing:v1"))
    activity = QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="activity")
    pinned = QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow", version="billing:v1")
    assert [world.store.rows(key) for key in (KEY, activity, pinned)] == [[1], [1], [1]]
    assert (await (await begin_poll(service))).task_token == b"w"
    assert (await service.poll_activity_task_queue(activity_poll())).task_token == b"a"
    versioned = workflow_poll()
    versioned.deployment_options.deployment_name = "billing"
    versioned.deployment_options.build_id = "v1"
    versioned.deployment_options.worker_versioning_mode = 2
    assert (await service.poll_workflow_task_queue(versioned)).task_token == b"p"


async def test_partitions_share_their_pollers() -> None:
    world = World(MatchingConfig(match_wait=timedelta(), partitions=4))
    service = await world.service()
    await spool(world, service, *(f"t{n}" for n in range(8)))
    keys = [QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow", partition=n) for n in range(4)]
    assert [len(world.store.rows(key)) for key in keys] == [2, 2, 2, 2]
    got = {(await (await begin_poll(service))).task_token for _ in range(8)}
    assert got == {f"t{n}".encode() for n in range(8)}
    await world.close()


async def test_stopping_ends_polls_and_refuses_tasks(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    await service.stop()
    assert not (await poll).task_token
    with pytest.raises(Unavailable):
        await service.add_task(world.task("a"))
    assert not (await service.poll_workflow_task_queue(workflow_poll())).task_token


async def test_a_row_that_cannot_be_read_stops_no_other_and_is_kept(world: World) -> None:
    await spool(world, await world.service("one"), "a", "b", "c")
    world.store.unreadable = {2}
    two = await world.service("two")
    assert [(await (await begin_poll(two))).task_token for _ in range(2)] == [b"a", b"c"]
    await two.stop()
    assert world.store.rows() == [2, 3]
    assert world.store.queue().ack_level == 1
    world.store.unreadable = set()
    three = await world.service("three")
    assert (await (await begin_poll(three))).task_token == b"b"
    await begin_poll(three)  # the repetition of c comes to nothing
    await three.stop()
    assert world.store.rows() == []
    assert world.history.started == ["a", "c", "b"]
