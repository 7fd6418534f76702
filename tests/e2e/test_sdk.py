"""A workflow's whole life with the stock Python SDK."""

from __future__ import annotations

import uuid

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.worker import Worker

from tests.e2e import workflows

pytestmark = pytest.mark.usefixtures("worker")


def new_id() -> str:
    return f"wf-{uuid.uuid4().hex}"


async def test_an_activity_completes(client: Client, queue: str) -> None:
    result = await client.execute_workflow(workflows.Greet.run, "Ada", id=new_id(), task_queue=queue)
    assert result == "Hello, Ada!"


async def test_activities_are_retried_and_resume_from_their_heartbeat(client: Client, queue: str) -> None:
    assert await client.execute_workflow(workflows.Retries.run, id=new_id(), task_queue=queue) == [3, 42]


async def test_a_failure_keeps_its_type_message_and_details(client: Client, queue: str) -> None:
    with pytest.raises(WorkflowFailureError) as caught:
        await client.execute_workflow(workflows.Failing.run, id=new_id(), task_queue=queue)
    activity = caught.value.cause
    assert isinstance(activity, ActivityError)
    assert activity.activity_type == "fail_for_good"
    cause = activity.cause
    assert isinstance(cause, ApplicationError)
    assert (cause.message, cause.type, cause.non_retryable) == ("bad input", "Validation", True)
    assert cause.details == ({"field": "age"},)


async def test_signals_timer_and_queries(client: Client, queue: str) -> None:
    handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
    for word in ("one", "two", "three"):
        await handle.signal(workflows.Conversation.say, word)
    assert await handle.query(workflows.Conversation.words) == ["one", "two", "three"]
    await handle.signal(workflows.Conversation.end)
    assert await handle.result() == ["one", "two", "three"]
    assert await handle.query(workflows.Conversation.words) == ["one", "two", "three"]


async def test_signal_with_start_starts_once(client: Client, queue: str) -> None:
    workflow_id = new_id()
    for word in ("one", "two"):
        handle = await client.start_workflow(
            workflows.Conversation.run, id=workflow_id, task_queue=queue, start_signal="say", start_signal_args=[word]
        )
    await handle.signal(workflows.Conversation.end)
    assert await handle.result() == ["one", "two"]


async def test_cancellation_reaches_the_activity_and_ends_the_workflow_as_cancelled(client: Client, queue: str) -> None:
    handle = await client.start_workflow(workflows.Cancellable.run, id=new_id(), task_queue=queue)
    async for event in handle.fetch_history_events(wait_new_event=True):
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
            break
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, CancelledError)
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_continue_as_new_keeps_the_chain(client: Client, queue: str) -> None:
    handle = await client.start_workflow(workflows.CountDown.run, args=[3], id=new_id(), task_queue=queue)
    assert await handle.result() == 4
    first = client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    assert (await first.describe()).status == WorkflowExecutionStatus.CONTINUED_AS_NEW
    last = await client.get_workflow_handle(handle.id).describe()
    assert last.status == WorkflowExecutionStatus.COMPLETED
    assert last.raw_description.workflow_execution_info.first_run_id == handle.first_execution_run_id


async def test_terminate(client: Client, queue: str) -> None:
    handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
    await handle.terminate(reason="enough")
    with pytest.raises(WorkflowFailureError, match="Workflow execution failed") as caught:
        await handle.result()
    assert "enough" in str(caught.value.cause)


async def test_what_was_started_is_listed_and_counted(client: Client, queue: str, worker: Worker) -> None:
    del worker
    workflow_id = new_id()
    await client.execute_workflow(workflows.Greet.run, "Bo", id=workflow_id, task_queue=queue)
    query = f"WorkflowId = '{workflow_id}' AND ExecutionStatus = 'Completed'"
    handle = await client.start_workflow(workflows.Greet.run, "after it", id=new_id(), task_queue=queue)
    await handle.result()
    found = [execution.id async for execution in client.list_workflows(query)]
    while not found:  # the read model may lag behind the result
        found = [execution.id async for execution in client.list_workflows(query)]
    assert found == [workflow_id]
    assert (await client.count_workflows(query)).count == 1


async def test_a_sticky_worker_that_goes_leaves_its_runs_to_the_next(client: Client) -> None:
    from tests.e2e.conftest import make_worker

    queue = f"queue-{uuid.uuid4().hex[:8]}"
    async with make_worker(client, queue):
        handle = await client.start_workflow(workflows.Conversation.run, id=new_id(), task_queue=queue)
        await handle.signal(workflows.Conversation.say, "first")
        assert await handle.query(workflows.Conversation.words) == ["first"]
    async with make_worker(client, queue):
        await handle.signal(workflows.Conversation.say, "second")
        assert await handle.query(workflows.Conversation.words) == ["first", "second"]
        await handle.signal(workflows.Conversation.end)
        assert await handle.result() == ["first", "second"]
    events = [event.event_type async for event in handle.fetch_history_events()]
    assert EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT not in events
