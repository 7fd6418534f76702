"""The frontend's HTTP port, from start to stop."""

from __future__ import annotations

import errno

from common.http_server import HttpServer
from frontend.http.application import Handler, HttpApplication
from frontend.http.gateway import Gateway
from frontend.http.nexus import BODY_LIMIT, BY_ENDPOINT, BY_QUEUE, NexusOperations
from frontend.http.nexus_completions import BODY_LIMIT as COMPLETION_LIMIT
from frontend.http.nexus_completions import PATH, NexusCompletions
from frontend.services import Frontend

DEFAULT_PORT = 7243


class HttpPort:
    """Listens on `host`:`port`; with no port on 7243 or, when somebody has that, on any free one."""

    def __init__(self, frontend: Frontend, *, host: str, port: int | None) -> None:
        self._frontend = frontend
        self._host = host
        self._port = port
        self._server: HttpServer | None = None

    async def start(self) -> None:
        """Raises OSError when it cannot listen."""
        config = self._frontend.config
        application = HttpApplication(find=_Find(self._frontend), clock=self._frontend.clock, config=config)
        self._server = HttpServer(application, drain=config.stop_grace, most_requests=config.http_requests)
        self._frontend.http_address = await self._listen(self._server)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()
            self._frontend.http_address = ""

    async def _listen(self, server: HttpServer) -> str:
        port = DEFAULT_PORT if self._port is None else self._port
        try:
            return await server.start(host=self._host, port=port)
        except OSError as error:
            if self._port is not None or error.errno != errno.EADDRINUSE:
                raise OSError(
                    error.errno, f"cannot listen on {self._host}:{port} for HTTP: {error.strerror}"
                ) from error
        return await server.start(host=self._host, port=0)


class _Find:
    """Whose a path is, and how large a body may be there."""

    def __init__(self, frontend: Frontend) -> None:
        self._gateway = Gateway(frontend)
        self._operations = NexusOperations(frontend)
        self._completions = NexusCompletions(frontend)
        self._limit = frontend.config.request_limit

    def __call__(self, raw_path: str) -> tuple[Handler, int]:
        if BY_ENDPOINT.fullmatch(raw_path) or BY_QUEUE.fullmatch(raw_path):
            return self._operations.answer, BODY_LIMIT
        if PATH.fullmatch(raw_path):
            return self._completions.answer, COMPLETION_LIMIT
        return self._gateway.answer, self._limit
