"""Reading runs through the engine: pages of a history, long polls, queries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    HistoryEventFilterType,
    QueryRejectCondition,
    QueryResultType,
    WorkflowExecutionStatus,
)
from temporalio.api.query.v1 import WorkflowQuery, WorkflowQueryResult
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordWorkflowTaskStarted
from common.contracts.matching import QueryWorkflow, StickyWorkerUnavailable
from common.errors import (
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    QueryFailed,
    ResourceExhausted,
    WorkflowNotReady,
)
from history.api.describe_workflow_execution import describe_workflow_execution
from history.api.get_workflow_execution_history import get_workflow_execution_history
from history.api.get_workflow_execution_history_reverse import get_workflow_execution_history_reverse
from history.api.pause_workflow_execution import pause_workflow_execution
from history.api.query_workflow import query_workflow
from history.api.record_workflow_task_started import record_workflow_task_started
from history.api.respond_workflow_task_completed import respond_workflow_task_completed
from history.api.respond_workflow_task_failed import respond_workflow_task_failed
from history.api.signal_workflow_execution import signal_workflow_execution
from history.api.start_workflow_execution import start_workflow_execution
from history.api.terminate_workflow_execution import terminate_workflow_execution
from history.records import NamespaceRecord
from tests.history.engine_harness import Lab, running_lab
from tests.history.harness import command, payloads, start_request

EXECUTION = WorkflowExecution(workflow_id="wf")
CLOSE_EVENT = HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
ANSWERED = QueryResultType.QUERY_RESULT_TYPE_ANSWERED


class Namespaces:
    def __init__(self, lab: Lab) -> None:
        self._record = NamespaceRecord(name="default", namespace_id="ns-id", created_at=lab.clock.now())

    def peek(self, name: str) -> NamespaceRecord:
        return self._record

    def last_known(self, name: str) -> NamespaceRecord:
        return self._record


class Client:
    """A client and a worker of one engine."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.engine = lab.engine
        self.engine.namespaces = Namespaces(lab)  # type: ignore[assignment]
        self.asked: list[QueryWorkflow] = []
        self.answers: list[Callable[[], ws.QueryWorkflowResponse]] = []
        lab.matching.query_workflow = self._asked  # type: ignore[attr-defined]

    async def _asked(self, request: QueryWorkflow) -> ws.QueryWorkflowResponse:
        self.asked.append(request)
        return self.answers.pop(0)()

    async def start(self) -> str:
        return (await start_workflow_execution(self.engine, start_request())).run_id

    async def signal(self, name: str = "go") -> None:
        request = ws.SignalWorkflowExecutionRequest(namespace="default", workflow_execution=EXECUTION, signal_name=name)
        await signal_workflow_execution(self.engine, request)

    async def terminate(self) -> None:
        request = ws.TerminateWorkflowExecutionRequest(namespace="default", workflow_execution=EXECUTION)
        await terminate_workflow_execution(self.engine, request)

    async def poll(self) -> ws.PollWorkflowTaskQueueResponse:
        state = await self.engine.read(namespace="default", workflow_id="wf")
        task = state.info.workflow_task
        assert task is not None
        return await record_workflow_task_started(
            self.engine,
            RecordWorkflowTaskStarted(
                namespace="default",
                workflow_id="wf",
                run_id=state.info.run_id,
                scheduled_event_id=task.scheduled_event_id,
                attempt=task.attempt,
                stamp=task.stamp,
                request_id=f"poll-{task.scheduled_event_id}-{task.attempt}",
                poll=ws.PollWorkflowTaskQueueRequest(
                    namespace="default", task_queue=TaskQueue(name=task.task_queue), identity="worker"
                ),
            ),
        )

    async def complete(self, task: ws.PollWorkflowTaskQueueResponse, *commands: Any, **fields: Any) -> None:
        request = ws.RespondWorkflowTaskCompletedRequest(task_token=task.task_token, commands=commands, **fields)
        await respond_workflow_task_completed(self.engine, request)

    async def fail(self, task: ws.PollWorkflowTaskQueueResponse) -> None:
        await respond_workflow_task_failed(
            self.engine, ws.RespondWorkflowTaskFailedRequest(task_token=task.task_token, identity="worker")
        )

    async def history(self, **fields: Any) -> ws.GetWorkflowExecutionHistoryResponse:
        fields.setdefault("execution", EXECUTION)
        return await get_workflow_execution_history(
            self.engine, ws.GetWorkflowExecutionHistoryRequest(namespace="default", **fields)
        )

    async def reverse(self, **fields: Any) -> ws.GetWorkflowExecutionHistoryReverseResponse:
        return await get_workflow_execution_history_reverse(
            self.engine,
            ws.GetWorkflowExecutionHistoryReverseRequest(namespace="default", execution=EXECUTION, **fields),
        )

    async def query(self, reject: str = "UNSPECIFIED") -> ws.QueryWorkflowResponse:
        condition = "UNSPECIFIED" if reject == "UNSPECIFIED" else reject
        name = f"QUERY_REJECT_CONDITION_{condition}"
        values = {key: QueryRejectCondition.Value(key) for key in QueryRejectCondition.keys()}  # noqa: SIM118
        return await query_workflow(
            self.engine,
            ws.QueryWorkflowRequest(
                namespace="default",
                execution=EXECUTION,
                query=WorkflowQuery(query_type="q"),
                query_reject_condition=values.get(name, 0),
            ),
        )

    async def waiting(self, call: Any) -> asyncio.Task[Any]:
        """The call as a task that has begun to wait."""
        task = asyncio.create_task(call)
        for _ in range(5):
            await self.lab.clock.sleep(timedelta())
        assert not task.done()
        return task


def ids(response: Any) -> list[int]:
    return [event.event_id for event in response.history.events]


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Client]:
    async with running_lab(url) as lab:
        yield Client(lab)


# --- pages


async def test_pages_forward_and_backward(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        for _ in range(5):
            await c.signal()
        first = await c.history(maximum_page_size=3)
        assert ids(first) == [1, 2, 3]
        second = await c.history(maximum_page_size=3, next_page_token=first.next_page_token)
        last = await c.history(maximum_page_size=3, next_page_token=second.next_page_token)
        assert (ids(second), ids(last), last.next_page_token) == ([4, 5, 6], [7], b"")
        newest = await c.reverse(maximum_page_size=4)
        oldest = await c.reverse(maximum_page_size=4, next_page_token=newest.next_page_token)
        assert (ids(newest), ids(oldest), oldest.next_page_token) == ([7, 6, 5, 4], [3, 2, 1], b"")


async def test_a_page_ends_before_it_is_too_large_for_a_message(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        for _ in range(6):
            request = ws.SignalWorkflowExecutionRequest(
                namespace="default", workflow_execution=EXECUTION, signal_name="go", input=payloads("x" * 1_000_000)
            )
            await signal_workflow_execution(c.engine, request)
        seen, token, pages = [], b"", 0
        while pages == 0 or token:
            page = await c.history(next_page_token=token)
            assert page.ByteSize() < 4 * 1024 * 1024
            seen += ids(page)
            token, pages = page.next_page_token, pages + 1
        assert seen == list(range(1, 9))
        assert pages > 1


async def test_page_tokens_are_checked(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        token = (await c.history(maximum_page_size=1)).next_page_token
        with pytest.raises(InvalidArgument, match=r"^Invalid NextPageToken\.$"):
            await c.history(next_page_token=b"nonsense")
        with pytest.raises(InvalidArgument, match=r"^RunId in the request does not match the NextPageToken\.$"):
            await c.history(execution=WorkflowExecution(workflow_id="wf", run_id="another"), next_page_token=token)
        with pytest.raises(NotFound):
            await c.history(execution=WorkflowExecution(workflow_id="nope"))


async def test_a_failing_tasks_events_are_shown_before_they_are_written(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        await c.fail(await c.poll())
        await c.poll()
        page = await c.history()
        assert ids(page) == [1, 2, 3, 4, 5, 6]
        state = await c.engine.read(namespace="default", workflow_id="wf")
        assert state.info.next_event_id == 5


# --- long polls


async def test_b01_a_long_poll_that_finds_nothing_gives_a_token_that_works(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        first = await c.history(wait_new_event=True)
        assert ids(first) == [1, 2]
        wait = await c.waiting(c.history(wait_new_event=True, next_page_token=first.next_page_token))
        c.lab.clock.advance(timedelta(seconds=21))
        empty = await wait
        assert ids(empty) == []
        assert empty.next_page_token
        wait = await c.waiting(c.history(wait_new_event=True, next_page_token=empty.next_page_token))
        await c.signal()
        assert ids(await wait) == [3]


async def test_b01_a_wait_for_the_close_event_ends_with_it(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        fields: dict[str, Any] = {"wait_new_event": True, "history_event_filter_type": CLOSE_EVENT}
        wait = await c.waiting(c.history(**fields))
        c.lab.clock.advance(timedelta(seconds=21))
        empty = await wait
        assert (ids(empty), bool(empty.next_page_token)) == ([], True)
        wait = await c.waiting(c.history(next_page_token=empty.next_page_token, **fields))
        await c.signal()
        await c.terminate()
        closed = await wait
        assert (ids(closed), closed.next_page_token) == ([4], b"")


async def test_the_close_event_filter_without_waiting(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        open_run = await c.history(history_event_filter_type=CLOSE_EVENT)
        assert (ids(open_run), open_run.next_page_token) == ([], b"")
        await c.terminate()
        assert ids(await c.history(history_event_filter_type=CLOSE_EVENT)) == [3]


async def test_a_paused_run_is_read_like_a_closed_one(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        await c.complete(await c.poll())
        fields: dict[str, Any] = {"wait_new_event": True, "history_event_filter_type": CLOSE_EVENT}
        wait = await c.waiting(c.history(**fields))
        request = ws.PauseWorkflowExecutionRequest(namespace="default", workflow_id="wf", request_id="p")
        await pause_workflow_execution(c.engine, request)
        paused = await wait
        assert (ids(paused), paused.next_page_token) == ([5], b"")
        assert ids(await c.history(history_event_filter_type=CLOSE_EVENT)) == [5]
        assert not (await c.history(wait_new_event=True)).next_page_token


async def test_what_a_start_leaves_open_is_described_as_upstream_does(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        request = ws.DescribeWorkflowExecutionRequest(namespace="default", execution=EXECUTION)
        described = await describe_workflow_execution(c.engine, request)
        assert described.workflow_extended_info.run_expiration_time.ToJsonString() == "0001-01-01T00:00:00Z"
        assert not described.execution_config.HasField("workflow_execution_timeout")
        assert not described.execution_config.HasField("workflow_run_timeout")


# --- queries


def answer(text: str = "yes") -> ws.QueryWorkflowResponse:
    return ws.QueryWorkflowResponse(query_result=payloads(text))


def unavailable() -> ws.QueryWorkflowResponse:
    raise StickyWorkerUnavailable("gone")


async def idle(c: Client, **fields: Any) -> None:
    """A run whose worker has handled everything."""
    await c.start()
    await c.complete(await c.poll(), **fields)


async def test_an_idle_run_is_asked_directly(database_url: str) -> None:
    async with client(database_url) as c:
        await idle(c)
        c.answers = [answer]
        response = await c.query()
        assert response.query_result == payloads("yes")
        assert not response.HasField("link")
        (asked,) = c.asked
        assert (asked.task_queue, asked.normal_name, asked.workflow_id) == ("queue", "", "wf")


async def test_b25_a_query_falls_back_from_a_sticky_queue_without_worker(database_url: str) -> None:
    async with client(database_url) as c:
        sticky = {"worker_task_queue": TaskQueue(name="sticky"), "schedule_to_start_timeout": timedelta(seconds=5)}
        await idle(c, sticky_attributes=sticky)
        c.answers = [unavailable, answer]
        assert (await c.query()).query_result == payloads("yes")
        assert [asked.task_queue for asked in c.asked] == ["sticky", "queue"]
        state = await c.engine.read(namespace="default", workflow_id="wf")
        assert state.info.sticky_queue == ""


async def test_a_query_waits_for_the_task_that_is_pending(database_url: str) -> None:
    async with client(database_url) as c:
        await idle(c)
        await c.signal()
        wait = await c.waiting(c.query())
        with pytest.raises(ResourceExhausted, match="consistent query buffer is full"):
            await c.query()
        task = await c.poll()
        (query_id,) = task.queries
        await c.complete(
            task, query_results={query_id: WorkflowQueryResult(result_type=ANSWERED, answer=payloads("with the task"))}
        )
        assert (await wait).query_result == payloads("with the task")
        assert c.asked == []


async def test_a_failed_query_says_what_the_worker_said(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        wait = await c.waiting(c.query())
        task = await c.poll()
        (query_id,) = task.queries
        failed = WorkflowQueryResult(
            result_type=QueryResultType.QUERY_RESULT_TYPE_FAILED, error_message="no such query"
        )
        await c.complete(task, query_results={query_id: failed})
        with pytest.raises(QueryFailed, match="no such query"):
            await wait


async def test_a_waiting_query_is_asked_directly_once_nothing_is_pending(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        task = await c.poll()
        wait = await c.waiting(c.query())
        c.answers = [answer]
        await c.complete(task)
        assert (await wait).query_result == payloads("yes")


async def test_a_waiting_query_outlives_a_failed_task(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        wait = await c.waiting(c.query())
        await c.fail(await c.poll())
        task = await c.poll()
        (query_id,) = task.queries
        await c.complete(
            task, query_results={query_id: WorkflowQueryResult(result_type=ANSWERED, answer=payloads("at last"))}
        )
        assert (await wait).query_result == payloads("at last")


async def test_b02_a_run_no_worker_has_begun_with_can_not_be_asked(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        wait = await c.waiting(c.query())
        await c.terminate()
        with pytest.raises(WorkflowNotReady, match="closed before WorkflowTaskStarted event"):
            await wait
        with pytest.raises(WorkflowNotReady, match="closed before WorkflowTaskStarted event"):
            await c.query()


async def test_b02_a_run_whose_task_keeps_failing_can_not_be_asked(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        for _ in range(3):
            await c.fail(await c.poll())
        with pytest.raises(WorkflowNotReady, match="Unable to query workflow due to Workflow Task in failed state"):
            await c.query()


async def test_a_closed_run_is_asked_unless_the_caller_rejects_it(database_url: str) -> None:
    async with client(database_url) as c:
        await c.start()
        await c.complete(await c.poll(), command("complete_workflow_execution"))
        c.answers = [answer, answer]
        assert (await c.query("NONE")).query_result == payloads("yes")
        assert (await c.query("NOT_COMPLETED_CLEANLY")).query_result == payloads("yes")
        rejected = await c.query("NOT_OPEN")
        assert rejected.query_rejected.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED
        assert not rejected.HasField("link")


async def test_nobody_to_ask(database_url: str) -> None:
    def nobody() -> ws.QueryWorkflowResponse:
        raise FailedPrecondition("no poller seen for task queue recently, worker may be down")

    async with client(database_url) as c:
        await idle(c)
        c.answers = [nobody]
        with pytest.raises(FailedPrecondition, match="no poller seen"):
            await c.query()
