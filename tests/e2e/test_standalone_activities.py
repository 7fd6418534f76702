"""An activity without a workflow with the stock Python SDK: started, listed, run, waited for."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from temporalio.client import ActivityFailureError, Client
from temporalio.exceptions import CancelledError

from tests.e2e import workflows

pytestmark = pytest.mark.usefixtures("worker")


async def test_its_result_is_waited_for(client: Client, queue: str) -> None:
    activity_id = f"a-{uuid.uuid4().hex}"
    handle = await client.start_activity(
        workflows.greet, "Ada", id=activity_id, task_queue=queue, start_to_close_timeout=timedelta(seconds=30)
    )
    assert await handle.result() == "Hello, Ada!"
    described = await handle.describe()
    assert (described.activity_id, described.attempt) == (activity_id, 1)


async def test_it_is_canceled_before_a_worker_has_it(client: Client) -> None:
    handle = await client.start_activity(
        "nobody",
        id=f"a-{uuid.uuid4().hex}",
        task_queue=f"q-{uuid.uuid4().hex}",
        start_to_close_timeout=timedelta(seconds=30),
    )
    await handle.cancel()
    with pytest.raises(ActivityFailureError) as caught:
        await handle.result()
    assert isinstance(caught.value.cause, CancelledError)
