"""What a transition works with: the runs of one workflow id, the time, and a source of fresh ids.

A transition is a plain function `transition(work: Workspace) -> result`. It is pure: it reads the workspace, records what
shall change in the workspace's drafts, or raises a typed error, and then nothing changes. The engine may run it again
(after loading what it found missing, or when a batch failed), so it must not keep state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

import msgspec
from temporalio.api.rules.v1 import WorkflowRule

from common.archetypes import NAMES, archetype_of, business_id
from common.errors import NotFound
from common.ids import uuid7
from history.config import HistoryConfig
from history.records import CurrentRun, ExecutionInfo, NamespaceRecord
from history.state import Draft, ExecutionState


class RunMissing(Exception):
    """The transition needs a run that is not in memory; the engine loads it and runs the transition again."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.run_id = run_id


class EventsMissing(Exception):
    """The transition needs an event that is not in memory; the engine loads it and runs the transition again."""

    def __init__(self, *, run_id: str, event_id: int) -> None:
        super().__init__(run_id, event_id)
        self.run_id = run_id
        self.event_id = event_id


def run_not_found(*, workflow_id: str, run_id: str = "") -> NotFound:
    """As upstream words it: for the current run of a workflow id, and for a run that was named."""
    archetype = archetype_of(workflow_id)
    if archetype:
        return NotFound(f"{NAMES[archetype]} not found for ID: {business_id(workflow_id)}")
    if run_id:
        return NotFound(f'workflow execution not found for workflow ID "{workflow_id}" and run ID "{run_id}"')
    return NotFound(f"workflow not found for ID: {workflow_id}")


class RunSource(Protocol):
    """Where a workspace finds runs: the cache, seen through the drafts of the batch that is being made."""

    def open(self, run_id: str, work: Workspace) -> Draft | None:
        """A fresh draft of the run; None when no such run is stored. Raises RunMissing when it must be loaded."""
        ...


class Workspace:
    """The runs of one (namespace, workflow id) during one transition."""

    version_queue = ""
    """Another task queue that is known to be one of the run's worker deployment version."""

    def __init__(
        self,
        *,
        namespace: str,
        workflow_id: str,
        shard_id: int,
        now: datetime,
        config: HistoryConfig,
        current: CurrentRun | None,
        runs: RunSource,
        draw_task_id: Callable[[], int],
        draw_run_id: Callable[[], str] | None = None,
        namespace_record: Callable[[str], NamespaceRecord | None] | None = None,
    ) -> None:
        self.namespace = namespace
        self.workflow_id = workflow_id
        self.shard_id = shard_id
        self.now = now
        self.config = config
        self.current = current
        """The newest run of the workflow id, as this transition leaves it; assign to change it."""
        self.drafts: dict[str, Draft] = {}
        """The runs opened or created, in that order."""
        self.after_commit: list[Callable[[], None]] = []
        """Called in order once the changes are durable, never otherwise: replies, wake-ups, notifications."""
        self.next_task_id = draw_task_id
        """A fresh, growing id for tasks and for ordering events."""
        self._draw_run_id = draw_run_id
        self._namespace_record = namespace_record
        self._runs = runs
        self._missing: set[str] = set()

    def new_run_id(self) -> str:
        """A fresh run id."""
        return uuid7(self.now) if self._draw_run_id is None else self._draw_run_id()

    def close(self) -> None:
        """The transition is over, its drafts and callbacks have been taken. A workspace and its drafts know each other;
        without that circle they are freed at once, and the cyclic collector has a twentieth less of the time to take."""
        self.drafts = {}
        self.after_commit = []

    @property
    def retention(self) -> timedelta | None:
        """How long the namespace's closed runs are kept; None when this process has not read that yet."""
        record = self._record
        return None if record is None else record.retention

    @property
    def rules(self) -> Mapping[str, WorkflowRule]:
        """The namespace's workflow rules, as far as this process knows."""
        record = self._record
        return {} if record is None else record.workflow_rules

    @property
    def _record(self) -> NamespaceRecord | None:
        return None if self._namespace_record is None else self._namespace_record(self.namespace)

    def find(self, run_id: str = "") -> Draft | None:
        """The run, or the current one when `run_id` is empty; None when there is none (or it is deleted)."""
        if not run_id:
            if self.current is None:
                return None
            run_id = self.current.run_id
        draft = self.drafts.get(run_id)
        if draft is None and run_id not in self._missing:
            draft = self._runs.open(run_id, self)
            if draft is None:
                self._missing.add(run_id)
            else:
                self.drafts[run_id] = draft
        return None if draft is None or draft.deleted else draft

    def run(self, run_id: str = "") -> Draft:
        """Like `find`, raising upstream's NOT_FOUND when there is no such run."""
        draft = self.find(run_id)
        if draft is None:
            if run_id:
                raise run_not_found(workflow_id=self.workflow_id, run_id=run_id)
            raise run_not_found(workflow_id=self.workflow_id)
        return draft

    def create(self, info: ExecutionInfo) -> Draft:
        """A new run; its events and items are added to the draft. `make_current` is separate."""
        draft = Draft(base=ExecutionState(info=info), work=self, is_new=True)
        self.drafts[info.run_id] = draft
        return draft

    def make_current(self, draft: Draft) -> None:
        """Let `current_runs` point to this run (with its present status; `sync_current` follows later changes)."""
        info = draft.info
        self.current = CurrentRun(
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            status=info.status,
            first_run_id=info.first_run_id,
            create_request_id=info.create_request_id,
            started_at=info.started_at,
            closed_at=info.closed_at,
        )

    def sync_current(self) -> None:
        """The engine calls this after the transition: the current run's row follows that run's status."""
        if self.current is None:
            return
        draft = self.drafts.get(self.current.run_id)
        if draft is None:
            return
        if draft.deleted:
            self.current = None
        elif draft.info.status != self.current.status or draft.info.closed_at != self.current.closed_at:
            self.current = msgspec.structs.replace(
                self.current, status=draft.info.status, closed_at=draft.info.closed_at
            )
