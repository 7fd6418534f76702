"""One physical queue from its first load to its reload, in a database in memory: what is stored, what is only loaded.

Three tasks are spooled while nobody polls. The first can't be started for now, so the second is dispatched before it: its
row stays, as the acknowledgement level is a prefix. Then the queue is unloaded and a new manager loads it under the next
range, reads all three again, and History says which of them has been started before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any, cast

from django.core.management import call_command
from django.db import connections
from msgspec import Struct
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.taskqueue.v1 import TaskQueue as TaskQueueMessage
from temporalio.api.workflowservice import v1 as ws

from common.clock import RealClock
from common.contracts.history import HistoryClient, RecordWorkflowTaskStarted
from common.contracts.matching import AddTask
from common.database.opening import database_of
from common.errors import TaskAlreadyStarted, Unavailable
from matching.config import MatchingConfig
from matching.deployments.store import DeploymentStore
from matching.physical_queue import PhysicalQueue
from matching.records import QueueKey
from matching.service import MatchingService
from matching.store import SqlTaskStore, open_deployment_store, open_task_store, open_user_data_store
from matching.task_queues import TaskQueueKey
from tinytemporal_site.databases import database_settings, keep_memory_database
from tinytemporal_site.settings import BASE_DIR

ALIAS = "walkthrough"
NAMESPACE, QUEUE = "default", "orders"
KEY = QueueKey(namespace=NAMESPACE, task_queue=QUEUE, kind="workflow")
TASKS = ("order-1", "order-2", "order-3")


class Step(Struct, kw_only=True, rename="camel"):
    """What the table holds, what the loaded manager knows (None when none is loaded), and how many tasks still await their
    dispatch, which no count of rows tells."""

    what: str
    persisted_queue: dict[str, Any] | None
    loaded_queue_progress: dict[str, Any] | None
    outstanding: int | None


class FewStarts:
    """Stands for History: knows what it started, and can't start the workflows that are `busy` for now."""

    def __init__(self) -> None:
        self.started: set[str] = set()
        self.busy: set[str] = set()

    async def record_workflow_task_started(
        self, request: RecordWorkflowTaskStarted
    ) -> ws.PollWorkflowTaskQueueResponse:
        if request.workflow_id in self.busy:
            raise Unavailable(f"{request.workflow_id} can't be started for now")
        if request.workflow_id in self.started:
            raise TaskAlreadyStarted("Workflow task already started.")
        self.started.add(request.workflow_id)
        return ws.PollWorkflowTaskQueueResponse(
            task_token=request.workflow_id.encode(),
            workflow_execution=WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id),
        )


class Lifecycle:
    """The walkthrough's Matching, one service after another over one store."""

    def __init__(self, *, store: SqlTaskStore, user_data: Any, deployments: DeploymentStore) -> None:
        self.clock = RealClock()
        self.history = FewStarts()
        self.store = store
        self._user_data = user_data
        self._deployments = deployments
        self.service: MatchingService | None = None

    async def load(self) -> None:
        self.service = MatchingService(
            store=self.store,
            history=cast(HistoryClient, self.history),
            clock=self.clock,
            config=MatchingConfig(match_wait=timedelta(), checkpoint_delay=timedelta(hours=1)),
            host="walkthrough",
            user_data=self._user_data,
            deployments=self._deployments,
        )
        await self.service.start()

    async def unload(self) -> None:
        assert self.service is not None
        await self.service.stop()
        self.service = None

    async def spool(self, workflow_id: str) -> None:
        assert self.service is not None
        await self.service.add_task(
            AddTask(
                kind="workflow",
                namespace=NAMESPACE,
                task_queue=QUEUE,
                workflow_id=workflow_id,
                run_id=f"run of {workflow_id}",
                scheduled_event_id=2,
                scheduled_at=self.clock.now(),
            )
        )

    async def poll(self) -> str:
        """The workflow whose task a worker was given."""
        assert self.service is not None
        request = ws.PollWorkflowTaskQueueRequest(
            namespace=NAMESPACE, identity="worker", task_queue=TaskQueueMessage(name=QUEUE)
        )
        answer = await self.service.poll_workflow_task_queue(request)
        return str(answer.workflow_execution.workflow_id)

    async def checkpoint(self) -> None:
        """Save the progress now rather than a moment later."""
        assert self.service is not None
        for queue in self.service.queues:
            for saved in queue.checkpoints.save():
                await saved

    def loaded(self) -> PhysicalQueue | None:
        if self.service is None:
            return None
        queue = self.service.queues.loaded(TaskQueueKey(NAMESPACE, QUEUE, "workflow"))
        return queue.partitions[0] if queue is not None else None

    async def look(self, what: str) -> Step:
        record = await self.store.read_queue(key=KEY)
        rows = await self.store.list_tasks(key=KEY, after=0, limit=100)
        queue = self.loaded()
        return Step(
            what=what,
            persisted_queue=None
            if record is None
            else {
                "physicalQueue": record.key.physical_queue,
                "rangeId": record.range_id,
                "ackLevel": record.ack_level,
                "lastTaskId": record.last_task_id,
                "storedTaskRows": [row.task_id for row in rows],
            },
            loaded_queue_progress=None
            if queue is None
            else {
                "generation": queue.generation,
                "rangeId": queue.record.range_id,
                "readLevel": queue.read_level,
                "ackLevel": queue.ack_level,
                "dispatchedAboveGap": sum(sub.acks.done_above_gap for sub in queue.subqueues.values()),
            },
            outstanding=None if queue is None else queue.unhandled,
        )


async def walk() -> AsyncIterator[Step]:
    """The steps, in order. Needs `memory_tables` around it."""
    database = database_of(connections.databases[ALIAS])
    await database.start()
    life = Lifecycle(
        store=open_task_store(database),
        user_data=open_user_data_store(database),
        deployments=open_deployment_store(database),
    )
    try:
        yield await life.look("before the first load: no row")
        await life.load()
        for workflow_id in TASKS:
            await life.spool(workflow_id)
        yield await life.look("three tasks were spooled, as nobody polls")
        life.history.busy = {TASKS[0]}
        given = await life.poll()
        await life.checkpoint()
        yield await life.look(f"a worker polled; {TASKS[0]} can't be started yet, so it was given {given}")
        await life.unload()
        yield await life.look("unloaded: rows stay, a dispatched one among them; the manager's knowledge is gone")
        life.history.busy = set()
        await life.load()
        both = [await life.poll(), await life.poll()]
        await life.checkpoint()
        yield await life.look(f"reloaded: {' and '.join(both)} were given out; {TASKS[1]} was known as started")
        await life.unload()
        yield await life.look("unloaded again: the queue's row remains, and its range was taken twice")
    finally:
        if life.service is not None:
            await life.unload()
        await database.stop()


@contextmanager
def memory_tables() -> Iterator[None]:
    """Matching's tables in a database in memory, beside whatever is configured."""
    with closing(keep_memory_database()):
        entry = database_settings("sqlite://:memory:", name="the walkthrough's database", base_dir=BASE_DIR)
        connections.databases[ALIAS] = {**connections.databases["default"], **entry}
        try:
            call_command("migrate", "matching", database=ALIAS, interactive=False, verbosity=0, skip_checks=True)
            yield
        finally:
            connections[ALIAS].close()
            del connections.databases[ALIAS]
