"""What the frontend and the admin ask of batches, and the record of one: an operation on many executions.

Upstream runs a batch as a workflow of its own; here it is a row that the worker role works off. What clients see of it is
the same: its states, its counts, one job id for each batch for as long as the namespace's retention keeps it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest

from common.errors import AlreadyExists
from common.records import Record

ON_ACTIVITIES = frozenset(
    ("cancel_activities_operation", "terminate_activities_operation", "delete_activities_operation")
)
"""Operations on activities that belong to no workflow; all others are on workflows."""

State = Literal["Running", "Completed", "Failed", "Stopped"]
RUNNING: State = "Running"
FAILURES_KEPT = 100
"""How many failures a batch names; all are counted."""


class BatchFailure(Record, kw_only=True):
    """One execution on which the operation did not succeed."""

    workflow_id: str
    run_id: str = ""
    message: str


class BatchRecord(Record, kw_only=True):
    """A batch, as its row holds it. Counts are of executions."""

    namespace: str
    job_id: str
    batch_id: str
    """Drawn for this batch; what upstream shows as the run id of a batch whose job id is taken."""
    request: StartBatchOperationRequest
    operation: str
    """The name of the request's operation: termination_operation, signal_operation, …"""
    identity: str = ""
    state: State = RUNNING
    started_at: datetime
    closed_at: datetime | None = None
    problem: str = ""
    """Why it failed, or why it was stopped and by whom."""

    generation: int = 0
    """Counts the worker hosts that took it; a write of an older one is refused."""
    owner: str = ""
    total: int | None = None
    """How many there are to do, as counted at the beginning; None before."""
    completed: int = 0
    failed: int = 0
    failures: list[BatchFailure] = field(default_factory=list)
    """The first `FAILURES_KEPT`."""

    # Where to go on after a restart: the page being worked on, and the counts before it.
    page_token: bytes = b""
    page_completed: int = 0
    page_failed: int = 0
    page_failures: int = 0
    """How many of `failures` are of earlier pages."""


class BatchPlace(Struct, kw_only=True, frozen=True):
    """A place in the order of lists: newest first."""

    started_at: datetime
    job_id: str


class BatchExists(AlreadyExists):
    """The job id is taken by another batch of the namespace."""

    def __init__(self, existing: BatchRecord) -> None:
        super().__init__(f"batch {existing.job_id} exists")
        self.existing = existing


class BatchClient(Protocol):
    async def start(self, record: BatchRecord) -> None:
        """Durable when this returns. Raises BatchExists."""
        ...

    async def get(self, *, namespace: str, job_id: str) -> BatchRecord | None: ...

    async def list_batches(self, *, namespace: str, after: BatchPlace | None, limit: int) -> list[BatchRecord]:
        """The newest first, from after a place."""
        ...

    async def count_running(self, *, namespace: str) -> int: ...

    async def stop(self, *, namespace: str, job_id: str, problem: str) -> bool:
        """What is done stays done, nothing more is begun. False when it does not run (any more)."""
        ...

    async def delete_closed(self, *, namespace: str, until: datetime | None) -> int:
        """Forget those that closed before then, or with None all, running ones too; how many."""
        ...
