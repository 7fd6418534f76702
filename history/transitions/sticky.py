"""Leaving a sticky queue whose worker is gone."""

from __future__ import annotations

from msgspec.structs import replace

from common.protos import ZERO
from history.workspace import Workspace


def fall_back_to_normal_queue(work: Workspace, *, run_id: str, scheduled_event_id: int) -> bool:
    """Move the scheduled, not yet started workflow task to the run's normal queue and forget the sticky one.

    No event is written: nothing has happened that a replay could see. Returns whether the task was still waiting.
    """
    draft = work.run(run_id)
    pending = draft.workflow_task
    if pending is None or pending.scheduled_event_id != scheduled_event_id or pending.started_event_id:
        return False
    moved = replace(pending, task_queue=draft.info.task_queue, sticky=False)
    if draft.speculative_task is not None:
        draft.speculative_task = moved
    else:
        draft.info.workflow_task = moved
    draft.info.sticky_queue = ""
    draft.info.sticky_schedule_to_start = ZERO
    return True
