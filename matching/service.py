"""Matching in process: what History and the frontend call (`MatchingClient`), over the queues that this process loads."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice import v1 as ws

from common import deadline
from common.clock import Clock
from common.contracts.history import HistoryClient
from common.contracts.matching import (
    AddTask,
    AnyQueueType,
    DispatchNexusTask,
    NexusOutcome,
    QueryWorkflow,
    QueueType,
    StickyWorkerUnavailable,
)
from common.contracts.tokens import QueryToken, decode_token, encode_token
from common.errors import QueueOwnershipLost, Unavailable
from common.rpc.errors import HostUnreachable
from common.service import RestartPolicy, Service, TaskLoop
from matching.build_ids import BuildIdCalls
from matching.config import MatchingConfig
from matching.delivery import arriving
from matching.deployments.calls import DeploymentCalls
from matching.deployments.service import Deployments
from matching.deployments.store import DeploymentStore
from matching.describe_calls import DescribeCalls
from matching.matcher import Poller, Reload
from matching.names import parse_partition, parse_physical_queue
from matching.nexus import NexusCalls
from matching.other_hosts import OtherHosts
from matching.placement import Alone, Placement
from matching.queries import QueryAnswers
from matching.routing import poll_version, task_version
from matching.shutdowns import ShutDownWorkers
from matching.starts import Starter
from matching.store.base import TaskStore, UserDataStore
from matching.task_queue import TaskQueue
from matching.task_queues import TaskQueueKey, TaskQueues
from matching.user_data import UserDataManager
from matching.user_data_calls import UserDataCalls
from matching.versions import Versions
from matching.workers import WorkerRegistry

RELOADS = 10
"""How often one call follows its queue through reloads before it tells its caller to come again."""


class MatchingService(Service, DescribeCalls, UserDataCalls, BuildIdCalls, DeploymentCalls):
    """Implements `common.contracts.matching.MatchingClient`. `host` is the name of this process in the cluster.

    `placement` says what this host holds of which queue; call `queues.rebalance` when its answers change. `others.client`
    reaches all Matching hosts.
    """

    def __init__(
        self,
        store: TaskStore,
        history: HistoryClient,
        clock: Clock,
        config: MatchingConfig,
        host: str,
        *,
        user_data: UserDataStore,
        deployments: DeploymentStore,
        placement: Placement | None = None,
    ) -> None:
        super().__init__(name="matching")
        self._store = store
        self._placement = placement or Alone(host=host)
        self._history = history
        self._clock = clock
        self._config = config
        self._host = host
        self._user_data = UserDataManager(store=user_data, clock=clock)
        self.deployments = Deployments(store=deployments, queues=self, clock=clock, config=config)
        self.others = OtherHosts(client=self, placement=self._placement, host=host, clock=clock, config=config)
        self.queues = TaskQueues(
            store=store,
            user_data=self._user_data,
            starter=Starter(history=history),
            clock=clock,
            config=config,
            host=host,
            placement=self._placement,
            others=self.others,
        )
        self.versions = Versions(queues=self.queues, deployments=self.deployments)
        self._refreshing = TaskLoop(name="user data", run=self._refresh_regularly, restart=RestartPolicy(), clock=clock)
        self._answers = QueryAnswers(clock=clock)
        self._nexus = NexusCalls(clock=clock, queue_of=self.versions.for_nexus)
        self._shut_down = ShutDownWorkers(clock=clock, config=config)
        self._workers = WorkerRegistry(clock=clock, config=config)
        self._running = False

    async def start(self) -> None:
        self._running = True
        self.queues.start()
        await self._refreshing.start()

    async def stop(self) -> None:
        """End the polls with empty answers, save all progress, unload everything."""
        if not self._running:
            return
        self._running = False
        for queue in self.queues:
            queue.end_polls()
        await self._refreshing.stop()
        await self.others.stop()
        await self.queues.stop()

    # tasks

    async def add_task(self, request: AddTask) -> str:
        for _ in range(RELOADS):
            self._check_running()
            queue = await self._queue_for_task(request)
            try:
                return await queue.add(arriving(request, now=self._clock.now()))
            except QueueOwnershipLost:
                continue
        raise Unavailable(f"Task queue {request.task_queue} changes hands too often.")

    async def _queue_for_task(self, request: AddTask) -> TaskQueue:
        name, _ = parse_partition(request.task_queue)
        version = task_version(request)
        if (
            version
            and request.kind == "activity"
            and not await self.versions.has(
                namespace=request.namespace, task_queue=name, kind="activity", version=version
            )
        ):
            version = ""  # an activity of its own: it goes where its queue's routing says
        key = TaskQueueKey(request.namespace, name, request.kind, version)
        queue = self.queues.loaded(key)
        if queue is not None:
            return queue
        if request.normal_name:
            # Not loaded means that nobody polls it. Source: upstream does not load sticky queues for tasks either.
            raise StickyWorkerUnavailable(f"Nobody polls sticky task queue {name}.")
        return await self.queues.load(key)

    async def offer_task(self, request: AddTask, *, patience: timedelta) -> bool:
        name, _ = parse_partition(request.task_queue)
        key = TaskQueueKey(request.namespace, name, request.kind, task_version(request))
        for _ in range(RELOADS):
            self._check_running()
            queue = self.queues.loaded(key) or await self.queues.load(key)
            if not queue.is_root:
                raise self._not_root(key)
            if version := queue.ready.version_for(request):
                queue = await self.queues.load(replace(key, version=version))
            try:
                return await queue.offer(arriving(request, now=self._clock.now()), patience=patience)
            except QueueOwnershipLost:
                continue
        raise Unavailable(f"Task queue {request.task_queue} changes hands too often.")

    def _not_root(self, key: TaskQueueKey) -> QueueOwnershipLost:
        self._placement.owns(namespace=key.namespace, family=key.name, partition=0)
        return QueueOwnershipLost(physical_queue=f"{key.namespace}/{key.kind}/{key.name}")

    # polls

    async def poll_workflow_task_queue(
        self, request: ws.PollWorkflowTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollWorkflowTaskQueueResponse:
        answer = await self._poll(request, "workflow", forwarded=forwarded)
        return answer or ws.PollWorkflowTaskQueueResponse()

    async def poll_activity_task_queue(
        self, request: ws.PollActivityTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollActivityTaskQueueResponse:
        answer = await self._poll(request, "activity", forwarded=forwarded)
        return answer or ws.PollActivityTaskQueueResponse()

    async def poll_nexus_task_queue(
        self, request: ws.PollNexusTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollNexusTaskQueueResponse:
        answer = await self._poll(request, "nexus", forwarded=forwarded)
        return answer or ws.PollNexusTaskQueueResponse()

    async def _poll(self, request: Any, kind: AnyQueueType, *, forwarded: bool) -> Any:
        """The response, None when nothing came in time."""
        task_queue = request.task_queue
        name, _ = parse_partition(task_queue.name)
        key = TaskQueueKey(request.namespace, name, kind, poll_version(request))
        until = deadline.earlier(self._clock.now() + self._config.long_poll, margin=self._config.empty_poll_margin)
        instance_key = request.worker_instance_key
        began = self._clock.monotonic()
        while self._running and not self._shut_down.has(instance_key):
            if poll_version(request):
                await self.versions.enter(key, request.deployment_options)
            elif request.worker_version_capabilities.use_versioning:
                key = await self.versions.of_build(key, request)
            queue = self.queues.loaded(key) or await self.queues.load(key, normal_name=task_queue.normal_name)
            if forwarded and not queue.is_root:
                raise self._not_root(key)
            if self._shut_down.has(instance_key):
                return None  # it went while its queue was loaded
            who = request.identity
            poller = Poller(request=request, identity=who, instance_key=instance_key, began=began, until=until)
            try:
                return await queue.poll(poller)
            except Reload:
                await self._clock.sleep(self._config.reload_delay)
                if self._clock.now() >= until:
                    return None
        return None

    async def shutdown_worker(self, request: ws.ShutdownWorkerRequest) -> ws.ShutdownWorkerResponse:
        """Ends the worker's outstanding polls with empty answers and closes its sticky queue to new tasks."""
        self._shut_down.add(request.worker_instance_key)
        if request.HasField("worker_heartbeat"):
            self._workers.leaves(
                namespace=request.namespace,
                heartbeat=request.worker_heartbeat,
                is_kept_here=self._placement.keeps_workers(request.namespace),
            )
        for queue in self.queues:
            if queue.namespace != request.namespace:
                continue
            if request.sticky_task_queue and queue.is_sticky and queue.name == request.sticky_task_queue:
                queue.close()
            if request.worker_instance_key:
                queue.end_polls(instance_key=request.worker_instance_key)
            if request.identity and queue.name == request.task_queue:
                queue.pollers.remove(request.identity)
        return ws.ShutdownWorkerResponse()

    async def has_recent_poller(self, *, namespace: str, task_queue: str, kind: QueueType, version: str = "") -> bool:
        """Whether a poller waits on the queue or polled in the last minute: at this host when a partition is named, else
        at any."""
        name, partition = parse_partition(task_queue)
        queue = self.queues.loaded(TaskQueueKey(namespace, name, kind, version))
        if queue is not None and queue.has_poller(self._config.recent_poller_window):
            return True
        others = [] if partition else self.others.partitions(namespace=namespace, family=name)
        found = await self.others.ask(
            others,
            lambda other: self.others.client.has_recent_poller(
                namespace=namespace, task_queue=other, kind=kind, version=version
            ),
        )
        return any(found)

    # queries

    async def query_workflow(self, request: QueryWorkflow) -> ws.QueryWorkflowResponse:
        until = self._clock.now() + request.timeout
        execution = WorkflowExecution(workflow_id=request.workflow_id, run_id=request.run_id)
        query_id = self._answers.expect()
        try:
            while True:
                queue, poller = await self._poller_for_query(request, until=until)
                response = await self._query_task(queue, poller, request, execution)
                response.query.CopyFrom(request.query)
                response.task_token = encode_token(
                    # The family's name, since that places the answer's way back to this host.
                    QueryToken(
                        namespace=request.namespace,
                        task_queue=request.normal_name or request.task_queue,
                        query_id=query_id,
                    )
                )
                if queue.matcher.answer(poller, response):
                    return await self._answers.wait(query_id, until=until)
        finally:
            self._answers.forget(query_id)

    async def _poller_for_query(self, request: QueryWorkflow, *, until: datetime) -> tuple[TaskQueue, Poller]:
        name, _ = parse_partition(request.task_queue)
        key = TaskQueueKey(request.namespace, name, "workflow")
        for _ in range(RELOADS):
            self._check_running()
            queue = self.queues.loaded(key)
            if queue is None and request.normal_name:
                raise StickyWorkerUnavailable(f"Nobody polls sticky task queue {name}.")
            queue = queue or await self.queues.load(key)
            if queue.routes is not None:
                queue = await self.versions.for_query(queue, request)
            try:
                return queue, await queue.poller_for_query(until=until)
            except Reload:
                continue
        raise Unavailable(f"Task queue {request.task_queue} changes hands too often.")

    async def _query_task(
        self, queue: TaskQueue, poller: Poller, request: QueryWorkflow, execution: WorkflowExecution
    ) -> ws.PollWorkflowTaskQueueResponse:
        try:
            return await self._history.query_task(
                namespace=request.namespace, execution=execution, sticky=bool(request.normal_name)
            )
        except BaseException:
            queue.give_back(poller)
            raise

    async def respond_query_task_completed(self, request: ws.RespondQueryTaskCompletedRequest) -> None:
        """Raises NotFound when nobody waits for the answer any more."""
        token = decode_token(QueryToken, request.task_token)
        self._answers.answered(token.query_id, request)

    # Nexus calls, see `matching.nexus`

    async def dispatch_nexus_task(self, request: DispatchNexusTask) -> NexusOutcome:
        self._check_running()
        return await self._nexus.dispatch(request)

    async def respond_nexus_task_completed(self, request: ws.RespondNexusTaskCompletedRequest) -> None:
        """Raises NotFound when nobody waits for the answer any more."""
        self._nexus.completed(request)

    async def respond_nexus_task_failed(self, request: ws.RespondNexusTaskFailedRequest) -> None:
        """Raises NotFound when nobody waits for the answer any more."""
        self._nexus.failed(request)

    # queues as a whole

    async def load_task_queue(self, *, namespace: str, task_queue: str, kind: AnyQueueType, version: str = "") -> None:
        name, _ = parse_partition(task_queue)
        queue = await self.queues.load(TaskQueueKey(namespace, name, kind, version))
        queue.stay()

    async def unload_task_queue(self, *, physical_queue: str, normal_name: str = "") -> bool:  # noqa: ARG002  places the call
        key = parse_physical_queue(physical_queue)
        return await self.queues.unload(TaskQueueKey(key.namespace, key.task_queue, key.kind, key.version))

    async def forget_namespace(self, *, namespace: str) -> None:
        for queue in self.queues:
            if queue.namespace == namespace:
                queue.end_polls()  # sent away, they would come again and make the rows anew
        for key in [key for key in self.queues.keys() if key.namespace == namespace]:  # noqa: SIM118  no mapping
            await self.queues.unload(key)
        await self._store.delete_namespace(namespace=namespace)
        await self._user_data.forget(namespace=namespace)
        await self.deployments.store.delete_namespace(namespace=namespace)

    # workers

    async def record_worker_heartbeat(
        self, request: ws.RecordWorkerHeartbeatRequest
    ) -> ws.RecordWorkerHeartbeatResponse:
        self._workers.heard(namespace=request.namespace, heartbeats=request.worker_heartbeat)
        return ws.RecordWorkerHeartbeatResponse()

    async def list_workers(self, request: ws.ListWorkersRequest) -> ws.ListWorkersResponse:
        return self._workers.list(request)

    async def count_workers(self, request: ws.CountWorkersRequest) -> ws.CountWorkersResponse:
        return self._workers.count(request)

    async def describe_worker(self, request: ws.DescribeWorkerRequest) -> ws.DescribeWorkerResponse:
        return self._workers.describe(request)

    def _check_running(self) -> None:
        if not self._running:
            raise HostUnreachable("Matching is shutting down.")
