"""The API functions around the transitions, on an engine that runs them at once and keeps its states in memory."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import QueryResultType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionSignaledEventAttributes
from temporalio.api.query.v1 import WorkflowQuery, WorkflowQueryResult
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.errors import InvalidArgument, NotFound
from history.api.query_task import query_task
from history.api.record_activity_task_heartbeat import record_activity_task_heartbeat
from history.api.record_activity_task_heartbeat_by_id import record_activity_task_heartbeat_by_id
from history.api.record_activity_task_started import record_activity_task_started
from history.api.record_workflow_task_started import record_workflow_task_started
from history.api.reset_sticky_task_queue import reset_sticky_task_queue
from history.api.respond_activity_task_canceled import respond_activity_task_canceled
from history.api.respond_activity_task_canceled_by_id import respond_activity_task_canceled_by_id
from history.api.respond_activity_task_completed import respond_activity_task_completed
from history.api.respond_activity_task_completed_by_id import respond_activity_task_completed_by_id
from history.api.respond_activity_task_failed import respond_activity_task_failed
from history.api.respond_activity_task_failed_by_id import respond_activity_task_failed_by_id
from history.api.respond_workflow_task_completed import respond_workflow_task_completed
from history.api.respond_workflow_task_failed import respond_workflow_task_failed
from history.config import HistoryConfig
from history.engine.registry import RunRegistry, Unblocked
from history.events import add_event
from history.paging import PAGE_EVENTS, decode_history_token
from history.state import Draft, ExecutionState
from history.transitions.workflow_tasks import schedule_workflow_task
from history.workspace import Workspace
from tests.history.commands import cancel_activity, complete_workflow, marker, schedule_activity, start_timer, upsert
from tests.history.harness import NAMESPACE, WORKFLOW_ID, payloads
from tests.history.worker_host import QUEUE, WorkerHost

T = TypeVar("T")


class MemoryEngine:
    """What the API functions use of an Engine."""

    def __init__(self, host: WorkerHost) -> None:
        self.host = host
        self.config = HistoryConfig()
        self.registries: dict[str, RunRegistry] = {}
        record = SimpleNamespace(search_attributes={"Word": "Keyword"})
        self.namespaces = SimpleNamespace(last_known=lambda _: record)

    async def update(
        self,
        *,
        namespace: str,
        workflow_id: str,
        transition: Callable[[Workspace], T],
        reason: str,
        runs_last: bool = False,
    ) -> T:
        assert (namespace, workflow_id) == (NAMESPACE, WORKFLOW_ID)
        assert reason
        return self.host.run(transition)

    async def run(self, *, namespace: str, workflow_id: str, run_id: str) -> Any:
        return SimpleNamespace(registry=self.registries.get(run_id))

    def registry(self, run_id: str) -> RunRegistry:
        return self.registries.setdefault(run_id, RunRegistry())

    async def read(self, *, namespace: str, workflow_id: str, run_id: str = "") -> ExecutionState:
        return self.host.state

    async def events(
        self, *, namespace: str, workflow_id: str, run_id: str, first: int, last: int
    ) -> list[HistoryEvent]:
        return self.host.events[run_id][first - 1 : last - 1]


@pytest.fixture
def engine() -> Any:
    host = WorkerHost()
    host.begin()
    return MemoryEngine(host)


async def poll(engine: Any) -> ws.PollWorkflowTaskQueueResponse:
    task = engine.host.info.workflow_task
    return await record_workflow_task_started(
        engine,
        RecordWorkflowTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=engine.host.info.run_id,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            request_id="poll",
            poll=ws.PollWorkflowTaskQueueRequest(task_queue=TaskQueue(name=QUEUE), identity="worker"),
        ),
    )


async def poll_activity(engine: Any, activity_id: str = "a") -> ws.PollActivityTaskQueueResponse:
    item = engine.host.activity(activity_id)
    return await record_activity_task_started(
        engine,
        RecordActivityTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=engine.host.info.run_id,
            scheduled_event_id=item.scheduled_event_id,
            attempt=item.attempt,
            request_id="poll",
            poll=ws.PollActivityTaskQueueRequest(task_queue=TaskQueue(name=QUEUE), identity="worker"),
        ),
    )


async def complete(engine: Any, token: bytes, *commands: Any, **fields: Any) -> ws.RespondWorkflowTaskCompletedResponse:
    request = ws.RespondWorkflowTaskCompletedRequest(task_token=token, commands=commands, identity="worker", **fields)
    return await respond_workflow_task_completed(engine, request)


def signal(draft: Draft) -> None:
    add_event(draft, WorkflowExecutionSignaledEventAttributes(signal_name="s"))
    schedule_workflow_task(draft)


async def test_one_activity_from_poll_to_poll(engine: Any) -> None:
    task = await poll(engine)
    await complete(engine, task.task_token, schedule_activity(input=payloads("in")))
    activity = await poll_activity(engine)
    assert activity.input == payloads("in")
    await record_activity_task_heartbeat(
        engine, ws.RecordActivityTaskHeartbeatRequest(task_token=activity.task_token, details=payloads("half"))
    )
    await respond_activity_task_completed(
        engine,
        ws.RespondActivityTaskCompletedRequest(task_token=activity.task_token, result=payloads("out"), identity="w"),
    )
    task = await poll(engine)
    assert task.history.events[-3].activity_task_completed_event_attributes.result == payloads("out")
    await complete(engine, task.task_token, complete_workflow())
    assert engine.host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"


async def test_a_failed_attempt_and_every_call_by_id(engine: Any) -> None:
    task = await poll(engine)
    await complete(
        engine, task.task_token, *(schedule_activity(name) for name in "abc"), force_create_new_workflow_task=True
    )
    where = {"namespace": NAMESPACE, "workflow_id": WORKFLOW_ID, "identity": "w"}
    activity = await poll_activity(engine)
    await respond_activity_task_failed(
        engine,
        ws.RespondActivityTaskFailedRequest(task_token=activity.task_token, failure=Failure(message="x")),
    )
    assert engine.host.activity("a").attempt == 2
    await respond_activity_task_completed_by_id(
        engine, ws.RespondActivityTaskCompletedByIdRequest(activity_id="a", result=payloads("r"), **where)
    )
    await poll_activity(engine, "b")
    beat = ws.RecordActivityTaskHeartbeatByIdRequest(activity_id="b", details=payloads("d"), **where)
    assert not (await record_activity_task_heartbeat_by_id(engine, beat)).cancel_requested
    failed = ws.RespondActivityTaskFailedByIdRequest(activity_id="b", failure=Failure(message="x"), **where)
    await respond_activity_task_failed_by_id(engine, failed)
    assert engine.host.activity("b").heartbeat_details == payloads("d")
    with pytest.raises(NotFound):
        await respond_activity_task_failed_by_id(engine, failed)
    await poll_activity(engine, "c")
    canceled = ws.RespondActivityTaskCanceledByIdRequest(activity_id="c", **where)
    with pytest.raises(InvalidArgument, match="without activity being request canceled first"):
        await respond_activity_task_canceled_by_id(engine, canceled)
    task = await poll(engine)
    await complete(engine, task.task_token, cancel_activity(engine.host.activity("c").scheduled_event_id))
    await respond_activity_task_canceled_by_id(engine, canceled)
    assert not {"a", "c"} & set(engine.host.state.activity_ids)
    with pytest.raises(InvalidArgument, match="is not set on request"):
        await respond_activity_task_canceled_by_id(engine, ws.RespondActivityTaskCanceledByIdRequest(**where))


async def test_a_canceled_activity_answers_by_token(engine: Any) -> None:
    task = await poll(engine)
    await complete(engine, task.task_token, schedule_activity(), force_create_new_workflow_task=True)
    activity = await poll_activity(engine)
    task = await poll(engine)
    await complete(engine, task.task_token, cancel_activity(5))
    await respond_activity_task_canceled(
        engine, ws.RespondActivityTaskCanceledRequest(task_token=activity.task_token, details=payloads("bye"))
    )
    assert engine.host.attributes("activity_task_canceled").details == payloads("bye")


async def test_bad_commands_fail_the_task_and_say_why(engine: Any) -> None:
    task = await poll(engine)
    with pytest.raises(
        InvalidArgument, match=r"^BadSearchAttributes: .* no mapping defined for search attribute Nope$"
    ):
        await complete(engine, task.task_token, upsert(Nope=b"1"))
    assert engine.host.types()[-1] == "WORKFLOW_TASK_FAILED"
    task = await poll(engine)
    await complete(engine, task.task_token, upsert(Word=b'"x"'))
    assert "Word" in engine.host.info.search_attributes


async def test_a_worker_that_fails_its_task(engine: Any) -> None:
    task = await poll(engine)
    await respond_workflow_task_failed(
        engine, ws.RespondWorkflowTaskFailedRequest(task_token=task.task_token, failure=Failure(message="x"))
    )
    assert engine.host.attributes("workflow_task_failed").failure.message == "x"


@pytest.mark.parametrize("token", [b"", b"junk", b'{"namespace":"x"}'])
async def test_damaged_tokens_are_refused(engine: Any, token: bytes) -> None:
    with pytest.raises(InvalidArgument):
        await complete(engine, token)
    with pytest.raises(InvalidArgument):
        await respond_activity_task_completed(engine, ws.RespondActivityTaskCompletedRequest(task_token=token))


async def test_the_next_task_and_eager_activities_come_with_the_answer(engine: Any) -> None:
    task = await poll(engine)
    engine.host.change(signal)
    response = await complete(
        engine,
        task.task_token,
        schedule_activity(request_eager_execution=True, input=payloads("in")),
        return_new_workflow_task=True,
    )
    assert [activity.activity_id for activity in response.activity_tasks] == ["a"]
    assert response.activity_tasks[0].input == payloads("in")
    assert response.workflow_task.previous_started_event_id == 3
    assert [event.event_id for event in response.workflow_task.history.events] == [4, 5, 6, 7, 8]
    await complete(engine, response.workflow_task.task_token)


async def test_waiting_queries_go_out_with_the_task_and_are_answered(engine: Any) -> None:
    queries = engine.registry(engine.host.info.run_id).queries
    first, answer = queries.buffer(WorkflowQuery(query_type="q"))
    second, other = queries.buffer(WorkflowQuery(query_type="p"))
    task = await poll(engine)
    assert {key: query.query_type for key, query in task.queries.items()} == {first: "q", second: "p"}
    result = WorkflowQueryResult(result_type=QueryResultType.QUERY_RESULT_TYPE_ANSWERED, answer=payloads("yes"))
    await complete(engine, task.task_token, query_results={first: result})
    assert (await answer) == result
    with pytest.raises(Unblocked):
        await other


async def test_a_query_answer_over_the_limit_is_a_failure(engine: Any) -> None:
    engine.config = HistoryConfig(blob_limit=10)
    query_id, answer = engine.registry(engine.host.info.run_id).queries.buffer(WorkflowQuery(query_type="q"))
    task = await poll(engine)
    result = WorkflowQueryResult(result_type=QueryResultType.QUERY_RESULT_TYPE_ANSWERED, answer=payloads("x" * 100))
    await complete(engine, task.task_token, query_results={query_id: result})
    assert (await answer).result_type == QueryResultType.QUERY_RESULT_TYPE_FAILED


async def test_a_long_history_comes_in_pages(engine: Any) -> None:
    task = await poll(engine)
    await complete(
        engine,
        task.task_token,
        *(marker(str(number)) for number in range(PAGE_EVENTS)),
        start_timer(),
        force_create_new_workflow_task=True,
    )
    task = await poll(engine)
    assert len(task.history.events) == PAGE_EVENTS
    token = decode_history_token(task.next_page_token)
    assert (token.first_event_id, token.last_event_id) == (PAGE_EVENTS + 1, len(engine.host.history) + 1)
    query = await query_task(
        engine, namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=WORKFLOW_ID), sticky=False
    )
    assert len(query.history.events) == PAGE_EVENTS
    assert query.next_page_token == task.next_page_token


async def test_a_query_task_needs_no_token(engine: Any) -> None:
    task = await poll(engine)
    await complete(engine, task.task_token)
    execution = WorkflowExecution(workflow_id=WORKFLOW_ID)
    answer = await query_task(engine, namespace=NAMESPACE, execution=execution, sticky=False)
    assert (answer.workflow_type.name, answer.previous_started_event_id) == ("Flow", 3)
    assert [event.event_id for event in answer.history.events] == [1, 2, 3, 4]
    assert not answer.task_token
    cached = await query_task(engine, namespace=NAMESPACE, execution=execution, sticky=True)
    assert not cached.history.events


async def test_leaving_a_sticky_queue(engine: Any) -> None:
    engine.host.respond(engine.host.take(), sticky="sticky")
    request = ws.ResetStickyTaskQueueRequest(namespace=NAMESPACE, execution=WorkflowExecution(workflow_id=WORKFLOW_ID))
    await reset_sticky_task_queue(engine, request)
    assert engine.host.info.sticky_queue == ""
    engine.host.change(signal)
    engine.host.turn(complete_workflow())
    with pytest.raises(NotFound, match="workflow execution already completed"):
        await reset_sticky_task_queue(engine, request)
