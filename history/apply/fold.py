"""Folding a history: the state that a run's events give.

    fold(events, *, namespace, workflow_id, run_id, shard_id) -> ExecutionState
    Folder                                                          the same, page by page

What no event tells (attempts, heartbeats, sticky queues, transient tasks, …) is missing from it; `history.verify` knows what.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio.api.history.v1 import HistoryEvent

from common.clock import EPOCH
from history.apply import apply_event
from history.config import HistoryConfig
from history.records import ExecutionInfo
from history.state import Draft, ExecutionState
from history.workspace import Workspace


class _NoRuns:
    def open(self, run_id: str, work: Workspace) -> Draft | None:  # noqa: ARG002 - a RunSource
        return None


class Folder:
    """Give it a run's events in order, from the first."""

    def __init__(self, *, namespace: str, workflow_id: str, run_id: str, shard_id: int) -> None:
        work = Workspace(
            namespace=namespace,
            workflow_id=workflow_id,
            shard_id=shard_id,
            now=EPOCH,
            config=HistoryConfig(),
            current=None,
            runs=_NoRuns(),
            draw_task_id=lambda: 0,
        )
        self._base = ExecutionState(
            info=ExecutionInfo(
                namespace=namespace,
                workflow_id=workflow_id,
                run_id=run_id,
                shard_id=shard_id,
                workflow_type="",
                task_queue="",
                started_at=EPOCH,
                execution_time=EPOCH,
            )
        )
        self._draft = Draft(base=self._base, work=work, is_new=True)

    def add(self, event: HistoryEvent) -> None:
        apply_event(self._draft, event)

    def state(self) -> ExecutionState:
        """The state so far; ends the folding."""
        self._draft.adopt_into(self._base)
        return self._base


def fold(
    events: Iterable[HistoryEvent], *, namespace: str, workflow_id: str, run_id: str, shard_id: int
) -> ExecutionState:
    folder = Folder(namespace=namespace, workflow_id=workflow_id, run_id=run_id, shard_id=shard_id)
    for event in events:
        folder.add(event)
    return folder.state()
