"""Executions that are not workflows: the rules that all archetypes share (see `common.archetypes`).

    existing_of(work, *, request_id, reuse, conflict) -> Existing | None      what a start meets; None: create one
    create(work, info) -> Draft              the new current execution of its id; the caller adds what is its own
    changed(draft)                           call with every change: counts it, so that long polls see it
    close_execution(draft, status)           nothing is waited for any more; callbacks are made
    delete_execution(work, *, run_id, terminate)    remove it with all its rows; `terminate` closes an open one first

An execution has a row in `executions` (its `archetype` is set, its `workflow_id` is its key), one in `current_runs`, and its own
records among `pending_items`; it has no events. A start that is repeated finds the same execution.
Source: upstream's chasm/engine.go and service/history/chasm_engine.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct
from temporalio.api.enums.v1 import WorkflowExecutionStatus

from history.records import CurrentRun, ExecutionInfo
from history.state import Draft
from history.transitions.callbacks import schedule_callbacks
from history.transitions.close import is_open
from history.transitions.delete import delete_when_told
from history.transitions.start import FAILED_STATUSES
from history.transitions.visibility import record_visibility
from history.workspace import Workspace

Reuse = Literal["allow", "failedOnly", "reject"]
Conflict = Literal["fail", "useExisting"]


class Existing(Struct, kw_only=True, frozen=True):
    """An execution that stands in the way of a start, or stands for it."""

    run: CurrentRun
    refused: bool
    """Whether the id policies forbid the start."""


def existing_of(work: Workspace, *, request_id: str, reuse: Reuse, conflict: Conflict) -> Existing | None:
    current = work.current
    if current is None:
        return None
    if current.create_request_id == request_id:
        return Existing(run=current, refused=False)
    if is_open(current.status):
        return Existing(run=current, refused=conflict == "fail")
    if reuse == "reject" or (reuse == "failedOnly" and current.status not in FAILED_STATUSES):
        return Existing(run=current, refused=True)
    return None


def create(work: Workspace, info: ExecutionInfo) -> Draft:
    draft = work.create(info)
    work.make_current(draft)
    changed(draft)
    record_visibility(draft)
    return draft


def changed(draft: Draft) -> None:
    draft.info.next_event_id = 1 if draft.is_new else draft.base.info.next_event_id + 1


def close_execution(draft: Draft, status: WorkflowExecutionStatus.ValueType) -> None:
    info = draft.info
    info.status, info.closed_at, info.deadline_at = status, draft.work.now, None
    changed(draft)
    record_visibility(draft)
    schedule_callbacks(draft)


def delete_execution(work: Workspace, *, run_id: str, terminate: Callable[[Draft], None]) -> None:
    """Raises NOT_FOUND for an unknown one."""
    draft = work.run(run_id)
    if is_open(draft.info.status):
        terminate(draft)
    delete_when_told(draft)
