"""Runs put straight into the tables: as many events as a test wants, with contents that a worker might send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.message import Message
from temporalio.api.common.v1 import ActivityType, Payload, Payloads, WorkflowType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import (
    ActivityTaskCompletedEventAttributes,
    ActivityTaskScheduledEventAttributes,
    ActivityTaskStartedEventAttributes,
    HistoryEvent,
    WorkflowExecutionStartedEventAttributes,
)

from common.contracts.visibility import VisibilityIntent
from common.database.opening import database_of
from common.protos import ATTRIBUTES_FIELD, EVENT_TYPE, timestamp
from common.records import Record
from history.config import HistoryConfig
from history.records import ExecutionInfo, TimerTask, TransferTask
from history.store import open_execution_store
from history.store.base import RunWrite, ShardWrite
from tests.contract.samples import info
from tests.databases import django_entry
from visibility.store import open_visibility_store

START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def run_id(number: int) -> str:
    return f"0195a0b0-0000-7000-8000-{number:012d}"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def json_payload(data: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=data.encode())


def payloads(*found: Payload) -> Payloads:
    return Payloads(payloads=found)


def failure(message: str, *, cause: Failure | None = None) -> Failure:
    made = Failure(message=message, stack_trace=f"at {message}", cause=cause)
    made.application_failure_info.type = message
    return made


def event(event_id: int, attributes: Message, *, seconds: float | None = None) -> HistoryEvent:
    kind = attributes.DESCRIPTOR.full_name
    made = HistoryEvent(
        event_id=event_id,
        event_type=EVENT_TYPE[kind],
        event_time=timestamp(at(event_id if seconds is None else seconds)),
        task_id=event_id,
    )
    getattr(made, ATTRIBUTES_FIELD[kind]).CopyFrom(attributes)
    return made


def started(text: str = "{}") -> HistoryEvent:
    return event(
        1,
        WorkflowExecutionStartedEventAttributes(
            workflow_type=WorkflowType(name="Order"), input=payloads(json_payload(text)), identity="client"
        ),
    )


def activities(number: int, *, first: int = 2, name: str = "pay") -> Iterable[HistoryEvent]:
    """Three events each."""
    for count in range(number):
        begin = first + 3 * count
        yield event(
            begin,
            ActivityTaskScheduledEventAttributes(activity_id=str(count), activity_type=ActivityType(name=name)),
        )
        yield event(begin + 1, ActivityTaskStartedEventAttributes(scheduled_event_id=begin, attempt=1))
        yield event(
            begin + 2,
            ActivityTaskCompletedEventAttributes(
                scheduled_event_id=begin, started_event_id=begin + 1, result=payloads(json_payload('"paid"'))
            ),
        )


def write(
    made: ExecutionInfo,
    events: Sequence[HistoryEvent],
    *,
    items: Sequence[tuple[str, str, Record]] = (),
) -> RunWrite:
    made.next_event_id = events[-1].event_id + 1 if events else 1
    made.history_size = sum(one.ByteSize() for one in events)
    return RunWrite(run_id=made.run_id, info=made, is_new=True, events=list(events), items=list(items))


def run(number: int, **more: Any) -> ExecutionInfo:
    return info(run_id(number), started_at=START, execution_time=START, **more)


def intent(made: ExecutionInfo, **more: Any) -> VisibilityIntent:
    return VisibilityIntent(
        task_id=1,
        namespace=made.namespace,
        workflow_id=made.workflow_id,
        run_id=made.run_id,
        workflow_type=made.workflow_type,
        task_queue=made.task_queue,
        status=made.status,
        start_time=made.started_at,
        close_time=made.closed_at,
        **more,
    )


def store(
    url: str,
    writes: Sequence[RunWrite],
    *,
    transfer_tasks: Sequence[TransferTask] = (),
    timer_tasks: Sequence[TimerTask] = (),
    intents: Sequence[VisibilityIntent] = (),
) -> None:
    """All of it in shard 1 of the database."""
    asyncio.run(_store(url, writes, list(transfer_tasks), list(timer_tasks), list(intents)))


async def _store(
    url: str,
    writes: Sequence[RunWrite],
    transfer_tasks: list[TransferTask],
    timer_tasks: list[TimerTask],
    intents: list[VisibilityIntent],
) -> None:
    database = database_of(django_entry(url))
    await database.start()
    history = open_execution_store(database, HistoryConfig())
    shard = await history.acquire_shard(shard_id=1, owner="here", now=START)
    for one in writes:
        await history.commit([ShardWrite(shard_id=1, range_id=shard.range_id, runs=[one])])
    await history.commit(
        [ShardWrite(shard_id=1, range_id=shard.range_id, transfer_tasks=transfer_tasks, timer_tasks=timer_tasks)]
    )
    known = {intent.run_id for intent in intents}
    shown = [intent(one.info) for one in writes if one.info is not None and one.run_id not in known]
    await open_visibility_store(database).apply([*shown, *intents])
    await database.stop()
