"""The rows that a transition leaves for the shard's processors: what is to be done at once, and what at a time.

Tasks for workers carry more, see `workflow_tasks` and `activities`.
"""

from __future__ import annotations

from datetime import datetime

from history.records import TimerKind, TimerTask, TransferKind, TransferTask
from history.state import Draft


def add_transfer_task(draft: Draft, kind: TransferKind, event_id: int, *, attempt: int = 0) -> None:
    """`event_id`: the event it is about; of a callback its number."""
    info = draft.info
    draft.transfer_tasks.append(
        TransferTask(
            task_id=draft.work.next_task_id(),
            kind=kind,
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            event_id=event_id,
            attempt=attempt,
            available_at=draft.work.now,
        )
    )


def add_timer_task(
    draft: Draft, kind: TimerKind, due_at: datetime, *, event_id: int = 0, attempt: int = 0, stamp: int = 0
) -> None:
    """`event_id`: the event it comes from; of a callback its number."""
    info = draft.info
    draft.timer_tasks.append(
        TimerTask(
            task_id=draft.work.next_task_id(),
            kind=kind,
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            due_at=due_at,
            command_sequence=event_id,
            attempt=attempt,
            stamp=stamp,
        )
    )
