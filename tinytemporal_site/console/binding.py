"""Ties the admin's pages to the services: as a member of the process, started before the web side and stopped after it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from common.clock import Clock
from common.errors import Unavailable
from common.service import Service, TaskLoop
from tinytemporal_site.console import live

log = logging.getLogger(__name__)

AGAIN_AFTER = timedelta(seconds=2)


class LiveSide(Service):
    """`services_of()` gives what pages may call. `links` are started first, for a process that plays no other role: they
    find the others. They may be late: the web side shows the rows meanwhile."""

    def __init__(self, *, services_of: Callable[[], live.Services], clock: Clock, links: Service | None = None) -> None:
        super().__init__(name="live side of the admin")
        self._services_of = services_of
        self._links = links
        self._clock = clock
        self._loop = TaskLoop(name=self.name, run=self._connect)

    async def start(self) -> None:
        if self._links is None:
            live.bind(self._services_of())
        else:
            await self._loop.start()

    async def stop(self) -> None:
        live.unbind()
        if self._links is not None:
            await self._loop.stop()
            await self._links.stop()

    async def _connect(self) -> None:
        assert self._links is not None
        while True:
            try:
                await self._links.start()
                break
            except Unavailable as error:
                log.info("the other processes can't be looked up yet: %s", error)
            await self._clock.sleep(AGAIN_AFTER)
        live.bind(self._services_of())
        while True:
            await self._clock.sleep(timedelta(days=1))
