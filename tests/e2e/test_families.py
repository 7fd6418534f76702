"""Children, updates and resets with the stock Python SDK."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.e2e.family_workflows import Child, Counter, Parent


@pytest.fixture(autouse=True)
async def family_worker(client: Client, queue: str) -> AsyncIterator[Worker]:
    async with Worker(
        client,
        task_queue=queue,
        workflows=[Child, Counter, Parent],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ) as running:
        yield running


def new_id() -> str:
    return f"wf-{uuid.uuid4().hex}"


async def counter(client: Client, queue: str) -> WorkflowHandle[Counter, int]:
    return await client.start_workflow(Counter.run, id=new_id(), task_queue=queue)


async def event_types(handle: WorkflowHandle[Counter, int]) -> list[str]:
    return [
        EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") async for event in handle.fetch_history_events()
    ]


@pytest.mark.parametrize(
    ("mode", "result"),
    [("quick", "child quick"), ("fail", "ApplicationError Boom: boom"), ("terminate", "child wait")],
)
async def test_a_child_gives_its_result_or_failure(client: Client, queue: str, mode: str, result: str) -> None:
    assert await client.execute_workflow(Parent.run, mode, id=new_id(), task_queue=queue) == result


async def test_a_child_is_canceled_when_its_parent_ends(client: Client, queue: str) -> None:
    workflow_id = new_id()
    await client.execute_workflow(Parent.run, "request_cancel", id=workflow_id, task_queue=queue)
    child = client.get_workflow_handle(f"{workflow_id}-child")
    with pytest.raises(WorkflowFailureError):
        await child.result()
    assert (await child.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_updates_are_accepted_and_rejected(client: Client, queue: str) -> None:
    handle = await counter(client, queue)
    assert await handle.execute_update(Counter.add, 2, id="once") == 2
    assert await handle.execute_update(Counter.add, 2, id="once") == 2
    before = await event_types(handle)
    with pytest.raises(WorkflowUpdateFailedError, match="Workflow update failed"):
        await handle.execute_update(Counter.add, -1)
    assert await event_types(handle) == before
    pending = await handle.start_update(Counter.finish, wait_for_stage=WorkflowUpdateStage.ACCEPTED)
    await handle.signal(Counter.allow)
    assert await pending.result() == "finished"
    await handle.signal(Counter.end)
    assert await handle.result() == 2
    assert await handle.execute_update(Counter.add, 9, id="once") == 2


async def test_update_with_start(client: Client, queue: str) -> None:
    workflow_id = new_id()
    for total in (1, 2):
        start = WithStartWorkflowOperation(
            Counter.run,
            id=workflow_id,
            task_queue=queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        assert await client.execute_update_with_start_workflow(Counter.add, 1, start_workflow_operation=start) == total
    await client.get_workflow_handle(workflow_id).signal("end")


async def test_a_reset_workflow_gets_its_signals_and_updates_again(client: Client, queue: str) -> None:
    handle = await counter(client, queue)
    await handle.execute_update(Counter.add, 3, id="added")
    await handle.signal(Counter.bump, 4)
    await handle.execute_update(Counter.add, 0)
    answer = await client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            reason="again",
            request_id=new_id(),
            workflow_task_finish_event_id=4,
        )
    )
    again = client.get_workflow_handle_for(Counter.run, handle.id, run_id=answer.run_id)
    assert await again.execute_update(Counter.add, 100, id="added") == 3
    await again.signal(Counter.end)
    assert await again.result() == 7
    with pytest.raises(WorkflowFailureError):
        await client.get_workflow_handle(handle.id, run_id=handle.result_run_id).result(follow_runs=False)
