"""Many hosts with rows behind them: what a commit would write is kept as it would be stored, and a crash leaves only that.

Durable: rows of runs, items, events; current runs; transfer tasks until they are handled; timer tasks. Matching is another
process and keeps what it was given. In memory only: admitted updates, speculative workflow tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from temporalio.api.history.v1 import HistoryEvent

from common.codec import from_json, to_json
from common.contracts.matching import AddTask
from common.records import decode, encode
from history.callbacks.completion import CompletionRequest
from history.callbacks.destinations import HeldBack
from history.callbacks.sender import Sent
from history.records import ExecutionInfo
from history.state import PERSISTED, Draft, ExecutionState
from history.store.execution_store import assemble
from history.transitions.begin import blank_info
from tests.history.many_hosts import ManyHosts, NamedHost


@dataclass
class Rows:
    """One run as stored."""

    info: bytes = b""
    items: dict[tuple[str, str], bytes] = field(default_factory=dict)
    events: list[bytes] = field(default_factory=list)


class CrashingHost(NamedHost):
    def __init__(self, workflow_id: str) -> None:
        super().__init__(workflow_id)
        self.rows: dict[str, Rows] = {}
        self.empty = ExecutionState(info=blank_info(self.workspace(), run_id="none"))
        """What there is of a run that is gone."""

    def _keep(self, run_id: str, draft: Draft) -> None:
        super()._keep(run_id, draft)
        if draft.deleted:
            self.rows.pop(run_id, None)
            return
        if not draft.is_stored:
            return
        rows = self.rows.setdefault(run_id, Rows())
        if draft.info_changed:
            rows.info = encode(draft.info)
        rows.events += map(to_json, draft.events)
        for kind, key, record in draft.changed_items():
            if record is None:
                rows.items.pop((kind, key), None)
            else:
                rows.items[kind, key] = encode(record)

    def crash(self) -> None:
        """Forget what is in memory and load the rows; nothing that matters may have been in memory only."""
        for run_id, rows in self.rows.items():
            loaded, live = self.load(rows, run_id), self.states[run_id]
            for name in PERSISTED:
                assert getattr(loaded, name) == getattr(live, name), name
            assert loaded.activity_ids == live.activity_ids
            # The count of transitions that wrote no row comes with the row's next change.
            live.info.state_transition_count = loaded.info.state_transition_count
            assert loaded.info == live.info
            assert [from_json(HistoryEvent, data) for data in rows.events] == self.events[run_id]
        assert self.rows.keys() == self.states.keys()
        self.states = {run_id: self.load(rows, run_id) for run_id, rows in self.rows.items()}

    @staticmethod
    def load(rows: Rows, run_id: str) -> ExecutionState:
        info = decode(ExecutionInfo, rows.info, table="executions", key=run_id)
        return assemble(info, [(kind, key, data) for (kind, key), data in sorted(rows.items.items())], place=run_id)


class KeepingMatching:
    """Takes every task and keeps it until a worker is given it."""

    def __init__(self) -> None:
        self.tasks: list[AddTask] = []

    async def add_task(self, request: AddTask) -> None:
        self.tasks.append(request)


class MoodyReceiver:
    """What callbacks are sent to: takes them, fails, refuses, is held back, as told."""

    def __init__(self, engine: CrashingHosts) -> None:
        self._engine = engine
        self.mood = 0

    async def send(self, *, namespace: str, request: CompletionRequest) -> Sent:
        match self.mood % 4:
            case 1:
                return Sent(error="away")
            case 2:
                return Sent(error="no", retryable=False)
            case 3:
                raise HeldBack(self._engine.clock.now())
            case _:
                return Sent()


class CrashingHosts(ManyHosts):
    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[str, CrashingHost] = {}  # type: ignore[assignment]
        self.matching = KeepingMatching()
        self.callbacks = MoodyReceiver(self)

    def host(self, workflow_id: str) -> CrashingHost:
        host = self.hosts.get(workflow_id)
        if host is None:
            host = self.hosts[workflow_id] = CrashingHost(workflow_id)
            host.now = self.clock.now()
        return host

    def crash(self) -> None:
        self._crash = None
        for host in self.hosts.values():
            host.crash()

    def advance(self, seconds: float) -> None:
        """All hosts have one time."""
        self.clock.advance(timedelta(seconds=seconds))
        for host in list(self.hosts.values()):
            host.advance(self.clock.now() - host.now)

    def open_tasks(self) -> list[tuple[str, int]]:
        """(workflow id, index) of each transfer task."""
        return [(name, index) for name, host in self.hosts.items() for index in range(len(host.transfer_tasks))]

    async def handle_one(self, place: tuple[str, int], *, twice: bool = False) -> Any:
        """Handle a transfer task; its row goes when that is done. `twice`: the process died just before it went."""
        name, index = place
        task = self.hosts[name].transfer_tasks[index]
        await self.handle(task)
        if twice:
            await self.handle(task)
        self.hosts[name].transfer_tasks.remove(task)
