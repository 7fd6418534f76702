"""The one place where the roles meet: builds what a process runs from settings and ties the services' contracts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta

from django.conf import settings

from common.clock import Clock, RealClock
from common.database import open_database
from common.service import OnFailure, Service, ServiceGroup
from tinytemporal_site.roles import ROLES


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
) -> Service:
    """All roles of one process as one service: database first, web last; stopped in reverse."""
    members: list[Service] = []
    if roles != {"web"}:
        members += _engine_members(host=host, on_failure=on_failure, clock=clock or RealClock())
    if "web" in roles:
        from tinytemporal_site.web import WebService

        members.append(WebService(host=settings.BIND_ADDRESS, port=settings.WEB_PORT))
    return ServiceGroup(name="tinytemporal", members=members)


def _engine_members(*, host: str, on_failure: OnFailure | None, clock: Clock) -> list[Service]:
    from frontend.config import FrontendConfig
    from frontend.server import FrontendServer
    from history.config import HistoryConfig
    from history.engine.engine import Engine
    from history.namespaces import NamespaceRegistry
    from history.service import history_service
    from history.store import open_execution_store, open_namespace_store
    from matching.config import MatchingConfig
    from matching.service import MatchingService
    from matching.store import open_task_store, open_user_data_store
    from visibility.store import open_visibility_store

    database = open_database()
    namespaces = NamespaceRegistry(store=open_namespace_store(database), clock=clock)
    visibility = open_visibility_store(database)
    config = HistoryConfig(
        shards=settings.NUM_HISTORY_SHARDS,
        suggest_continue_as_new_events=settings.SUGGEST_CONTINUE_AS_NEW_EVENTS,
        long_poll=timedelta(seconds=20),
    )
    engine = Engine(
        store=open_execution_store(database, config),
        visibility=visibility,
        namespaces=namespaces,
        clock=clock,
        config=config,
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
        user_data=open_user_data_store(database),
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
    return [
        Part(name="database", start=database.start, stop=database.stop),
        Part(name="namespaces", start=namespaces.start),
        matching,
        engine,
        frontend,
    ]
