"""A stock SDK client and worker for each test, on a queue of its own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.e2e.workflows import ACTIVITIES, WORKFLOWS


@pytest.fixture
def queue() -> str:
    return f"queue-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def client(live_server_address: str) -> Client:
    return await Client.connect(live_server_address)


@pytest.fixture
async def worker(client: Client, queue: str) -> AsyncIterator[Worker]:
    async with make_worker(client, queue) as running:
        yield running


def make_worker(client: Client, queue: str) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=ACTIVITIES,
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
