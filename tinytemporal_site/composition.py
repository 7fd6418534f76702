"""The one place where the roles meet: builds what a process runs from settings and ties the services' contracts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings

from common.clock import Clock, RealClock
from common.database import Database, open_database
from common.service import OnFailure, Service, ServiceGroup
from tinytemporal_site.roles import ROLES


class DatabaseService(Service):
    """A database connection pool that lives as long as the process serves."""

    def __init__(self, database: Database) -> None:
        super().__init__(name="database")
        self._database = database

    async def start(self) -> None:
        await self._database.start()

    async def stop(self) -> None:
        await self._database.stop()


def build_server(
    *,
    roles: frozenset[str] = frozenset(ROLES),
    host: str,
    on_failure: OnFailure | None = None,
    clock: Clock | None = None,
) -> Service:
    """All roles of one process as one service: database first, web last; stopped in reverse."""
    members: list[Service] = []
    if roles != {"web"}:
        members += _engine_members(host=host, on_failure=on_failure, clock=clock or RealClock())
    if "web" in roles:
        from tinytemporal_site.web import WebService

        members.append(WebService(host=settings.BIND_ADDRESS, port=settings.WEB_PORT))
    return Server(name="tinytemporal", members=members)


class Server(ServiceGroup):
    """The process's services; its addresses are those of the members that listen."""

    def __init__(self, *, name: str, members: Sequence[Service]) -> None:
        super().__init__(name=name, members=members)
        self.parts = tuple(members)

    def addresses(self) -> dict[str, str]:
        return {role: address for part in self.parts for role, address in part.addresses().items()}


def _engine_members(*, host: str, on_failure: OnFailure | None, clock: Clock) -> list[Service]:
    from frontend.server import FrontendConfig, FrontendServer
    from history.config import HistoryConfig
    from history.engine.engine import Engine
    from history.namespaces import NamespaceRegistry
    from history.service import history_service
    from history.store import open_execution_store, open_namespace_store
    from matching.service import MatchingConfig, MatchingService
    from matching.store import open_task_store
    from visibility.store import open_visibility_store

    database = open_database()
    namespaces = NamespaceRegistry(store=open_namespace_store(database), clock=clock)
    visibility = open_visibility_store(database)
    engine = Engine(
        store=open_execution_store(database),
        visibility=visibility,
        namespaces=namespaces,
        clock=clock,
        config=HistoryConfig(
            shards=settings.NUM_HISTORY_SHARDS,
            suggest_continue_as_new_events=settings.SUGGEST_CONTINUE_AS_NEW_EVENTS,
            long_poll=timedelta(seconds=20),
        ),
        host=host,
        on_failure=on_failure,
    )
    history = history_service(engine)
    matching = MatchingService(
        store=open_task_store(database),
        history=history,
        clock=clock,
        config=MatchingConfig(partitions=settings.MATCHING_PARTITIONS),
        host=host,
    )
    engine.history = history
    engine.matching = matching
    frontend = FrontendServer(
        history=history,
        matching=matching,
        visibility=visibility,
        namespaces=namespaces,
        clock=clock,
        config=FrontendConfig(),
        address=f"{settings.BIND_ADDRESS}:{settings.FRONTEND_PORT}",
    )
    return [DatabaseService(database), namespaces, matching, engine, frontend]
