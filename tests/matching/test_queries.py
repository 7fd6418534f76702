"""Queries that bypass history."""

import asyncio
from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.failure.v1 import Failure

from common.contracts.matching import StickyWorkerUnavailable
from common.errors import DeadlineExceeded, FailedPrecondition, InvalidArgument, NotFound, QueryFailed, Unavailable
from matching.service import MatchingService

from .fakes import QUEUE, World, answer, begin_poll, settled, ws

ANSWERED = QueryResultType.QUERY_RESULT_TYPE_ANSWERED
FAILED = QueryResultType.QUERY_RESULT_TYPE_FAILED


async def begin_query(service: MatchingService, world: World, **fields: object):  # type: ignore[no-untyped-def]
    waiting = asyncio.ensure_future(service.query_workflow(world.query(**fields)))
    await settled()
    return waiting


async def test_a_query_is_given_to_a_waiting_poller_and_answered(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    waiting = await begin_query(service, world)
    task = await poll
    assert (task.query.query_type, task.workflow_execution.workflow_id) == ("state", "w")
    respond = ws.RespondQueryTaskCompletedRequest(
        task_token=task.task_token, completed_type=ANSWERED, query_result=answer(b"42")
    )
    await service.respond_query_task_completed(respond)
    assert (await waiting).query_result == answer(b"42")
    assert world.store.commits == []
    with pytest.raises(NotFound, match="query task not found, or already expired"):
        await service.respond_query_task_completed(respond)


async def test_a_query_waits_for_a_poller_and_goes_before_tasks(world: World) -> None:
    service = await world.service()
    await service.add_task(world.task("a"))
    waiting = await begin_query(service, world)
    assert (await (await begin_poll(service))).query.query_type == "state"
    assert (await (await begin_poll(service))).task_token == b"a"
    waiting.cancel()


async def test_a_failed_query_carries_the_workers_failure(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    waiting = await begin_query(service, world)
    await service.respond_query_task_completed(
        ws.RespondQueryTaskCompletedRequest(
            task_token=(await poll).task_token,
            completed_type=FAILED,
            error_message="no such query",
            failure=Failure(message="inner"),
        )
    )
    with pytest.raises(QueryFailed, match="no such query") as failed:
        await waiting
    assert failed.value.failure == Failure(message="inner")


async def test_without_a_recent_poller_a_query_fails_just_before_its_deadline(world: World) -> None:
    service = await world.service()
    waiting = await begin_query(service, world)
    world.clock.advance(timedelta(seconds=8.9))
    await settled()
    assert not waiting.done()
    world.clock.advance(timedelta(seconds=0.2))
    with pytest.raises(FailedPrecondition, match="no poller seen for task queue recently, worker may be down"):
        await waiting


async def test_with_a_recent_poller_a_query_waits_until_its_deadline(world: World) -> None:
    service = await world.service()
    await service.add_task(world.task("a"))
    await (await begin_poll(service))
    waiting = await begin_query(service, world)
    world.clock.advance(timedelta(seconds=9.5))
    await settled()
    assert not waiting.done()
    world.clock.advance(timedelta(seconds=1))
    with pytest.raises(DeadlineExceeded):
        await waiting


async def test_a_worker_that_comes_meanwhile_answers(world: World) -> None:
    service = await world.service()
    waiting = await begin_query(service, world)
    world.clock.advance(timedelta(seconds=5))
    task = await (await begin_poll(service))
    await service.respond_query_task_completed(
        ws.RespondQueryTaskCompletedRequest(task_token=task.task_token, completed_type=ANSWERED)
    )
    await waiting


async def test_the_query_of_a_worker_that_left_times_out(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    waiting = await begin_query(service, world)
    assert (await poll).query.query_type
    world.clock.advance(timedelta(seconds=10))
    with pytest.raises(DeadlineExceeded):
        await waiting


async def test_a_poller_that_leaves_during_the_hand_over_costs_the_query_nothing(world: World) -> None:
    service = await world.service()
    first = await begin_poll(service, "first")
    world.history.gate = asyncio.Event()
    waiting = await begin_query(service, world)
    first.cancel()
    second = await begin_poll(service, "second")
    world.history.gate.set()
    task = await second
    await service.respond_query_task_completed(
        ws.RespondQueryTaskCompletedRequest(task_token=task.task_token, completed_type=ANSWERED)
    )
    await waiting


async def test_a_query_that_history_refuses_leaves_the_poller_waiting(world: World) -> None:
    service = await world.service()
    poll = await begin_poll(service)
    world.history.failures = [Unavailable("away")]
    waiting = await begin_query(service, world)
    with pytest.raises(Unavailable):
        await waiting
    await service.add_task(world.task("a"))
    assert (await poll).task_token == b"a"


async def test_a_query_on_a_dead_sticky_queue_is_refused_at_once(world: World) -> None:
    service = await world.service()
    with pytest.raises(StickyWorkerUnavailable):
        await service.query_workflow(world.query(task_queue="sticky", normal_name=QUEUE))


async def test_a_foreign_token_is_refused(world: World) -> None:
    service = await world.service()
    with pytest.raises(InvalidArgument):
        await service.respond_query_task_completed(ws.RespondQueryTaskCompletedRequest(task_token=b"garbage"))
