"""Batches: each operation's calls, what counts as failed, the pace, and going on after a restart or a take-over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResetType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflow.v1 import ResetPointInfo, WorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from common.contracts.batches import FAILURES_KEPT, BatchRecord
from common.contracts.visibility import CountResult, ListPage
from common.database import Database
from common.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from history.namespaces import NamespaceRegistry
from history.records import NamespaceRecord
from tests.contract.conftest import database  # noqa: F401  a fixture
from tests.frontend.fakes import FakeRole, FakeVisibility, MemoryNamespaceStore
from worker.batches.loop import BatchLoop
from worker.batches.operations import Operations, request_id
from worker.batches.runner import BatchRunner
from worker.batches.store import BatchStore

START = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "0195a0b0-0000-7000-8000-000000000001"
QUERY = "WorkflowType = 'Order'"


@pytest.fixture(scope="session")
def database_kind() -> str:
    """One kind will do: the store keeps its promises on both."""
    return "sqlite"


class Bench:
    """A store on a database, a runner and a loop before a History and a read model that are fakes."""

    def __init__(self, database: Database) -> None:  # noqa: F811
        self.clock = ManualClock(START)
        self.history = FakeRole()
        self.visibility = FakeVisibility()
        self.store = BatchStore(database=database, clock=self.clock)
        self.names = MemoryNamespaceStore()
        self.namespaces = NamespaceRegistry(store=self.names, clock=self.clock)

    def runner(self, host: str = "here") -> BatchRunner:
        return BatchRunner(
            store=self.store,
            operations=Operations(history=self.history, clock=self.clock, identity="batcher"),  # type: ignore[arg-type]
            visibility=self.visibility,  # type: ignore[arg-type]
            namespaces=self.namespaces,
            clock=self.clock,
            host=host,
        )

    async def begin(self, batch: BatchRecord) -> BatchRecord:
        await self.names.create(NamespaceRecord(name="default", namespace_id="id", created_at=START))
        await self.store.start(batch)
        return batch

    async def now(self) -> BatchRecord:
        found = await self.store.get(namespace="default", job_id="job")
        assert found is not None
        return found

    def did(self, method: str) -> list[str]:
        return [request.workflow_execution.workflow_id for request in self.history.asked(method)]


@pytest.fixture
def bench(database: Database) -> Bench:  # noqa: F811
    return Bench(database)


def request(**operation: Any) -> ws.StartBatchOperationRequest:
    return ws.StartBatchOperationRequest(namespace="default", job_id="job", reason="why", **operation)


def terminating(*workflow_ids: str, query: str = "", **more: Any) -> BatchRecord:
    made = request(
        executions=[WorkflowExecution(workflow_id=name) for name in workflow_ids], visibility_query=query, **more
    )
    made.termination_operation.identity = "me"
    return record(made)


def record(made: ws.StartBatchOperationRequest) -> BatchRecord:
    operation = made.WhichOneof("operation")
    assert operation is not None
    return BatchRecord(
        namespace="default", job_id="job", batch_id="id", request=made, operation=operation, started_at=START
    )


def page(*workflow_ids: str, token: bytes = b"") -> ListPage:
    infos = [WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id=name)) for name in workflow_ids]
    return ListPage(executions=infos, next_page_token=token)


async def a_moment() -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.005):
            await asyncio.Event().wait()


async def passing(bench: Bench, work: Any) -> None:
    """The work's end, with the clock going on whenever something waits for it."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=0.005)
        due = bench.clock.next_due()
        if due is not None:
            bench.clock.advance_to(due)
    task.result()


async def test_a_query_finds_open_executions_page_by_page(bench: Bench) -> None:
    bench.visibility.counted = CountResult(count=3, groups=[])
    bench.visibility.pages = [page("a", "b", token=b"next"), page("c")]
    await passing(bench, bench.runner().run(await bench.begin(terminating(query=QUERY))))
    batch = await bench.now()
    assert (batch.state, batch.total, batch.completed, batch.failed) == ("Completed", 3, 3, 0)
    assert bench.did("terminate_workflow_execution") == ["a", "b", "c"]
    assert [asked["next_page_token"] for asked in bench.visibility.lists] == [b"", b"next"]
    wanted = f"({QUERY}) AND (ExecutionStatus='Running' OR ExecutionStatus='Paused')"
    assert {asked["query"] for asked in (*bench.visibility.lists, *bench.visibility.counts)} == {wanted}


async def test_a_query_that_means_nothing_fails_the_batch(bench: Bench) -> None:
    async def refuse(**_: Any) -> CountResult:
        raise InvalidArgument("no such attribute")

    bench.visibility.count_workflow_executions = refuse  # type: ignore[method-assign]
    await bench.runner().run(await bench.begin(terminating(query=QUERY)))
    batch = await bench.now()
    assert (batch.state, batch.problem, batch.closed_at) == ("Failed", "no such attribute", START)


async def test_what_is_gone_is_done_and_what_fails_is_named(bench: Bench) -> None:
    def answer(asked: ws.TerminateWorkflowExecutionRequest) -> Any:
        match asked.workflow_execution.workflow_id:
            case "gone":
                raise NotFound("workflow execution already completed")
            case "broken":
                raise FailedPrecondition("not now")
            case "bug":
                raise ZeroDivisionError
        return ws.TerminateWorkflowExecutionResponse()

    bench.history.answer("terminate_workflow_execution", answer)
    bad_run = WorkflowExecution(workflow_id="bad", run_id="no id")
    made = terminating("gone", "broken", "fine", "bug")
    made.request.executions.append(bad_run)
    await bench.runner().run(await bench.begin(made))
    batch = await bench.now()
    assert (batch.state, batch.completed, batch.failed) == ("Completed", 2, 3)
    assert {f.workflow_id: f.message for f in batch.failures} == {
        "broken": "not now",
        "bug": "ZeroDivisionError()",
        "bad": "Invalid RunId.",
    }


async def test_only_some_failures_are_named(bench: Bench) -> None:
    bench.history.answer("terminate_workflow_execution", FailedPrecondition("no"))
    made = terminating(*(f"w{number}" for number in range(FAILURES_KEPT + 5)))
    await passing(bench, bench.runner().run(await bench.begin(made)))
    batch = await bench.now()
    assert (batch.failed, len(batch.failures)) == (FAILURES_KEPT + 5, FAILURES_KEPT)


async def test_a_shard_that_is_away_for_a_moment_is_waited_for(bench: Bench) -> None:
    refusals = [Unavailable("moved")] * 3

    def answer(_: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return ws.TerminateWorkflowExecutionResponse()

    bench.history.answer("terminate_workflow_execution", answer)
    await passing(bench, bench.runner().run(await bench.begin(terminating("a"))))
    batch = await bench.now()
    assert (batch.completed, batch.failed) == (1, 0)


@pytest.mark.parametrize("wanted, seconds", [(0, 1), (10, 9), (1000, 1)])
async def test_the_pace(bench: Bench, wanted: float, seconds: int) -> None:
    """A second's worth at once, then so many a second; never more than the server's own limit."""
    made = terminating(*(f"w{number}" for number in range(100)), max_operations_per_second=wanted)
    await passing(bench, bench.runner().run(await bench.begin(made)))
    took = bench.clock.now() - START
    assert timedelta(seconds=seconds) <= took <= timedelta(seconds=seconds + 1)
    assert (await bench.now()).completed == 100


class Hold:
    """Answers until it comes to one that it holds; then says so and answers no more."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.reached = asyncio.Event()

    async def __call__(self, asked: Any) -> Any:
        if asked.workflow_execution.workflow_id == self.name:
            self.reached.set()
            await asyncio.Event().wait()
        return ws.TerminateWorkflowExecutionResponse()


async def interrupted(bench: Bench, made: BatchRecord, *, at: str) -> None:
    """A run that is ended while it works on the execution."""
    hold = Hold(at)
    bench.history.answer("terminate_workflow_execution", lambda asked: hold(asked))
    running = asyncio.create_task(bench.runner("first").run(made))
    await asyncio.wait_for(hold.reached.wait(), 30)
    bench.clock.advance(timedelta(seconds=1))
    while (await bench.now()).page_token != b"second":
        await asyncio.wait({running}, timeout=0.005)
        bench.clock.advance(timedelta(seconds=1))
    running.cancel()
    await asyncio.wait({running})


async def test_a_restart_goes_on_with_the_page(bench: Bench) -> None:
    bench.visibility.counted = CountResult(count=4, groups=[])
    bench.visibility.pages = [page("a", "b", token=b"second"), page("c", "d")]
    await interrupted(bench, await bench.begin(terminating(query=QUERY)), at="d")
    left = await bench.now()
    assert (left.state, left.total, left.owner) == ("Running", 4, "first")
    bench.history.requests.clear()
    bench.history.answers.clear()
    bench.visibility.pages = [page("c", "d")]
    await passing(bench, bench.runner("second").run(left))
    batch = await bench.now()
    assert bench.did("terminate_workflow_execution") == ["c", "d"]
    assert bench.visibility.lists[-1]["next_page_token"] == b"second"
    assert (batch.state, batch.completed, batch.owner, batch.generation) == ("Completed", 4, "second", 2)


async def test_a_host_whose_batch_was_taken_ends_quietly(bench: Bench) -> None:
    hold = Hold("a")
    bench.history.answer("terminate_workflow_execution", lambda asked: hold(asked))
    made = await bench.begin(terminating("a"))
    first = asyncio.create_task(bench.runner("first").run(made))
    await asyncio.wait_for(hold.reached.wait(), 30)
    bench.history.answers.clear()
    await bench.runner("second").run(await bench.now())
    await passing(bench, first)
    batch = await bench.now()
    assert (batch.state, batch.owner, batch.completed) == ("Completed", "second", 1)
    await bench.runner("third").run(made)  # an old view of it: nothing happens
    assert (await bench.now()).owner == "second"


@asynccontextmanager
async def looping(bench: Bench, **more: Any) -> AsyncIterator[BatchLoop]:
    loop = BatchLoop(store=bench.store, runner=bench.runner(), clock=bench.clock, **more)
    bench.store.changed = loop.wake
    await loop.start()
    try:
        yield loop
    finally:
        await loop.stop()


async def closed(bench: Bench) -> BatchRecord:
    while True:
        batch = await bench.now()
        if batch.closed_at is not None:
            return batch
        await a_moment()


async def test_the_loop_runs_what_is_started(bench: Bench) -> None:
    async with looping(bench):
        await bench.begin(terminating("a"))
        assert (await asyncio.wait_for(closed(bench), 30)).state == "Completed"


async def test_the_loop_ends_what_is_stopped(bench: Bench) -> None:
    hold = Hold("a")
    bench.history.answer("terminate_workflow_execution", lambda asked: hold(asked))
    async with looping(bench) as loop:
        await bench.begin(terminating("a", "b"))
        await asyncio.wait_for(hold.reached.wait(), 30)
        await bench.store.stop(namespace="default", job_id="job", problem="enough")
        while loop._running:
            await asyncio.wait(set(loop._running.values()), timeout=0.005)
    assert (await bench.now()).state == "Stopped"


async def test_the_loop_leaves_the_batches_of_other_hosts(bench: Bench) -> None:
    asked: list[str] = []
    ours: set[str] = set()

    def runs(key: str) -> bool:
        asked.append(key)
        return key in ours

    async with looping(bench, runs=runs) as loop:
        await bench.begin(terminating("a"))
        while not asked:
            await a_moment()
        assert (await bench.now()).state == "Running"
        ours.add("default/job")
        loop.wake()  # as when the members change
        assert (await asyncio.wait_for(closed(bench), 30)).state == "Completed"


async def test_batches_of_other_processes_are_found_by_looking_again(bench: Bench) -> None:
    async with looping(bench, others=True):
        bench.store.changed = lambda: None
        await bench.begin(terminating("a"))
        await passing(bench, asyncio.wait_for(closed(bench), 30))


EXECUTION = WorkflowExecution(workflow_id="w", run_id=RUN)
INPUT = Payloads(payloads=[Payload(data=b"5")])


def signal(made: Any) -> None:
    made.signal_operation.signal = "finish"
    made.signal_operation.identity = "me"
    made.signal_operation.input.CopyFrom(INPUT)


def reset(made: Any) -> None:
    made.reset_operation.identity = "me"
    made.reset_operation.options.workflow_task_id = 4


def unpause(made: Any) -> None:
    made.unpause_activities_operation.type = "Pay"
    made.unpause_activities_operation.reset_attempts = True


def reset_activities(made: Any) -> None:
    made.reset_activities_operation.match_all = True
    made.reset_activities_operation.keep_paused = True


def update_activities(made: Any) -> None:
    made.update_activity_options_operation.match_all = True
    made.update_activity_options_operation.restore_original = True


def update_options(made: Any) -> None:
    made.update_workflow_options_operation.update_mask.paths.append("versioning_override")
    made.update_workflow_options_operation.workflow_execution_options.SetInParent()


@pytest.mark.parametrize(
    "operation, method, fields",
    [
        (
            signal,
            "signal_workflow_execution",
            {"signal_name": "finish", "identity": "me", "input": INPUT, "workflow_execution": EXECUTION},
        ),
        (reset, "reset_workflow_execution", {"workflow_task_finish_event_id": 4, "reason": "why", "identity": "me"}),
        (unpause, "unpause_activity", {"type": "Pay", "reset_attempts": True, "execution": EXECUTION}),
        (reset_activities, "reset_activity", {"match_all": True, "keep_paused": True}),
        (update_activities, "update_activity_options", {"match_all": True, "restore_original": True}),
        (update_options, "update_workflow_execution_options", {"workflow_execution": EXECUTION}),
        (
            lambda made: made.cancellation_operation.SetInParent(),
            "request_cancel_workflow_execution",
            {"identity": "batcher", "workflow_execution": EXECUTION},
        ),
        (
            lambda made: made.deletion_operation.SetInParent(),
            "delete_workflow_execution",
            {"workflow_execution": EXECUTION},
        ),
        (
            lambda made: made.termination_operation.SetInParent(),
            "terminate_workflow_execution",
            {"reason": "why", "identity": "batcher", "workflow_execution": EXECUTION},
        ),
    ],
)
async def test_each_operation_is_a_call_of_history(operation: Any, method: str, fields: dict[str, Any]) -> None:
    made = request()
    operation(made)
    history = FakeRole()
    operations = Operations(history=history, clock=ManualClock(START), identity="batcher")  # type: ignore[arg-type]
    await operations.operate(record(made), EXECUTION)
    [asked] = history.asked(method)
    assert asked.namespace == "default"
    assert {name: getattr(asked, name) for name in fields} == fields


def test_an_execution_has_the_same_request_id_each_time() -> None:
    made = terminating("w")
    assert request_id(made, "signal", EXECUTION, "a") == request_id(made, "signal", EXECUTION, "a")
    assert request_id(made, "signal", EXECUTION, "a") != request_id(made, "signal", EXECUTION, "b")
    other = msgspec.structs.replace(made, job_id="other")
    assert request_id(made, "signal", EXECUTION, "a") != request_id(other, "signal", EXECUTION, "a")


SCHEDULED, COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED
EVENTS = {2: SCHEDULED, 4: COMPLETED, 8: SCHEDULED, 10: COMPLETED, 12: SCHEDULED}


@pytest.mark.parametrize(
    "kind, events, event_id",
    [
        (ResetType.RESET_TYPE_FIRST_WORKFLOW_TASK, EVENTS, 4),
        (ResetType.RESET_TYPE_LAST_WORKFLOW_TASK, EVENTS, 10),
        (ResetType.RESET_TYPE_FIRST_WORKFLOW_TASK, {2: SCHEDULED, 5: SCHEDULED}, 3),
        (ResetType.RESET_TYPE_LAST_WORKFLOW_TASK, {2: SCHEDULED}, 3),
    ],
)
async def test_where_a_reset_goes(kind: Any, events: dict[int, Any], event_id: int) -> None:
    """One event a page."""
    history = FakeRole()

    def read(answer: type[Any], ids: list[int]) -> Any:
        def one(asked: Any) -> Any:
            at = int(asked.next_page_token or 0)
            event = HistoryEvent(event_id=ids[at], event_type=events[ids[at]])
            token = str(at + 1).encode() if at + 1 < len(ids) else b""
            return answer(history={"events": [event]}, next_page_token=token)

        return one

    forward, backward = list(events), list(reversed(events))
    history.answer("get_workflow_execution_history", read(ws.GetWorkflowExecutionHistoryResponse, forward))
    history.answer(
        "get_workflow_execution_history_reverse", read(ws.GetWorkflowExecutionHistoryReverseResponse, backward)
    )
    made = request()
    made.reset_operation.reset_type = kind
    operations = Operations(history=history, clock=ManualClock(START), identity="batcher")  # type: ignore[arg-type]
    await operations.operate(record(made), EXECUTION)
    assert history.last().workflow_task_finish_event_id == event_id


@pytest.mark.parametrize(
    "point, current_only, problem",
    [
        ({"build_id": "b", "run_id": "earlier", "first_workflow_task_completed_id": 7, "resettable": True}, False, ""),
        ({"build_id": "b", "run_id": "earlier", "resettable": True}, True, "points to previous run"),
        ({"build_id": "b", "run_id": RUN}, False, "not resettable"),
        ({"build_id": "other", "run_id": RUN, "resettable": True}, False, "Can't find reset point for b"),
    ],
)
async def test_a_reset_by_build_id(point: dict[str, Any], current_only: bool, problem: str) -> None:
    history = FakeRole()
    described = ws.DescribeWorkflowExecutionResponse()
    described.workflow_execution_info.auto_reset_points.points.append(ResetPointInfo(**point))
    history.answer("describe_workflow_execution", described)
    made = request()
    made.reset_operation.options.build_id = "b"
    made.reset_operation.options.current_run_only = current_only
    operations = Operations(history=history, clock=ManualClock(START), identity="batcher")  # type: ignore[arg-type]
    if problem:
        with pytest.raises(FailedPrecondition, match=problem):
            await operations.operate(record(made), EXECUTION)
        return
    await operations.operate(record(made), EXECUTION)
    asked = history.last()
    assert (asked.workflow_execution.run_id, asked.workflow_task_finish_event_id) == ("earlier", 7)


async def test_activities_without_a_workflow(bench: Bench) -> None:
    """Found by a query in their own language, named by their own ids; a deletion takes closed ones, too."""
    made = request(visibility_query="ActivityType = 'x'")
    made.cancel_activities_operation.reason = "because"
    bench.visibility.counted = CountResult(count=1, groups=[])
    bench.visibility.pages = [page("a")]
    batch = await bench.begin(record(made))
    await passing(bench, bench.runner().run(batch))
    (asked,) = bench.history.asked("request_cancel_activity_execution")
    assert (asked.activity_id, asked.reason) == ("a", "because")
    assert asked.request_id == request_id(batch, "cancel-activity", WorkflowExecution(workflow_id="a"))
    assert [made["archetype"] for made in (*bench.visibility.lists, *bench.visibility.counts)] == ["activity"] * 2
    assert (await bench.now()).completed == 1


@pytest.mark.parametrize("verb", ["terminate", "delete"])
async def test_named_activities(bench: Bench, verb: str) -> None:
    made = request()
    made.target_executions.add(business_id="a", run_id=RUN)
    getattr(made, f"{verb}_activities_operation").SetInParent()
    await passing(bench, bench.runner().run(await bench.begin(record(made))))
    (asked,) = bench.history.asked(f"{verb}_activity_execution")
    assert (asked.activity_id, asked.run_id) == ("a", RUN)
