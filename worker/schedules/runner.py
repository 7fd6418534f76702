"""Does what a schedule has decided on: starts runs, cancels and terminates them, and records what came of it.

A crash at any point loses nothing: a decision is saved before it is carried out, and carrying it out again asks History the
same with the same ids.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from uuid import UUID, uuid5

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    RequestCancelWorkflowExecutionRequest,
    TerminateWorkflowExecutionRequest,
)

from common.clock import Clock
from common.contracts.history import HistoryClient
from common.contracts.schedules import RunningRun, ScheduleRecord, Starting
from common.errors import (
    Aborted,
    DeadlineExceeded,
    NotFound,
    ResourceExhausted,
    TemporalError,
    Unavailable,
)
from history.config import HistoryConfig
from worker.schedules import outcomes
from worker.schedules.advance import advance, must_ask
from worker.schedules.starting import identity_of, start_request
from worker.schedules.state import compiled, expires_at, next_slot
from worker.schedules.store import ScheduleStore

log = logging.getLogger(__name__)

TEMPORARY = (Unavailable, ResourceExhausted, DeadlineExceeded, Aborted)
FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(seconds=60)
AT_A_TIME = 20
"""Starts of one schedule that are under way at once."""


class _Later(Exception):
    """History refuses for the moment."""


class ScheduleRunner:
    """Holds no state of any schedule."""

    def __init__(self, *, store: ScheduleStore, history: HistoryClient, clock: Clock, config: HistoryConfig) -> None:
        self._store = store
        self._history = history
        self._clock = clock
        self._config = config

    async def run(self, *, namespace: str, schedule_id: str) -> None:
        """Sees to everything of one schedule that is due; returns when it has nothing more to do now. Raises what the
        database refuses with for the moment; a schedule that was deleted is nothing to be done."""
        try:
            while True:
                record = await self._advance(namespace, schedule_id)
                if must_ask(record) and (record.retry_at is None or record.retry_at <= self._clock.now()):
                    record = await self._act(record)
                if record.next_at is None or record.next_at > self._clock.now():
                    return
                if await self._expired(record):
                    return
        except NotFound:
            pass

    async def _advance(self, namespace: str, schedule_id: str) -> ScheduleRecord:
        now = self._clock.now()
        return await self._store.change(
            lambda record: advance(record, now=now), namespace=namespace, schedule_id=schedule_id
        )

    async def _expired(self, record: ScheduleRecord) -> bool:
        now = self._clock.now()
        return await self._store.expire(
            namespace=record.namespace, schedule_id=record.schedule_id, is_over=lambda found: _is_over(found, now)
        )

    async def _act(self, record: ScheduleRecord) -> ScheduleRecord:
        gate = asyncio.Semaphore(AT_A_TIME)
        outcome = _Outcome()

        async def start(starting: Starting) -> None:
            async with gate:
                await self._start(record, starting, outcome)

        # One after the other would let a schedule of many actions start them late; ends are few.
        await asyncio.gather(*map(start, record.starting))
        for run in record.running:
            if run.asked and not run.is_asked:
                await self._end(record, run, outcome)
        now = self._clock.now()
        return await self._store.change(
            lambda found: outcome.record_in(found, now=now),
            namespace=record.namespace,
            schedule_id=record.schedule_id,
            incarnation=record.incarnation,
        )

    async def _start(self, record: ScheduleRecord, starting: Starting, outcome: _Outcome) -> None:
        number = starting.start.number
        try:
            request = start_request(record, starting, config=self._config)
            response = await self._history.start_workflow_execution(request)
        except TEMPORARY as error:
            if self._clock.now() < starting.give_up_at:
                outcome.put_off(starting.attempt)
                outcome.later.add(number)
                return
            log.warning("schedule %s of %s gave a start up: %s", record.schedule_id, record.namespace, error)
            outcome.failed.append(number)
        except TemporalError as error:
            log.warning("schedule %s of %s could not start: %s", record.schedule_id, record.namespace, error)
            outcome.failed.append(number)
        else:
            outcome.started[number] = (response.run_id, self._clock.now())

    async def _end(self, record: ScheduleRecord, run: RunningRun, outcome: _Outcome) -> None:
        """A request only: the run's end is heard of as any other."""
        try:
            await (self._terminate(record, run) if run.asked == "terminate" else self._cancel(record, run))
        except TEMPORARY:
            outcome.put_off(0)
        except NotFound:
            outcome.asked[run.number] = run.asked  # it has ended
        except TemporalError as error:
            log.warning("schedule %s of %s could not end a run: %s", record.schedule_id, record.namespace, error)
            outcome.asked[run.number] = run.asked
        else:
            outcome.asked[run.number] = run.asked

    async def _cancel(self, record: ScheduleRecord, run: RunningRun) -> None:
        await self._history.request_cancel_workflow_execution(
            RequestCancelWorkflowExecutionRequest(
                namespace=record.namespace,
                workflow_execution=WorkflowExecution(workflow_id=run.workflow_id),
                first_execution_run_id=run.run_id,
                request_id=str(uuid5(UUID(record.incarnation), f"cancel {run.number}")),
                identity=identity_of(record),
                reason="cancelled by schedule overlap policy",
            )
        )

    async def _terminate(self, record: ScheduleRecord, run: RunningRun) -> None:
        await self._history.terminate_workflow_execution(
            TerminateWorkflowExecutionRequest(
                namespace=record.namespace,
                workflow_execution=WorkflowExecution(workflow_id=run.workflow_id),
                first_execution_run_id=run.run_id,
                identity=identity_of(record),
                reason="terminated by schedule overlap policy",
            )
        )


class _Outcome:
    """What came of one round, to be put into the schedule's newest state."""

    def __init__(self) -> None:
        self.started: dict[int, tuple[str, datetime]] = {}
        self.failed: list[int] = []
        self.later: set[int] = set()
        self.asked: dict[int, str] = {}
        self._backoff: timedelta | None = None

    def put_off(self, attempt: int) -> None:
        backoff = min(FIRST_BACKOFF * 2 ** min(attempt, 10), LONGEST_BACKOFF)
        self._backoff = backoff if self._backoff is None else min(self._backoff, backoff)

    def record_in(self, record: ScheduleRecord, *, now: datetime) -> None:
        for number, (run_id, at) in sorted(self.started.items()):
            outcomes.started(record, number, run_id=run_id, now=at)
        for number in self.failed:
            outcomes.not_started(record, number)
        for starting in record.starting:
            starting.attempt += starting.start.number in self.later
        for run in record.running:
            if self.asked.get(run.number) == run.asked != "":
                run.is_asked = True
        record.retry_at = None if self._backoff is None else now + self._backoff
        advance(record, now=now)


def _is_over(record: ScheduleRecord, now: datetime) -> bool:
    slot = next_slot(compiled(record), max(now, record.processed_until))
    at = expires_at(record, wake_at=None if slot is None else slot.actual)
    return at is not None and at <= now
