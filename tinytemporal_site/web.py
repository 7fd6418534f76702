"""The web side (the admin) as a service on the process's own event loop.

Views are synchronous and run in threads, so a slow page holds up no workflow. Django's request stack is built, also in a
thread, by the first request; until then the web side costs a listening socket.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from common.http_server import Application, HttpServer, Receive, Send
from common.service import Service
from tinytemporal_site import web_streams

_DRAIN = timedelta(seconds=3)


def build_application() -> Application:
    """Django's ASGI application; imported late, since it brings in everything that the web side needs."""
    from django.core.asgi import get_asgi_application

    return get_asgi_application()


class WebService(Service):
    """Serves the admin on `host`:`port` (0: any free port) from `start` until `stop`.

    `start` raises `OSError` when the address cannot be had. `stop` ends streamed answers and lets other requests finish for a few seconds.
    """

    def __init__(self, *, host: str, port: int) -> None:
        super().__init__(name="web")
        self._host = host
        self._port = port
        self._lock = asyncio.Lock()
        self._server: HttpServer | None = None
        self._address = ""

    async def start(self) -> None:
        async with self._lock:
            if self._server is not None:
                return
            server = HttpServer(LazyApplication(build_application), drain=_DRAIN)
            self._address = await server.start(host=self._host, port=self._port)
            self._server = server

    async def stop(self) -> None:
        async with self._lock:
            server, self._server = self._server, None
            if server is not None:
                web_streams.end_all()
                await server.stop()

    def addresses(self) -> dict[str, str]:
        return {self.name: self._address} if self._server is not None else {}


class LazyApplication:
    """An ASGI application that is built in a thread by its first request; later ones wait for the same outcome.

    When building fails, the request that tried fails and the next one tries again.
    """

    def __init__(self, build: Callable[[], Application]) -> None:
        self._build = build
        self._built: Application | None = None
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if self._built is None:
            async with self._lock:
                if self._built is None:
                    self._built = await asyncio.to_thread(self._build)
        await self._built(scope, receive, send)
