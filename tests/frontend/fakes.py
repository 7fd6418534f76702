"""History, Matching, Visibility and the namespace table as the frontend's tests need them: they remember what they were
asked, and answer what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any

from temporalio.api.workflowservice import v1 as ws

from common.contracts.batches import RUNNING, BatchExists, BatchPlace, BatchRecord
from common.contracts.visibility import CountResult, ListPage
from common.errors import ConditionFailed, NamespaceAlreadyExists
from history.records import NamespaceRecord, NexusEndpointRecord
from worker.schedules.service import ScheduleService

Answer = Callable[[Any], Any]


class FakeRole:
    """Any method called with one request: the answer set for it, else an empty response of its name."""

    absent: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        self.answers: dict[str, Answer] = {}

    def answer(self, method: str, answer: Any) -> None:
        """An exception is raised, a function is called with the request (and awaited), anything else is answered."""
        self.answers[method] = answer

    def asked(self, method: str) -> list[Any]:
        return [request for name, request in self.requests if name == method]

    def last(self) -> Any:
        return self.requests[-1][1]

    def __getattr__(self, name: str) -> Callable[[Any], Awaitable[Any]]:
        if name.startswith("_") or name in self.absent:
            raise AttributeError(name)

        async def call(request: Any, **_: Any) -> Any:
            self.requests.append((name, request))
            answer = self.answers.get(name)
            if answer is None:
                return _empty_response(request)
            if isinstance(answer, BaseException):
                raise answer
            if callable(answer):
                answer = answer(request)
                return await answer if asyncio.iscoroutine(answer) else answer
            return answer

        return call


class FakeMatching(FakeRole):
    absent = frozenset(("list_workers", "count_workers", "describe_worker", "update_task_queue_config"))

    def __init__(self) -> None:
        super().__init__()
        self.forgotten: list[str] = []

    async def forget_namespace(self, *, namespace: str) -> None:
        self.forgotten.append(namespace)


class FakeVisibility:
    def __init__(self) -> None:
        self.pages: list[ListPage] = []
        self.counted = CountResult(count=0, groups=[])
        self.lists: list[dict[str, Any]] = []
        self.counts: list[dict[str, Any]] = []
        self.indexed: dict[str, str] = {}

    async def index_attributes(self, attributes: dict[str, str]) -> None:
        self.indexed |= attributes

    async def list_workflow_executions(self, **asked: Any) -> ListPage:
        self.lists.append(asked)
        return self.pages.pop(0) if self.pages else ListPage(executions=[], next_page_token=b"")

    async def count_workflow_executions(self, **asked: Any) -> CountResult:
        self.counts.append(asked)
        return self.counted


class MemoryNexusEndpointStore:
    """The table as a dictionary."""

    def __init__(self) -> None:
        self.records: dict[str, NexusEndpointRecord] = {}

    async def create(self, record: NexusEndpointRecord) -> None:
        if record.endpoint_id in self.records or await self.get_by_name(record.spec.name) is not None:
            raise ConditionFailed(statement="insert_nexus_endpoint")
        self.records[record.endpoint_id] = record

    async def get(self, endpoint_id: str) -> NexusEndpointRecord | None:
        return self.records.get(endpoint_id)

    async def get_by_name(self, name: str) -> NexusEndpointRecord | None:
        return next((record for record in self.records.values() if record.spec.name == name), None)

    async def update(self, record: NexusEndpointRecord, *, expected_version: int) -> None:
        stored = self.records.get(record.endpoint_id)
        if stored is None or stored.version != expected_version:
            raise ConditionFailed(statement="update_nexus_endpoint")
        self.records[record.endpoint_id] = record

    async def delete(self, endpoint_id: str) -> None:
        self.records.pop(endpoint_id, None)

    async def list(self, *, first: str, limit: int) -> list[NexusEndpointRecord]:
        ids = sorted(endpoint_id for endpoint_id in self.records if endpoint_id >= first)
        return [self.records[endpoint_id] for endpoint_id in ids[:limit]]


class MemoryNamespaceStore:
    """The table as a dictionary. `reads` counts lookups by name."""

    def __init__(self) -> None:
        self.records: dict[str, NamespaceRecord] = {}
        self.reads = 0
        self.error: Exception | None = None

    async def create(self, record: NamespaceRecord) -> None:
        self._fail()
        if record.name in self.records:
            raise NamespaceAlreadyExists(record.name)
        self.records[record.name] = record

    async def get(self, name: str) -> NamespaceRecord | None:
        self._fail()
        self.reads += 1
        await _a_moment()
        return self.records.get(name)

    async def get_by_id(self, namespace_id: str) -> NamespaceRecord | None:
        self._fail()
        return next((record for record in self.records.values() if record.namespace_id == namespace_id), None)

    async def update(self, record: NamespaceRecord, *, expected_version: int) -> None:
        self._fail()
        stored = self.records.get(record.name)
        if stored is None or stored.notification_version != expected_version:
            raise ConditionFailed(statement="update namespace")
        self.records[record.name] = record

    async def delete(self, name: str) -> None:
        self._fail()
        self.records.pop(name, None)

    async def list(self, *, after: str, limit: int) -> list[NamespaceRecord]:
        self._fail()
        names = sorted(name for name in self.records if name > after)
        return [self.records[name] for name in names[:limit]]

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class FakeBatches:
    """The table of batches as a dictionary."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], BatchRecord] = {}

    async def start(self, record: BatchRecord) -> None:
        existing = self.records.setdefault((record.namespace, record.job_id), record)
        if existing is not record:
            raise BatchExists(existing)

    async def get(self, *, namespace: str, job_id: str) -> BatchRecord | None:
        return self.records.get((namespace, job_id))

    async def list_batches(self, *, namespace: str, after: BatchPlace | None, limit: int) -> list[BatchRecord]:
        ordered = sorted(self._of(namespace), key=_place, reverse=True)
        return [r for r in ordered if after is None or _place(r) < (after.started_at, after.job_id)][:limit]

    async def count_running(self, *, namespace: str) -> int:
        return sum(record.state == RUNNING for record in self._of(namespace))

    async def stop(self, *, namespace: str, job_id: str, problem: str) -> bool:
        record = self.records.get((namespace, job_id))
        if record is None or record.state != RUNNING:
            return False
        record.state, record.problem = "Stopped", problem
        return True

    async def delete_closed(self, *, namespace: str, until: datetime | None) -> int:
        gone = [r for r in self._of(namespace) if until is None or (r.closed_at is not None and r.closed_at < until)]
        for record in gone:
            del self.records[record.namespace, record.job_id]
        return len(gone)

    def _of(self, namespace: str) -> Iterable[BatchRecord]:
        return [record for record in self.records.values() if record.namespace == namespace]


class FakeSchedules:
    """Remembers what it was asked; answers nothing but descriptions, which are empty."""

    canonicalize = ScheduleService.canonicalize

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.forgotten: list[str] = []

    async def create(self, request: ws.CreateScheduleRequest, *, namespace_id: str) -> None:
        self.asked.append((request, namespace_id))

    async def update(self, request: ws.UpdateScheduleRequest) -> None:
        self.asked.append(request)

    async def patch(self, request: ws.PatchScheduleRequest) -> None:
        self.asked.append(request)

    async def delete_all(self, *, namespace: str) -> None:
        self.forgotten.append(namespace)


def _place(record: BatchRecord) -> tuple[datetime, str]:
    return record.started_at, record.job_id


def _empty_response(request: Any) -> Any:
    return getattr(ws, type(request).__name__.removesuffix("Request") + "Response")()


async def _a_moment() -> None:
    """Lets other tasks run, as any real read does."""
    passed = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(passed.set_result, None)
    await passed
