"""The one place where the roles meet: builds what a process runs from settings and ties the services' contracts."""

from __future__ import annotations

import os
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from msgspec.structs import replace

from common.clock import Clock, RealClock
from common.database import Database, open_database
from common.rpc import HISTORY, HISTORY_INSPECT, MATCHING, MATCHING_INSPECT, Contract
from common.service import OnFailure, Service, ServiceGroup
from common.skipping_clock import SkippingClock
from common.time_skipping import TimeSkipping
from tinytemporal_site import time_skipping
from tinytemporal_site.cluster import Cluster, QueuePlacement
from tinytemporal_site.roles import ROLES

if TYPE_CHECKING:
    from frontend.server import FrontendServer
    from history.engine.engine import Engine
    from matching.service import MatchingService
    from tinytemporal_site.console.live import Services as LiveServices
    from worker.schedules.loop import ScheduleLoop


class Part(Service):
    """Something that others made with a start and perhaps a stop of its own, as a member of the process."""

    def __init__(
        self,
        *,
        name: str,
        start: Callable[[], Awaitable[None]],
        stop: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(name=name)
        self._start = start
        self._stop = stop

    async def start(self) -> None:
        await self._start()

    async def stop(self) -> None:
        if self._stop is not None:
            await self._stop()


def build_server(
    *,
    roles: frozenset[str] = frozenset(ROLES),
    host: str,
    on_failure: OnFailure | None = None,
    clock: Clock | None = None,
    time_locks: int = 1,
) -> Service:
    """The given roles of one process as one service: database first, web last; stopped in reverse. With TIME_SKIPPING time
    begins under so many locks; raises ImproperlyConfigured when roles are missing then."""
    if settings.TIME_SKIPPING:
        time_skipping.check_roles(roles)
        clock = clock or SkippingClock()
    clock = clock or RealClock()
    process = Process(roles=roles - {"web"}, host=host, on_failure=on_failure, clock=clock, time_locks=time_locks)
    members: list[Service] = []
    if roles != {"web"}:
        members += process.members()
    if "web" in roles:
        from tinytemporal_site.web import WebService

        members += process.live_side(alone=roles == {"web"})
        members.append(WebService(host=settings.BIND_ADDRESS, port=settings.WEB_PORT))
    return ServiceGroup(name="tinytemporal", members=members)


def databases_of_shards(opened: dict[str, Database] | None = None) -> dict[int, Database]:
    """Each History shard's database; `opened` are those that are open already, by alias, and gets those that are not."""
    opened = {} if opened is None else opened
    found: dict[int, Database] = {}
    for shard_id in range(1, settings.NUM_HISTORY_SHARDS + 1):
        alias = settings.HISTORY_SHARD_DATABASES.get(shard_id, "default")
        if alias not in opened:
            opened[alias] = open_database(alias)
        found[shard_id] = opened[alias]
    return found


def database_of_visibility(opened: dict[str, Database] | None = None) -> Database:
    """The read model's; `opened` as for `databases_of_shards`."""
    from visibility.router import alias

    opened = {} if opened is None else opened
    if alias() not in opened:
        opened[alias()] = open_database(alias())
    return opened[alias()]


class Process:
    """What one process runs: its roles' services, tied to each other here and to those of other processes by routers."""

    def __init__(
        self, *, roles: frozenset[str], host: str, on_failure: OnFailure | None, clock: Clock, time_locks: int = 1
    ) -> None:
        from history.config import HistoryConfig
        from history.namespaces import NamespaceRegistry
        from history.nexus_endpoints import NexusEndpoints
        from history.store import open_namespace_store, open_nexus_endpoint_store
        from matching.config import MatchingConfig
        from tinytemporal_site.routing import history_router, matching_router
        from visibility.store import open_visibility_store
        from worker.batches.store import BatchStore
        from worker.schedules.service import ScheduleService
        from worker.schedules.store import ScheduleStore

        self.host = host
        self.on_failure = on_failure
        self.clock = clock
        self.time = TimeSkipping(clock=clock, locks=time_locks) if isinstance(clock, SkippingClock) else None
        self.databases: dict[str, Database] = {"default": open_database()}
        database = self.databases["default"]
        self.cluster = Cluster(host=host, roles=roles, database=database, clock=clock)
        kept: dict[str, Any] = {} if self.time is None else {"default_retention": time_skipping.RETENTION}
        self.namespaces = NamespaceRegistry(store=open_namespace_store(database), clock=clock, **kept)
        self.endpoints = NexusEndpoints(store=open_nexus_endpoint_store(database), clock=clock)
        self.visibility = open_visibility_store(database_of_visibility(self.databases))
        self.batches = BatchStore(database=database, clock=clock)
        self.schedule_store = ScheduleStore(database=database)
        self.schedules = ScheduleService(store=self.schedule_store, clock=clock)
        self.history_config = HistoryConfig(
            shards=settings.NUM_HISTORY_SHARDS,
            suggest_continue_as_new_events=settings.SUGGEST_CONTINUE_AS_NEW_EVENTS,
            long_poll=timedelta(seconds=20),
            nexus_callback_url=settings.NEXUS_CALLBACK_URL,
        )
        if self.time is not None:
            # The read model's writes are waited for before time is skipped: gathering would make each skip longer.
            self.history_config = replace(self.history_config, visibility_gather=timedelta())
        links: dict[str, Any] = {
            "membership": self.cluster.membership,
            "channels": self.cluster.channels,
            "clock": clock,
        }
        self.engine = self._engine() if "history" in roles else None
        local_history = _history_of(self.engine)
        self.history = history_router(local=local_history, shards=settings.NUM_HISTORY_SHARDS, **links)
        self.matching_config = MatchingConfig(
            partitions=settings.MATCHING_PARTITIONS, queue_partitions=settings.MATCHING_QUEUE_PARTITIONS
        )
        self.matching_service = self._matching() if "matching" in roles else None
        self.matching = matching_router(
            local=self.matching_service, partitions_of=self.matching_config.partitions_of, **links
        )
        if self.matching_service is not None:
            self.matching_service.others.client = self.matching
        self.frontend = self._frontend() if "frontend" in roles else None
        self.worker = self._worker() if "worker" in roles else None
        if self.engine is not None:
            self.engine.history = self.history
            self.engine.matching = self.matching
            self.engine.schedules = self.schedules
        self._inspectors = self._make_inspectors()
        self._served = self._make_served(local_history)

    def _make_inspectors(self) -> dict[str, Any]:
        """What tells of this process, by role."""
        from history.api.inspect import Inspector as HistoryInspector
        from matching.inspect import Inspector as MatchingInspector

        found: dict[str, Any] = {}
        if self.engine is not None:
            found["history"] = HistoryInspector(self.engine)
        if self.matching_service is not None:
            queues = self.matching_service.queues
            found["matching"] = MatchingInspector(queues=queues, host=self.host, clock=self.clock)
        return found

    def _make_served(self, local_history: Any) -> dict[str, dict[Contract, Any]]:
        """What other processes may call here: role → contract → implementation."""
        found: dict[str, dict[Contract, Any]] = {}
        if local_history is not None:
            found["history"] = {HISTORY: local_history, HISTORY_INSPECT: self._inspectors["history"]}
        if self.matching_service is not None:
            found["matching"] = {MATCHING: self.matching_service, MATCHING_INSPECT: self._inspectors["matching"]}
        return found

    def _engine(self) -> Engine:
        from history.engine.engine import Engine
        from history.store import open_execution_store

        engine = Engine(
            store=open_execution_store(databases_of_shards(self.databases), self.history_config),
            visibility=self.visibility,
            namespaces=self.namespaces,
            endpoints=self.endpoints,
            clock=self.clock,
            config=self.history_config,
            host=self.host,
            on_failure=self.on_failure,
            owns=self.cluster.owns_shard,
            refresh=self.cluster.membership.refresh,
            databases=settings.HISTORY_SHARD_DATABASES,
        )
        self.cluster.membership.subscribe(engine.controller.rebalance)
        return engine

    def _matching(self) -> MatchingService:
        from matching.service import MatchingService
        from matching.store import open_deployment_store, open_task_store, open_user_data_store

        database = self.databases["default"]
        service = MatchingService(
            store=open_task_store(database),
            history=self.history,
            clock=self.clock,
            config=self.matching_config,
            host=self.host,
            user_data=open_user_data_store(
                database, home="chasm" if settings.TASK_QUEUE_USER_DATA == "CHASM" else "table"
            ),
            deployments=open_deployment_store(database),
            placement=QueuePlacement(cluster=self.cluster),
        )
        self.cluster.membership.subscribe(service.queues.rebalance)
        return service

    def _frontend(self) -> FrontendServer:
        from frontend.config import FrontendConfig
        from frontend.server import FrontendServer

        return FrontendServer(
            history=self.history,
            matching=self.matching,
            visibility=self.visibility,
            batches=self.batches,
            schedules=self.schedules,
            namespaces=self.namespaces,
            endpoints=self.endpoints,
            clock=self.clock,
            config=FrontendConfig(
                history_shards=settings.NUM_HISTORY_SHARDS,
                persistence_store=self.databases["default"].dialect,
                callback_addresses=settings.CALLBACK_ALLOWED_ADDRESSES,
                workflow_rules=settings.WORKFLOW_RULES,
            ),
            address=f"{settings.BIND_ADDRESS}:{settings.FRONTEND_PORT}",
            http=None if settings.HTTP_PORT == "off" else (settings.BIND_ADDRESS, settings.HTTP_PORT),
            time=self.time,
        )

    def _worker(self) -> Service:
        from worker.retention import RetentionLoop

        retention = RetentionLoop(
            history=self.history,
            namespaces=self.namespaces,
            clock=self.clock,
            shards=settings.NUM_HISTORY_SHARDS,
            sweeps=self.cluster.sweeps_shard,
            batches=self.batches,
        )
        schedules = self._schedule_loop()
        if self.time is not None and self.engine is not None:
            time_skipping.watch(self.time, engine=self.engine, schedules=schedules, store=self.schedule_store)
        return ServiceGroup(name="worker", members=[retention, self._batch_loop(), schedules, self._drainage_loop()])

    def _drainage_loop(self) -> Service:
        from matching.store import open_deployment_store
        from worker.drainage import DrainageLoop

        return DrainageLoop(
            store=open_deployment_store(self.databases["default"]),
            matching=self.matching,
            visibility=self.visibility,
            clock=self.clock,
            config=self.matching_config,
            runs=lambda: self.cluster.sweeps_shard(1),
        )

    def _batch_loop(self) -> Service:
        from worker.batches.loop import BatchLoop
        from worker.batches.operations import Operations
        from worker.batches.runner import BatchRunner

        # As upstream's, which is that of an SDK client without a task queue.
        identity = f"{os.getpid()}@{socket.gethostname()}@"
        operations = Operations(history=self.history, clock=self.clock, identity=identity)
        runner = BatchRunner(
            store=self.batches,
            operations=operations,
            visibility=self.visibility,
            namespaces=self.namespaces,
            clock=self.clock,
            host=self.host,
        )
        loop = BatchLoop(
            store=self.batches,
            runner=runner,
            clock=self.clock,
            others=not self.cluster.is_alone,
            runs=self.cluster.runs_batch,
        )
        self.batches.changed = loop.wake
        self.cluster.membership.subscribe(loop.wake)
        return loop

    def _schedule_loop(self) -> ScheduleLoop:
        from worker.schedules.loop import ScheduleLoop
        from worker.schedules.runner import ScheduleRunner

        runner = ScheduleRunner(
            store=self.schedule_store, history=self.history, clock=self.clock, config=self.history_config
        )
        loop = ScheduleLoop(
            store=self.schedule_store,
            runner=runner,
            clock=self.clock,
            others=not self.cluster.is_alone,
            runs=self.cluster.runs_schedule,
        )
        self.schedule_store.changed = loop.wake
        self.cluster.membership.subscribe(loop.wake)
        return loop

    def live_side(self, *, alone: bool) -> list[Service]:
        """What the admin's pages reach the services through. `alone`: in a process that plays no other role; one that has
        its database to itself can be reached by no such process."""
        from tinytemporal_site.console.binding import LiveSide

        if not alone:
            return [LiveSide(services_of=self._live_services, clock=self.clock)]
        if self.cluster.is_alone:
            return []
        links = ServiceGroup(name="links of the admin", members=self.members())
        return [LiveSide(services_of=self._live_services, clock=self.clock, links=links)]

    def _live_services(self) -> LiveServices:
        from tinytemporal_site.console.live import Services as LiveServices

        frontend = self.frontend or self._frontend()
        return LiveServices(
            history=self.history,
            matching=self.matching,
            frontend=frontend.frontend,
            membership=self.cluster.membership,
            channels=self.cluster.channels,
            clock=self.clock,
            shards=settings.NUM_HISTORY_SHARDS,
            history_inspector=self._inspectors.get("history"),
            matching_inspector=self._inspectors.get("matching"),
        )

    def members(self) -> list[Service]:
        """In the order of their start. The departure comes before the engine's end: others are told to go elsewhere, no
        new call is taken, and those in flight come to theirs."""
        found: list[Service] = [
            Part(name=f"database {alias}", start=database.start, stop=database.stop)
            for alias, database in self.databases.items()
        ]
        found.append(Part(name="namespaces", start=self.namespaces.start))
        found.append(Part(name="connections", start=_nothing, stop=self.cluster.channels.close))
        if not self.cluster.is_alone:
            found += self.cluster.serve(self._served)
        found.append(self.cluster.membership)
        found += [service for service in (self.matching_service, self.engine) if service is not None]
        if not self.cluster.is_alone:
            found.append(Part(name="departure", start=_nothing, stop=self._depart))
        if self.frontend is not None:
            found.append(self.frontend)
        if self.worker is not None:
            found.append(self.worker)
        if self.time is not None:
            found.append(self.time)
        return found

    async def _depart(self) -> None:
        await self.cluster.membership.stop()
        if self.matching_service is not None:
            await self.matching_service.stop()
        for server in self.cluster.servers:
            await server.stop()


def _history_of(engine: Engine | None) -> Any:
    from history.service import history_service

    return None if engine is None else history_service(engine)


async def _nothing() -> None:
    """A member that only has something to stop."""
