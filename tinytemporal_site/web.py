"""The web side (the admin) as a service on the process's own event loop.

uvicorn is used as a library: its signal handlers and its ticking main loop stay out, the process owns both. Views are
synchronous and run in threads, so a slow page holds up no workflow. Django's request stack is built, also in a
thread, by the first request; until then the web side costs a listening socket.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from common.service import Service
from tinytemporal_site import web_streams

if TYPE_CHECKING:
    import uvicorn

# ASGI's three arguments: the scope, and the two halves of the conversation.
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

_DRAIN_S = 3
_BACKLOG = 128


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
        self._server: uvicorn.Server | None = None
        self._address = ""

    async def start(self) -> None:
        async with self._lock:
            if self._server is not None:
                return
            listener = _listen(self._host, self._port)
            server = _uvicorn_server(LazyApplication(build_application))
            await server.startup(sockets=[listener])
            self._server = server
            self._address = _text_address(listener)

    async def stop(self) -> None:
        async with self._lock:
            server, self._server = self._server, None
            if server is not None:
                web_streams.end_all()
                await server.shutdown()

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


def _uvicorn_server(application: LazyApplication) -> "uvicorn.Server":
    import uvicorn

    config = uvicorn.Config(
        application,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        # The date header comes from the ticking loop that is not run here.
        date_header=False,
        timeout_graceful_shutdown=_DRAIN_S,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    return server


def _listen(host: str, port: int) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


def _text_address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
