"""What History holds of a sample run of the read model: its first workflow task, and its end if it has one.

    sample_writes(intents, shards=…) -> shard's number → its part of a commit, without the range

For measuring with full tables. The events give the state again, as `manage.py verify` checks it; only what lists show of a
history's length and size is made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads, SearchAttributes, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue

from common.contracts.visibility import VisibilityIntent
from common.ids import shard_for
from common.protos import timestamp
from history.apply.fold import fold
from history.records import CurrentRun, ExecutionInfo
from history.store.base import CurrentRunWrite, RunWrite, ShardWrite
from history.store.writes import status_name

_GIVEN = Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=b'"' + b"x" * 64 + b'"')])


def sample_writes(intents: Sequence[VisibilityIntent], *, shards: int) -> dict[int, ShardWrite]:
    writes: dict[int, ShardWrite] = {}
    for intent in intents:
        shard_id = shard_for(namespace=intent.namespace, workflow_id=intent.workflow_id, shards=shards)
        write = writes.setdefault(shard_id, ShardWrite(shard_id=shard_id, range_id=0))
        events = list(_events(intent))
        info = fold(
            events, namespace=intent.namespace, workflow_id=intent.workflow_id, run_id=intent.run_id, shard_id=shard_id
        ).info
        write.runs.append(RunWrite(run_id=intent.run_id, info=info, is_new=True, events=events))
        write.current_runs.append(
            CurrentRunWrite(
                namespace=intent.namespace, workflow_id=intent.workflow_id, expected_run_id="", run=_current(info)
            )
        )
    return writes


def _current(info: ExecutionInfo) -> CurrentRun:
    return CurrentRun(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        status=info.status,
        first_run_id=info.first_run_id,
        started_at=info.started_at,
        closed_at=info.closed_at,
    )


def _events(intent: VisibilityIntent) -> Iterator[HistoryEvent]:
    begun = intent.start_time
    assert begun is not None
    queue = TaskQueue(name=intent.task_queue)
    yield _event(1, "workflow_execution_started", begun, **_start(intent, queue))
    yield _event(2, "workflow_task_scheduled", begun, task_queue=queue, attempt=1)
    yield _event(3, "workflow_task_started", begun, scheduled_event_id=2, identity="sample")
    yield _event(4, "workflow_task_completed", begun, scheduled_event_id=2, started_event_id=3, identity="sample")
    if intent.close_time is not None:
        snake = "".join(f"_{char.lower()}" if char.isupper() else char for char in status_name(intent.status))
        result = {"result": _GIVEN} if snake == "_completed" else {}
        yield _event(5, f"workflow_execution{snake}", intent.close_time, **result)


def _start(intent: VisibilityIntent, queue: TaskQueue) -> dict[str, Any]:
    start: dict[str, Any] = {
        "workflow_type": WorkflowType(name=intent.workflow_type),
        "workflow_id": intent.workflow_id,
        "task_queue": queue,
        "input": _GIVEN,
        "attempt": 1,
        "first_execution_run_id": intent.run_id,
        "original_execution_run_id": intent.run_id,
        "search_attributes": SearchAttributes(indexed_fields=intent.search_attributes),
    }
    if intent.parent_workflow_id:
        start["parent_workflow_namespace"] = intent.namespace
        start["parent_workflow_execution"] = WorkflowExecution(
            workflow_id=intent.parent_workflow_id, run_id=intent.parent_run_id
        )
        start["root_workflow_execution"] = WorkflowExecution(
            workflow_id=intent.root_workflow_id, run_id=intent.root_run_id
        )
    return start


def _event(number: int, kind: str, at: datetime, **attributes: Any) -> HistoryEvent:
    of_kind: dict[str, Any] = {f"{kind}_event_attributes": attributes}
    return HistoryEvent(
        event_id=number, event_type=EventType.Value(f"EVENT_TYPE_{kind.upper()}"), event_time=timestamp(at), **of_kind
    )
