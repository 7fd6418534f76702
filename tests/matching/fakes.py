"""Matching's neighbours in memory: a TaskStore with the fences of the real ones, and a History that knows what it started."""

import asyncio
import itertools
from collections.abc import Coroutine, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import msgspec
from temporalio.api.common.v1 import Payloads, Priority, WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.contracts.matching import AddTask, QueryWorkflow
from common.errors import ConditionFailed, PersistenceError, QueueOwnershipLost, TaskAlreadyStarted
from common.records import decode, encode
from matching.config import MatchingConfig
from matching.deployments.records import DeploymentRecord
from matching.deployments.store import DeploymentConflict
from matching.records import QueueKey, QueueRecord, SpooledTask, UserData
from matching.service import MatchingService
from matching.store.base import QueueWrite, UnreadableTask, UserDataConflict

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "default"
QUEUE = "orders"
KEY = QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")


class MemoryStore:
    """Holds encoded records, so nothing that a service has in its hands is shared with what is stored."""

    def __init__(self) -> None:
        self.queues: dict[str, bytes] = {}
        self.tasks: dict[str, dict[int, bytes]] = {}
        self.user_data: dict[tuple[str, str], bytes] = {}
        self.commits: list[list[QueueWrite]] = []
        self.page_reads = 0
        self.failures: list[Exception] = []
        """Raised by the next commits, before anything is written."""
        self.failures_after: list[Exception] = []
        """Raised by the next commits, after everything was written."""
        self.gate: asyncio.Event | None = None
        """Commits wait for it."""
        self.committing = asyncio.Event()
        self.unreadable: set[int] = set()
        """Ids of rows that can't be read."""
        self.read_gate: asyncio.Event | None = None
        self.turns: Iterator[int] = itertools.repeat(1)
        """How many turns of the event loop each commit and each read takes."""

    def queue(self, key: QueueKey = KEY) -> QueueRecord:
        return decode(QueueRecord, self.queues[key.physical_queue], table="task_queues", key=key)

    def rows(self, key: QueueKey = KEY) -> list[int]:
        return sorted(self.tasks.get(key.physical_queue, {}))

    async def acquire_queue(self, *, key: QueueKey, normal_name: str, owner: str, now: datetime) -> QueueRecord:
        if key.physical_queue in self.queues:
            present = self.queue(key)
            record = msgspec.structs.replace(present, range_id=present.range_id + 1, owner=owner, updated_at=now)
        else:
            record = QueueRecord(
                namespace=key.namespace,
                task_queue=key.task_queue,
                kind=key.kind,
                partition=key.partition,
                version=key.version,
                normal_name=normal_name,
                owner=owner,
                range_id=1,
                updated_at=now,
            )
        self.queues[key.physical_queue] = encode(record)
        return record

    async def read_queue(self, *, key: QueueKey) -> QueueRecord | None:
        return self.queue(key) if key.physical_queue in self.queues else None

    async def list_queues(self, *, after: str, limit: int) -> list[QueueRecord]:
        names = sorted(name for name in self.queues if name > after)[:limit]
        return [decode(QueueRecord, self.queues[name], table="task_queues", key=name) for name in names]

    async def commit(self, writes: Sequence[QueueWrite]) -> None:
        self.committing.set()
        if self.gate is not None:
            await self.gate.wait()
        await self._take_turns()
        if self.failures:
            raise self.failures.pop(0)
        for write in writes:
            name = write.queue.key.physical_queue
            if name not in self.queues or self.queue(write.queue.key).range_id != write.queue.range_id:
                raise QueueOwnershipLost(physical_queue=name)
            if any(task.task_id in self.tasks.get(name, {}) for task in write.tasks):
                raise ConditionFailed(statement="insert tasks")
        for write in writes:
            self._apply(write)
        self.commits.append(list(writes))
        if self.failures_after:
            raise self.failures_after.pop(0)
        await self._take_turns()

    async def _take_turns(self) -> None:
        await turns(next(self.turns))

    def _apply(self, write: QueueWrite) -> None:
        name = write.queue.key.physical_queue
        rows = self.tasks.setdefault(name, {})
        for prefix in write.deleted:
            for task_id, data in list(rows.items()):
                task = decode(SpooledTask, data, table="tasks", key=task_id)
                if task.priority == prefix.priority and (task.pass_, task_id) <= (prefix.pass_, prefix.task_id):
                    del rows[task_id]
        for task in write.tasks:
            rows[task.task_id] = encode(task)
        self.queues[name] = encode(write.queue)

    async def load_tasks(
        self, *, key: QueueKey, priority: int, after: tuple[int, int], limit: int
    ) -> list[SpooledTask | UnreadableTask]:
        self.page_reads += 1
        found = sorted(
            (task.pass_, task.task_id, task)
            for task in await self.list_tasks(key=key, after=0, limit=1 << 30)
            if task.priority == priority and (task.pass_, task.task_id) > after
        )
        bad = {
            task_id: UnreadableTask(
                task_id=task_id, pass_=pass_, error=PersistenceError(table="tasks", key=task_id, reason="odd")
            )
            for pass_, task_id, _ in found
            if task_id in self.unreadable
        }
        if self.read_gate is not None:
            await self.read_gate.wait()
        await self._take_turns()
        return [bad.get(task_id, task) for _, task_id, task in found[:limit]]

    async def list_tasks(self, *, key: QueueKey, after: int, limit: int) -> list[SpooledTask]:
        rows = self.tasks.get(key.physical_queue, {})
        return [decode(SpooledTask, rows[i], table="tasks", key=i) for i in sorted(rows) if i > after][:limit]

    async def load_user_data(self, *, namespace: str, task_queue: str) -> UserData | None:
        data = self.user_data.get((namespace, task_queue))
        return None if data is None else decode(UserData, data, table="task_queue_user_data", key=task_queue)

    async def save_user_data(self, record: UserData, *, expected_version: int) -> None:
        present = await self.load_user_data(namespace=record.namespace, task_queue=record.task_queue)
        if (present.version if present else 0) != expected_version:
            raise UserDataConflict(
                namespace=record.namespace, task_queue=record.task_queue, expected_version=expected_version
            )
        self.user_data[record.namespace, record.task_queue] = encode(record)

    async def delete_namespace(self, *, namespace: str) -> None:
        for name in [name for name in self.queues if QueueKey.parse(name).namespace == namespace]:
            del self.queues[name]
            self.tasks.pop(name, None)
        for key in [key for key in self.user_data if key[0] == namespace]:
            del self.user_data[key]

    async def list_user_data(self, *, after: tuple[str, str], limit: int) -> list[UserData]:
        keys = sorted(key for key in self.user_data if key > after)[:limit]
        return [decode(UserData, self.user_data[k], table="task_queue_user_data", key=k) for k in keys]


class FakeHistory:
    """Starts each task once. `failures` are raised by the next calls, `gate` holds them up."""

    def __init__(self) -> None:
        self.started: list[str] = []
        """Workflow ids in the order of their starts."""
        self.by: dict[str, str] = {}
        """Workflow id → identity of the poller that its start was recorded for."""
        self.calls = 0
        self.request_ids: set[str] = set()
        self.failures: list[Exception] = []
        self.delays: list[Coroutine[None, None, None]] = []
        """Awaited by the next calls."""
        self.gate: asyncio.Event | None = None
        self.called = asyncio.Event()

    async def record_workflow_task_started(
        self, request: RecordWorkflowTaskStarted
    ) -> ws.PollWorkflowTaskQueueResponse:
        await self._start(request)
        return ws.PollWorkflowTaskQueueResponse(
            task_token=request.workflow_id.encode(),
            workflow_execution=WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id),
        )

    async def record_activity_task_started(
        self, request: RecordActivityTaskStarted
    ) -> ws.PollActivityTaskQueueResponse:
        await self._start(request)
        return ws.PollActivityTaskQueueResponse(task_token=request.workflow_id.encode())

    async def query_task(
        self, *, namespace: str, execution: WorkflowExecution, sticky: bool
    ) -> ws.PollWorkflowTaskQueueResponse:
        await self._call()
        return ws.PollWorkflowTaskQueueResponse(workflow_execution=execution)

    async def _start(self, request: RecordWorkflowTaskStarted | RecordActivityTaskStarted) -> None:
        assert request.request_id not in self.request_ids
        self.request_ids.add(request.request_id)
        await self._call()
        if request.workflow_id in self.by:
            raise TaskAlreadyStarted("Workflow task already started.")
        self.started.append(request.workflow_id)
        self.by[request.workflow_id] = request.poll.identity

    async def _call(self) -> None:
        self.calls += 1
        self.called.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.delays:
            await self.delays.pop(0)
        await turns()
        if self.failures:
            raise self.failures.pop(0)


class MemoryDeployments:
    """A `matching.deployments.store.DeploymentStore` in memory."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], bytes] = {}
        self.looks: dict[tuple[str, str], datetime | None] = {}

    async def get(self, *, namespace: str, name: str) -> DeploymentRecord | None:
        row = self.rows.get((namespace, name))
        return None if row is None else decode(DeploymentRecord, row, table="worker_deployments", key=name)

    async def save(self, record: DeploymentRecord, *, look_at: datetime | None, expected_version: int) -> None:
        present = await self.get(namespace=record.namespace, name=record.name)
        if (present.version if present else 0) != expected_version:
            raise DeploymentConflict(namespace=record.namespace, name=record.name)
        self.rows[record.namespace, record.name] = encode(record)
        self.looks[record.namespace, record.name] = look_at

    async def delete(self, record: DeploymentRecord) -> bool:
        return self.rows.pop((record.namespace, record.name), None) is not None

    async def page(self, *, namespace: str, after: tuple[datetime, str] | None, limit: int) -> list[DeploymentRecord]:
        found = [
            record
            for key in self.rows
            if key[0] == namespace and (record := await self.get(namespace=key[0], name=key[1]))
        ]
        found.sort(key=lambda record: (record.created_at, record.name), reverse=True)
        return [record for record in found if after is None or (record.created_at, record.name) < after][:limit]

    async def count(self, *, namespace: str) -> int:
        return sum(key[0] == namespace for key in self.rows)

    async def due(self, *, until: datetime, limit: int) -> list[DeploymentRecord]:
        keys = [
            key for key, look_at in self.looks.items() if look_at is not None and look_at <= until and key in self.rows
        ]
        found = [await self.get(namespace=namespace, name=name) for namespace, name in keys[:limit]]
        return [record for record in found if record is not None]

    async def delete_namespace(self, *, namespace: str) -> None:
        for key in [key for key in self.rows if key[0] == namespace]:
            del self.rows[key]


class World:
    """A MatchingService (or several, one after or beside another) over one store, one History and one manual clock."""

    def __init__(self, config: MatchingConfig | None = None) -> None:
        self.clock = ManualClock(START)
        self.store = MemoryStore()
        self.deployments = MemoryDeployments()
        self.history = FakeHistory()
        self.config = config or MatchingConfig(match_wait=timedelta())
        self.services: list[MatchingService] = []

    async def service(self, host: str = "one") -> MatchingService:
        service = MatchingService(
            self.store, self.history, self.clock, self.config, host, user_data=self.store, deployments=self.deployments
        )
        await service.start()
        self.services.append(service)
        return service

    async def close(self) -> None:
        if self.history.gate is not None:
            self.history.gate.set()
        if self.store.gate is not None:
            self.store.gate.set()
        for service in self.services:
            await service.stop()

    def task(self, name: str, **fields: object) -> AddTask:
        given = {"kind": "workflow", "namespace": NAMESPACE, "task_queue": QUEUE, "scheduled_at": self.clock.now()}
        return AddTask(workflow_id=name, run_id=f"run-{name}", scheduled_event_id=2, **{**given, **fields})

    def prioritized(self, name: str, *, key: int = 0, fairness: str = "", weight: float = 0.0) -> AddTask:
        priority = Priority(priority_key=key, fairness_key=fairness, fairness_weight=weight)
        return self.task(name, priority=priority)

    def query(self, **fields: object) -> QueryWorkflow:
        given = {
            "namespace": NAMESPACE,
            "workflow_id": "w",
            "run_id": "r",
            "task_queue": QUEUE,
            "query": WorkflowQuery(query_type="state"),
            "timeout": timedelta(seconds=10),
        }
        return QueryWorkflow(**{**given, **fields})


def workflow_poll(
    identity: str = "worker", *, queue: str = QUEUE, normal: str = "", instance: str = ""
) -> ws.PollWorkflowTaskQueueRequest:
    request = ws.PollWorkflowTaskQueueRequest(namespace=NAMESPACE, identity=identity, worker_instance_key=instance)
    request.task_queue.name = queue
    request.task_queue.normal_name = normal
    return request


def activity_poll(identity: str = "worker", *, rate: float | None = None) -> ws.PollActivityTaskQueueRequest:
    request = ws.PollActivityTaskQueueRequest(namespace=NAMESPACE, identity=identity)
    request.task_queue.name = QUEUE
    if rate is not None:
        request.task_queue_metadata.max_tasks_per_second.value = rate
    return request


async def begin_poll(
    service: MatchingService, identity: str = "worker", **given: str
) -> asyncio.Task[ws.PollWorkflowTaskQueueResponse]:
    """A poll that is waiting when this returns (or has been answered already)."""
    task = asyncio.ensure_future(service.poll_workflow_task_queue(workflow_poll(identity, **given)))
    await settled()
    return task


class _Turn:
    """Awaiting it lets everything else that is ready run once."""

    def __await__(self) -> Iterator[None]:
        yield


async def turns(count: int = 1) -> None:
    """Lets the event loop go round so many times; not a wait for time."""
    for _ in range(count):
        await _Turn()


async def settled() -> None:
    """Everything that can happen without the clock has happened: the fakes never wait longer than a few turns."""
    await turns(60)


def answer(value: bytes) -> Payloads:
    payloads = Payloads()
    payloads.payloads.add(data=value)
    return payloads
