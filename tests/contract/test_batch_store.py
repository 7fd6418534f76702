"""What `common.contracts.batches.BatchClient` promises, on each database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest

from common.clock import ManualClock
from common.contracts.batches import BatchExists, BatchFailure, BatchPlace, BatchRecord
from common.database import Database
from common.errors import PersistenceError
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW
from worker.batches.store import BatchStore, Taken

CLOCK = ManualClock(NOW)


@pytest.fixture
def store(database: Database) -> BatchStore:
    return BatchStore(database=database, clock=CLOCK)


def batch(job_id: str, *, minute: int = 0, **more: Any) -> BatchRecord:
    request = StartBatchOperationRequest(namespace="default", job_id=job_id, visibility_query="A = 'x'", reason="why")
    request.termination_operation.identity = "me"
    fields = {"namespace": "default", "operation": "termination_operation", "identity": "me", **more}
    started_at = NOW + timedelta(minutes=minute)
    return BatchRecord(job_id=job_id, batch_id=f"id of {job_id}", request=request, started_at=started_at, **fields)


async def test_a_batch_is_kept_as_it_is(store: BatchStore) -> None:
    made = batch("j", page_token=b"\x00\xff", failures=[BatchFailure(workflow_id="w", message="it's <b>")], total=5)
    await store.start(made)
    assert await store.get(namespace="default", job_id="j") == made
    assert await store.get(namespace="default", job_id="other") is None
    assert await store.get(namespace="other", job_id="j") is None


async def test_a_job_id_is_taken_once(store: BatchStore) -> None:
    await store.start(batch("j"))
    await store.start(batch("j"))  # the same, when nobody heard whether it was done
    with pytest.raises(BatchExists) as taken:
        await store.start(msgspec.structs.replace(batch("j"), batch_id="another"))
    assert taken.value.existing.batch_id == "id of j"
    await store.start(batch("j", namespace="other"))


async def test_lists_are_newest_first_and_in_pages(store: BatchStore) -> None:
    for job_id, minute in (("a", 1), ("c", 2), ("b", 2), ("d", 3)):
        await store.start(batch(job_id, minute=minute))
    await store.start(batch("z", namespace="other"))
    first = await store.list_batches(namespace="default", after=None, limit=2)
    place = BatchPlace(started_at=first[-1].started_at, job_id=first[-1].job_id)
    rest = await store.list_batches(namespace="default", after=place, limit=9)
    assert [b.job_id for b in first] == ["d", "c"]
    assert [b.job_id for b in rest] == ["b", "a"]


async def test_a_host_that_lost_the_batch_writes_nothing(store: BatchStore) -> None:
    await store.start(batch("j"))
    await store.save(batch("j", generation=1, owner="first"), expected=0)
    await store.save(batch("j", generation=2, owner="second"), expected=1)
    with pytest.raises(Taken):
        await store.save(batch("j", generation=1, completed=7), expected=1)
    found = await store.get(namespace="default", job_id="j")
    assert found is not None
    assert (found.owner, found.completed) == ("second", 0)


async def test_stopping(store: BatchStore) -> None:
    changes: list[str] = []
    store.changed = lambda: changes.append("changed")
    await store.start(batch("j", generation=4))
    assert await store.count_running(namespace="default") == 1
    assert await store.stop(namespace="default", job_id="j", problem="enough")
    assert not await store.stop(namespace="default", job_id="j", problem="enough")
    assert not await store.stop(namespace="default", job_id="never", problem="enough")
    found = await store.get(namespace="default", job_id="j")
    assert found is not None
    assert (found.state, found.problem, found.closed_at) == ("Stopped", "enough", NOW)
    assert await store.count_running(namespace="default") == 0
    assert await store.running() == []
    assert changes == ["changed", "changed"]
    with pytest.raises(Taken):
        await store.save(batch("j", generation=4), expected=4)


async def test_forgetting(store: BatchStore) -> None:
    for job_id, hours in (("old", 1), ("new", 3)):
        await store.start(batch(job_id))
        closed = batch(job_id, state="Completed", closed_at=NOW + timedelta(hours=hours), generation=1)
        await store.save(closed, expected=0)
    await store.start(batch("running"))
    assert await store.delete_closed(namespace="default", until=NOW + timedelta(hours=2)) == 1
    assert {b.job_id for b in await store.list_batches(namespace="default", after=None, limit=9)} == {"new", "running"}
    assert await store.delete_closed(namespace="default", until=None) == 2


async def test_a_malformed_row_is_told(store: BatchStore, tamper: Tamper) -> None:
    await store.start(batch("j"))
    tamper("UPDATE batch_operations SET data = '{\"namespace\": 5}'")
    with pytest.raises(PersistenceError, match=r"batch_operations\[default/j\]"):
        await store.get(namespace="default", job_id="j")
