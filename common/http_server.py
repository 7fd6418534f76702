"""An HTTP server on the process's own event loop, for any ASGI application.

uvicorn is used as a library: its signal handlers and its ticking main loop stay out, the process owns both. It is imported
by the first start, so whoever serves no HTTP does not load it.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import uvicorn

# ASGI's three arguments: the scope, and the two halves of the conversation.
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

_BACKLOG = 128


class HttpServer:
    """Serves `application` between `start` and `stop`; `drain` is how long `stop` lets requests in flight go on.

    `most_requests`: connections and requests beyond so many are answered 503.
    """

    def __init__(self, application: Application, *, drain: timedelta, most_requests: int | None = None) -> None:
        self._application = application
        self._drain = drain
        self._most_requests = most_requests
        self._server: uvicorn.Server | None = None

    async def start(self, *, host: str, port: int) -> str:
        """Where it listens, as HOST:PORT; port 0 is any free one. Raises OSError when the address cannot be had."""
        listener = _listen(host, port)
        try:
            server = self._make()
            await server.startup(sockets=[listener])
        except BaseException:
            listener.close()
            raise
        self._server = server
        return _text_address(listener)

    async def stop(self) -> None:
        """Does nothing when it does not run."""
        server, self._server = self._server, None
        if server is not None:
            await server.shutdown()

    def _make(self) -> uvicorn.Server:
        import uvicorn

        config = uvicorn.Config(
            self._application,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            # The date header comes from the ticking loop that is not run here.
            date_header=False,
            limit_concurrency=self._most_requests,
            timeout_graceful_shutdown=max(1, int(self._drain.total_seconds())),
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
