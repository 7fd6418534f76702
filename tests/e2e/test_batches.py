"""Batches of a stock client: to their end, and across a kill of the server in the middle, where nothing happens twice."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from temporalio.api.batch.v1 import BatchOperationSignal, BatchOperationTermination
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import BatchOperationState, EventType
from temporalio.api.workflowservice.v1 import (
    DescribeBatchOperationRequest,
    DescribeBatchOperationResponse,
    StartBatchOperationRequest,
)
from temporalio.client import Client, WorkflowExecutionStatus

from tests.conftest import StartServer
from tests.server_process import LiveServer

RUNNING = BatchOperationState.BATCH_OPERATION_STATE_RUNNING
COMPLETED = BatchOperationState.BATCH_OPERATION_STATE_COMPLETED
MANY = 150


async def start_many(client: Client, prefix: str, count: int) -> list[str]:
    ids = [f"{prefix}-{number}" for number in range(count)]
    await asyncio.gather(*(client.start_workflow("Wait", id=each, task_queue="nobody") for each in ids))
    return ids


async def start_batch(client: Client, **operation: object) -> str:
    job_id = uuid.uuid4().hex
    request = StartBatchOperationRequest(namespace="default", job_id=job_id, reason="tidy up", **operation)  # type: ignore[arg-type]
    await client.workflow_service.start_batch_operation(request)
    return job_id


async def describe(client: Client, job_id: str) -> DescribeBatchOperationResponse:
    asked = DescribeBatchOperationRequest(namespace="default", job_id=job_id)
    return await client.workflow_service.describe_batch_operation(asked)


async def finished(client: Client, job_id: str) -> DescribeBatchOperationResponse:
    while (found := await describe(client, job_id)).state == RUNNING:
        pass
    return found


@pytest.mark.timeout(120)
async def test_terminating_what_a_query_finds(client: Client) -> None:
    prefix = f"batch-{uuid.uuid4().hex[:8]}"
    ids = await start_many(client, prefix, 20)
    query = f"WorkflowId STARTS_WITH '{prefix}'"
    while (await client.count_workflows(query)).count < len(ids):
        pass
    job_id = await start_batch(client, visibility_query=query, termination_operation=BatchOperationTermination())
    done = await finished(client, job_id)
    assert (done.state, done.complete_operation_count, done.failure_operation_count) == (COMPLETED, 20, 0)
    for each in ids:
        assert (await client.get_workflow_handle(each).describe()).status == WorkflowExecutionStatus.TERMINATED


@pytest.mark.timeout(180)
async def test_a_batch_survives_its_server(start_server: StartServer) -> None:
    server: LiveServer = start_server()
    client = await Client.connect(server.address)
    ids = await start_many(client, "signalled", MANY)
    job_id = await start_batch(
        client,
        executions=[WorkflowExecution(workflow_id=each) for each in ids],
        signal_operation=BatchOperationSignal(signal="go", identity="me"),
    )
    while not (await describe(client, job_id)).complete_operation_count:
        pass
    server.kill()
    server.start()
    client = await Client.connect(server.address)
    done = await finished(client, job_id)
    assert (done.state, done.complete_operation_count, done.failure_operation_count) == (COMPLETED, MANY, 0)
    for each in ids:
        history = await client.get_workflow_handle(each).fetch_history()
        signals = [e for e in history.events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED]
        assert len(signals) == 1
