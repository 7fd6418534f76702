"""One batch, from where it stands to its end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import timedelta

import msgspec
from temporalio.api.common.v1 import WorkflowExecution

from common.archetypes import ACTIVITY, Archetype
from common.clock import Clock
from common.contracts.batches import FAILURES_KEPT, ON_ACTIVITIES, BatchFailure, BatchRecord
from common.contracts.visibility import ListPage, VisibilityClient
from common.errors import (
    Aborted,
    DeadlineExceeded,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    TemporalError,
    Unavailable,
)
from history.namespaces import NamespaceRegistry
from worker.batches.operations import OPEN_ONLY, Operations
from worker.batches.pace import Pace
from worker.batches.store import BatchStore, Taken

log = logging.getLogger(__name__)

PAGE = 200
AT_A_TIME = 5
PER_SECOND = 50.0
"""At most, whatever the request asks for; as upstream's worker.batcherRPS."""
SAVE_EVERY = timedelta(seconds=1)
ATTEMPTS = 50
"""Of one execution while History refuses for the moment; then it counts as failed."""
FIRST_BACKOFF = timedelta(milliseconds=50)
LONGEST_BACKOFF = timedelta(seconds=5)
TEMPORARY = (Unavailable, ResourceExhausted, DeadlineExceeded, Aborted)
OPEN = "ExecutionStatus='Running' OR ExecutionStatus='Paused'"


class BatchRunner:
    """Makes runs of batches; holds no state of any."""

    def __init__(
        self,
        *,
        store: BatchStore,
        operations: Operations,
        visibility: VisibilityClient,
        namespaces: NamespaceRegistry,
        clock: Clock,
        host: str,
    ) -> None:
        self._store = store
        self._operations = operations
        self._visibility = visibility
        self._namespaces = namespaces
        self._clock = clock
        self._host = host

    async def run(self, batch: BatchRecord) -> None:
        """Takes the batch and ends when it is closed, whoever closed it, or was taken by another host. Raises what the
        database and the list refuse with for the moment: the batch is open still, and goes on when run again."""
        try:
            run = _Run(batch=await self._take(batch), clock=self._clock)
            problem = await self._work_off(run)
            await self._close(run, problem)
        except Taken:
            log.info("batch %s of %s was taken by another host or stopped", batch.job_id, batch.namespace)

    async def _take(self, batch: BatchRecord) -> BatchRecord:
        taken = msgspec.structs.replace(
            batch,
            generation=batch.generation + 1,
            owner=self._host,
            completed=batch.page_completed,
            failed=batch.page_failed,
            failures=batch.failures[: batch.page_failures],
        )
        await self._store.save(taken, expected=batch.generation)
        return taken

    async def _work_off(self, run: _Run) -> str:
        """Why the batch failed; "" when everything was tried."""
        try:
            if run.batch.total is None:
                run.batch.total = await self._count(run.batch)
            saving = asyncio.create_task(self._keep_saving(run), name=f"progress of batch {run.batch.job_id}")
            working = asyncio.create_task(self._all_pages(run), name=f"batch {run.batch.job_id}")
            await _first_of(working, saving)
        except InvalidArgument as error:
            return error.message
        return ""

    async def _all_pages(self, run: _Run) -> None:
        if not run.batch.request.visibility_query:
            await self._page(run, explicit(run.batch))
            return
        while True:
            found = await self._list(run.batch)
            await self._page(run, [info.execution for info in found.executions])
            run.turn_page(found.next_page_token)
            if not found.next_page_token:
                return

    async def _page(self, run: _Run, executions: list[WorkflowExecution]) -> None:
        """Every execution of the page, a few at a time."""
        remaining = iter(executions)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_A_TIME, len(executions))):
                group.create_task(self._some(run, remaining))

    async def _some(self, run: _Run, remaining: Iterator[WorkflowExecution]) -> None:
        for execution in remaining:
            try:
                await self._operate(run, execution)
            except NotFound:
                run.batch.completed += 1  # gone, or closed: there is nothing left to do
            except TemporalError as error:
                run.count_failure(execution, error.message)
            except Exception as error:
                log.exception("batch %s on %s", run.batch.job_id, execution.workflow_id)
                run.count_failure(execution, repr(error))
            else:
                run.batch.completed += 1

    async def _operate(self, run: _Run, execution: WorkflowExecution) -> None:
        delay = FIRST_BACKOFF
        for _ in range(ATTEMPTS - 1):
            await run.pace.wait()
            try:
                await self._operations.operate(run.batch, execution)
                return
            except TEMPORARY:
                await self._clock.sleep(delay)
                delay = min(delay * 2, LONGEST_BACKOFF)
        await self._operations.operate(run.batch, execution)

    async def _keep_saving(self, run: _Run) -> None:
        """Until cancelled, or by Taken when the batch is no longer ours."""
        while True:
            await self._clock.sleep(SAVE_EVERY)
            await self._store.save(run.batch, expected=run.batch.generation)

    async def _close(self, run: _Run, problem: str) -> None:
        run.batch.state = "Failed" if problem else "Completed"
        run.batch.problem = problem
        run.batch.closed_at = self._clock.now()
        await self._store.save(run.batch, expected=run.batch.generation)
        log.info("batch %s of %s: %s", run.batch.job_id, run.batch.namespace, run.batch.state)

    async def _count(self, batch: BatchRecord) -> int:
        if not batch.request.visibility_query:
            return len(explicit(batch))
        counted = await self._visibility.count_workflow_executions(
            namespace=batch.namespace,
            query=_query(batch),
            custom_attributes=await self._attributes(batch),
            archetype=_archetype(batch),
        )
        return counted.count

    async def _list(self, batch: BatchRecord) -> ListPage:
        return await self._visibility.list_workflow_executions(
            namespace=batch.namespace,
            query=_query(batch),
            page_size=PAGE,
            next_page_token=batch.page_token,
            custom_attributes=await self._attributes(batch),
            archetype=_archetype(batch),
        )

    async def _attributes(self, batch: BatchRecord) -> dict[str, str]:
        return dict((await self._namespaces.get(batch.namespace)).search_attributes)


class _Run:
    """A batch while it runs here: its record, changed in place and saved now and then, and its pace."""

    def __init__(self, *, batch: BatchRecord, clock: Clock) -> None:
        self.batch = batch
        wanted = batch.request.max_operations_per_second
        self.pace = Pace(per_second=min(wanted, PER_SECOND) if wanted > 0 else PER_SECOND, clock=clock)

    def count_failure(self, execution: WorkflowExecution, message: str) -> None:
        self.batch.failed += 1
        if len(self.batch.failures) < FAILURES_KEPT:
            failure = BatchFailure(workflow_id=execution.workflow_id, run_id=execution.run_id, message=message)
            self.batch.failures.append(failure)

    def turn_page(self, token: bytes) -> None:
        """From here on, a restart goes on behind what is done."""
        self.batch.page_token = token
        self.batch.page_completed, self.batch.page_failed = self.batch.completed, self.batch.failed
        self.batch.page_failures = len(self.batch.failures)


def explicit(batch: BatchRecord) -> list[WorkflowExecution]:
    """The executions that the request names itself; an activity's id is where a workflow's is."""
    named = [
        WorkflowExecution(workflow_id=target.business_id, run_id=target.run_id)
        for target in batch.request.target_executions
    ]
    return named or list(batch.request.executions)


def _archetype(batch: BatchRecord) -> Archetype:
    return ACTIVITY if batch.operation in ON_ACTIVITIES else ""


def _query(batch: BatchRecord) -> str:
    query = batch.request.visibility_query
    return f"({query}) AND ({OPEN})" if batch.operation in OPEN_ONLY else query


async def _first_of(working: asyncio.Task[None], saving: asyncio.Task[None]) -> None:
    """The end of the work; raises what either raised, and leaves neither behind."""
    try:
        await asyncio.wait({working, saving}, return_when=asyncio.FIRST_COMPLETED)
        if saving.done():
            saving.result()
        working.result()
    finally:
        for task in (working, saving):
            task.cancel()
        await asyncio.wait({working, saving})
