"""The live side for a command: an event loop in a thread, with a process that plays no role and finds the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from common.clock import RealClock
from common.service import Service, ServiceGroup
from tinytemporal_site.console import live

WITHIN = timedelta(seconds=3)
STEP = timedelta(milliseconds=20)


@contextmanager
def reached(*, host: str) -> Iterator[bool]:
    """While this lasts, `live` reaches the processes of the cluster; false when there is no way to them: a database of one
    process (SQLite) is reached by that process alone."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="live side", daemon=True)
    thread.start()
    try:
        service = asyncio.run_coroutine_threadsafe(_begin(host), loop).result()
        try:
            yield live.services() is not None
        finally:
            asyncio.run_coroutine_threadsafe(service.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _begin(host: str) -> Service:
    from tinytemporal_site.composition import Process

    clock = RealClock()
    process = Process(roles=frozenset(), host=host, on_failure=None, clock=clock)
    members = process.live_side(alone=True)
    service = ServiceGroup(name="live side", members=members)
    await service.start()
    until = clock.now() + WITHIN
    while members and live.services() is None and clock.now() < until:
        await clock.sleep(STEP)
    return service
