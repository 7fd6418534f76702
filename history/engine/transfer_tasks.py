"""What each kind of transfer task does: one handler a kind, idempotent against the run's state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING

from common.contracts.matching import AddTask, StickyWorkerUnavailable
from history.records import TransferTask
from history.state import ExecutionState
from history.transitions.build_ids import note_build
from history.transitions.sticky import fall_back_to_normal_queue
from history.version_directives import of_activity, of_workflow_task
from history.versioning import revision_of, uses_ramping

if TYPE_CHECKING:
    from history.engine.engine import Engine

Handler = Callable[["Engine", TransferTask], Awaitable[None]]

_HANDLERS: dict[str, Handler] = {}


def handles_transfer(kind: str) -> Callable[[Handler], Handler]:
    """Register the handler of a kind of transfer task."""

    def register(handler: Handler) -> Handler:
        assert kind not in _HANDLERS, kind
        _HANDLERS[kind] = handler
        return handler

    return register


def handler_of(kind: str) -> Handler:
    return _HANDLERS[kind]


@handles_transfer("workflowTask")
async def add_workflow_task(engine: Engine, task: TransferTask) -> None:
    """Offer the run's pending workflow task to Matching: on the sticky queue while its worker lives, else on the normal."""
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    pending = state.speculative_task or state.info.workflow_task
    if pending is None or pending.scheduled_event_id != task.event_id or pending.started_event_id:
        return
    if pending.attempt != (task.attempt or 1) or pending.stamp != task.stamp:
        return
    request = AddTask(
        kind="workflow",
        namespace=task.namespace,
        task_queue=task.task_queue,
        normal_name=state.info.task_queue if task.sticky else "",
        workflow_id=task.workflow_id,
        run_id=task.run_id,
        scheduled_event_id=task.event_id,
        attempt=pending.attempt,
        stamp=task.stamp,
        scheduled_at=pending.scheduled_at,
        expires_at=_workflow_task_expiry(task),
        priority=task.priority,
        version_directive=of_workflow_task(state.info),
        revision=revision_of(state.info),
        use_ramping=uses_ramping(state.info),
    )
    try:
        assigned = await engine.matching.add_task(request)
        if assigned:
            await _note_build(engine, task, assigned)
    except StickyWorkerUnavailable:
        fallen_back = await engine.update(
            namespace=task.namespace,
            workflow_id=task.workflow_id,
            transition=lambda work: fall_back_to_normal_queue(
                work, run_id=task.run_id, scheduled_event_id=task.event_id
            ),
        )
        if fallen_back:
            request.task_queue, request.normal_name = state.info.task_queue, ""
            request.expires_at = None
            await engine.matching.add_task(request)


async def _note_build(engine: Engine, task: TransferTask, build_id: str) -> None:
    """Whoever looks at the run sees its build before a worker comes."""
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: note_build(
            work, run_id=task.run_id, scheduled_event_id=task.event_id, build_id=build_id
        ),
        reason="NoteAssignedBuild",
    )


def _workflow_task_expiry(task: TransferTask) -> datetime | None:
    """A sticky delivery is dropped when History's schedule-to-start timeout has put the task on the normal queue."""
    return task.available_at + task.schedule_to_start if task.sticky and task.schedule_to_start else None


@handles_transfer("activityTask")
async def add_activity_task(engine: Engine, task: TransferTask) -> None:
    """Offer one attempt of a pending activity to Matching."""
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    item = state.activities.get(task.event_id)
    if item is None or item.started_event_id or item.stamp != task.stamp or item.paused_at is not None:
        return
    if task.attempt and item.attempt != task.attempt:
        return
    await engine.matching.add_task(
        AddTask(
            kind="activity",
            namespace=task.namespace,
            task_queue=item.task_queue,
            workflow_id=task.workflow_id,
            run_id=task.run_id,
            scheduled_event_id=task.event_id,
            attempt=item.attempt,
            stamp=item.stamp,
            scheduled_at=item.scheduled_at,
            expires_at=_activity_expiry(state, task.event_id),
            priority=task.priority,
            version_directive=of_activity(state.info, item),
            revision=revision_of(state.info),
            use_ramping=uses_ramping(state.info),
        )
    )


def _activity_expiry(state: ExecutionState, scheduled_event_id: int) -> datetime | None:
    item = state.activities[scheduled_event_id]
    ends = []
    if item.schedule_to_start:
        ends.append(item.scheduled_at + item.schedule_to_start)
    if item.schedule_to_close:
        ends.append(item.first_scheduled_at + item.schedule_to_close)
    return min(ends, default=None)
