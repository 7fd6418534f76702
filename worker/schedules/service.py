"""What every role asks schedules through: the `ScheduleClient` over the table."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from temporalio.api.schedule.v1 import Schedule
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.contracts.schedules import RunClosed, ScheduleRecord
from common.errors import InvalidArgument, NotFound, WorkflowExecutionAlreadyStarted
from common.protos import from_timestamp, timestamp
from worker.schedules import changes
from worker.schedules.advance import advance
from worker.schedules.messages import description, list_entry
from worker.schedules.outcomes import closed as record_closed
from worker.schedules.spec import TooManyExcluded, canonical
from worker.schedules.state import compiled
from worker.schedules.store import ScheduleStore
from worker.schedules.store_lists import ScheduleLists

TIMES_LISTED = 1_000
SETTLING = timedelta(seconds=2)
"""How long a description waits for what is due."""
LOOK_AGAIN = timedelta(milliseconds=50)
"""For what another process did meanwhile."""


class ScheduleService:
    """See `common.contracts.schedules.ScheduleClient`."""

    def __init__(self, *, store: ScheduleStore, clock: Clock) -> None:
        self._store = store
        self._lists = ScheduleLists(database=store.database)
        self._clock = clock

    def canonicalize(self, schedule: Schedule) -> None:
        try:
            schedule.spec.CopyFrom(canonical(schedule.spec))
        except ValueError as error:
            raise InvalidArgument(f"Invalid schedule spec: {error}") from error

    async def create(self, request: ws.CreateScheduleRequest, *, namespace_id: str) -> ScheduleRecord:
        record = changes.made(request, namespace_id=namespace_id, now=self._clock.now())
        if await self._store.insert(record):
            return record
        existing = await self._store.find(namespace=request.namespace, schedule_id=request.schedule_id)
        if existing is not None and request.request_id in existing.request_ids:
            return existing
        raise WorkflowExecutionAlreadyStarted(
            f'schedule "{request.schedule_id}" is already registered', start_request_id="", run_id=""
        )

    async def describe(self, *, namespace: str, schedule_id: str) -> ws.DescribeScheduleResponse:
        record = await self._settled(namespace, schedule_id)
        return description(record, now=self._clock.now())

    async def _settled(self, namespace: str, schedule_id: str) -> ScheduleRecord:
        """What is due at this moment is shown as done, as upstream's consistent query shows it, if it does not take long."""
        until = self._clock.now() + SETTLING
        while True:
            record = await self._store.get(namespace=namespace, schedule_id=schedule_id)
            now = self._clock.now()
            if record.next_at is None or record.next_at > now or now >= until:
                return record
            await self._store.saved(clock=self._clock, until=min(now + LOOK_AGAIN, until))

    async def update(self, request: ws.UpdateScheduleRequest) -> None:
        now = self._clock.now()
        await self._store.change(
            lambda record: changes.update(record, request, now=now),
            namespace=request.namespace,
            schedule_id=request.schedule_id,
        )

    async def patch(self, request: ws.PatchScheduleRequest) -> None:
        now = self._clock.now()
        await self._store.change(
            lambda record: changes.patch(record, request.patch, request_id=request.request_id, now=now),
            namespace=request.namespace,
            schedule_id=request.schedule_id,
        )

    async def delete(self, *, namespace: str, schedule_id: str) -> None:
        await self._store.delete(namespace=namespace, schedule_id=schedule_id)

    async def matching_times(
        self, request: ws.ListScheduleMatchingTimesRequest
    ) -> ws.ListScheduleMatchingTimesResponse:
        record = await self._store.get(namespace=request.namespace, schedule_id=request.schedule_id)
        if not request.HasField("start_time") or not request.HasField("end_time"):
            raise InvalidArgument("missing or invalid query")
        after, until = from_timestamp(request.start_time), from_timestamp(request.end_time)
        try:
            times = list(compiled(record).times(after=after, until=until, limit=TIMES_LISTED))
        except TooManyExcluded:
            raise InvalidArgument(
                "the schedule calendar specification has too many exclusions. Please modify the specification."
            ) from None
        return ws.ListScheduleMatchingTimesResponse(start_time=map(timestamp, times))

    async def list_schedules(
        self, request: ws.ListSchedulesRequest, *, custom_attributes: Mapping[str, str]
    ) -> ws.ListSchedulesResponse:
        found = await self._lists.page(
            namespace=request.namespace,
            query=request.query,
            custom_attributes=custom_attributes,
            limit=request.maximum_page_size,
            token=request.next_page_token,
        )
        now = self._clock.now()
        entries = [list_entry(record, now=now) for record in found.schedules]
        return ws.ListSchedulesResponse(schedules=entries, next_page_token=found.next_page_token)

    async def count(self, *, namespace: str, query: str, custom_attributes: Mapping[str, str]) -> int:
        return await self._lists.count(namespace=namespace, query=query, custom_attributes=custom_attributes)

    async def delete_all(self, *, namespace: str) -> None:
        await self._store.delete_all(namespace=namespace)

    async def run_closed(self, closed: RunClosed) -> None:
        now = self._clock.now()
        try:
            await self._store.change(
                lambda record: _close(record, closed, now=now),
                namespace=closed.namespace,
                schedule_id=closed.schedule_id,
                incarnation=closed.incarnation,
            )
        except NotFound:
            pass  # the schedule is gone, and nobody waits for the run


def _close(record: ScheduleRecord, closed: RunClosed, *, now: datetime) -> None:
    if record_closed(record, closed.number, closed.end):
        advance(record, now=now)
