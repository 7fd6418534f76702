"""An engine without I/O: several workflow ids, each on a host that replays, and History's own API between them.

`crash_at(n)` lets the n-th transition from now on fail, once, before or after it was done: what a handler does then, when it
runs again, must come to the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from common.clock import ManualClock
from common.contracts.history import HistoryClient
from common.contracts.matching import PlannedVersion
from common.errors import NotFound, Unavailable
from history.config import HistoryConfig
from history.engine.transfer_tasks import handler_of
from history.records import NamespaceRecord, TransferTask
from history.service import history_service
from history.state import ExecutionState
from history.workspace import Workspace
from tests.history.harness import NAMESPACE, START, Host

T = TypeVar("T")


class NamedHost(Host):
    """A host for a workflow id of its own."""

    def __init__(self, workflow_id: str) -> None:
        super().__init__()
        self.workflow_id = workflow_id

    def workspace(self) -> Workspace:
        work = super().workspace()
        work.workflow_id = self.workflow_id
        return work


class Namespaces:
    def peek(self, name: str) -> NamespaceRecord:
        return NamespaceRecord(name=name, namespace_id="ns-id", created_at=START)

    last_known = peek


class Queues:
    """What Matching knows of versions: `versions` are "<task queue> <deployment>:<build id>"."""

    def __init__(self) -> None:
        self.versions: set[str] = set()
        self.planned: dict[str, PlannedVersion] = {}

    async def has_version(self, *, namespace: str, task_queue: str, version: str, reactivate: bool = False) -> bool:
        return f"{task_queue} {version}" in self.versions

    async def planned_version(self, *, namespace: str, task_queue: str, workflow_id: str) -> PlannedVersion:
        return self.planned.get(task_queue, PlannedVersion("", 0))


class ManyHosts:
    """What handlers and API functions use of an engine."""

    def __init__(self) -> None:
        self.hosts: dict[str, NamedHost] = {}
        self.clock = ManualClock(START)
        self.config = HistoryConfig()
        self.namespaces = Namespaces()
        self.history: HistoryClient = history_service(self)  # type: ignore[arg-type]
        self.matching = Queues()
        self._crash: tuple[int, bool] | None = None

    def host(self, workflow_id: str) -> NamedHost:
        if workflow_id not in self.hosts:
            self.hosts[workflow_id] = NamedHost(workflow_id)
        return self.hosts[workflow_id]

    def crash_at(self, count: int, *, after: bool) -> None:
        self._crash = (count, after)

    async def update(
        self,
        *,
        namespace: str,
        workflow_id: str,
        transition: Callable[[Workspace], T],
        reason: str = "",
        runs_last: bool = False,
    ) -> T:
        assert namespace == NAMESPACE and reason
        crash, after = False, False
        if self._crash is not None:
            count, after = self._crash
            crash = count == 0
            self._crash = None if crash else (count - 1, after)
        if crash and not after:
            raise Unavailable("crashed before")
        result = self.host(workflow_id).run(transition)
        if crash:
            raise Unavailable("crashed after")
        return result

    async def read(self, *, namespace: str, workflow_id: str, run_id: str = "") -> ExecutionState:
        host = self.host(workflow_id)
        run_id = run_id or (host.current.run_id if host.current else "")
        if namespace != NAMESPACE or run_id not in host.states:
            raise NotFound("workflow not found")
        return host.states[run_id]

    async def events(
        self, *, namespace: str, workflow_id: str, run_id: str, first: int, last: int
    ) -> list[HistoryEvent]:
        assert namespace == NAMESPACE
        return self.host(workflow_id).events[run_id][first - 1 : last - 1]

    # --- driving it

    def take(self, workflow_id: str, kind: str) -> TransferTask:
        """The next transfer task of that kind."""
        tasks = self.host(workflow_id).transfer_tasks
        found = next(task for task in tasks if task.kind == kind)
        tasks.remove(found)
        return found

    async def handle(self, task: TransferTask) -> None:
        """Handle a task as the processor does: again when the server was not available."""
        while True:
            try:
                await handler_of(task.kind)(self, task)  # type: ignore[arg-type]
                return
            except NotFound:
                return
            except Unavailable:
                pass

    def types(self, workflow_id: str) -> list[str]:
        host = self.host(workflow_id)
        if host.current is None:
            return []
        return [EventType.Name(e.event_type).removeprefix("EVENT_TYPE_") for e in host.events[host.current.run_id]]
