"""The frontend as a service: one gRPC server with the public services, health and reflection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import timedelta

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from common.clock import Clock
from common.contracts.batches import BatchClient
from common.contracts.history import HistoryClient
from common.contracts.matching import MatchingClient
from common.contracts.schedules import ScheduleClient
from common.contracts.visibility import VisibilityClient
from common.service import Service
from common.time_skipping import TimeSkipping
from frontend.config import FrontendConfig
from frontend.handlers import TemporalHandlers
from frontend.http.service import HttpPort
from frontend.methods import SERVICES
from frontend.namespace_removal import finish_all_removals
from frontend.services import Frontend
from frontend.time_skipping import TEST_SERVICE, CallCounter, TestServiceHandlers
from history.namespaces import NamespaceRegistry
from history.nexus_endpoints import NexusEndpoints

log = logging.getLogger(__name__)

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class FrontendServer(Service):
    """Listens on `address` (HOST:PORT; port 0 takes a free one) from `start` to `stop`, and on `http` (host and port; see
    HttpPort) if it is to serve that too. With `time` it also serves TestService, by which clients have time skipped.

    `start` raises OSError when the address can't be listened on. `stop` ends long polls with empty answers, gives calls in
    flight `config.stop_grace`, and cancels what is left.
    """

    def __init__(
        self,
        history: HistoryClient,
        matching: MatchingClient,
        visibility: VisibilityClient,
        batches: BatchClient,
        schedules: ScheduleClient,
        namespaces: NamespaceRegistry,
        endpoints: NexusEndpoints,
        clock: Clock,
        config: FrontendConfig,
        address: str,
        http: tuple[str, int | None] | None = None,
        time: TimeSkipping | None = None,
    ) -> None:
        super().__init__(name="frontend")
        self._time = time
        self._names = [service.full_name for service in (SERVICES if time is None else (*SERVICES, TEST_SERVICE))]
        self._wanted_address = address
        self._server: grpc.aio.Server | None = None
        self._removals: asyncio.Task[None] | None = None
        self._health = health_aio.HealthServicer()
        self.frontend = Frontend(
            history=history,
            matching=matching,
            visibility=visibility,
            batches=batches,
            schedules=schedules,
            namespaces=namespaces,
            endpoints=endpoints,
            clock=clock,
            config=config,
        )
        self._http = None if http is None else HttpPort(self.frontend, host=http[0], port=http[1])

    async def start(self) -> None:
        if self._server is not None:
            return
        await self.frontend.namespaces.start()
        self.frontend.polls.begin()
        time = self._time
        counters = None if time is None else [CallCounter(time)]
        server = grpc.aio.server(options=_options(self.frontend.config), interceptors=counters)
        generic = _GenericOnly(server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, generic)
        reflected = reflection.aio.ReflectionServicer([*self._names, *_infrastructure_services()])
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(reflected, generic)
        if time is not None:
            limit = self.frontend.config.error_message_limit
            server.add_generic_rpc_handlers((TestServiceHandlers(time, message_limit=limit),))
        server.add_generic_rpc_handlers((TemporalHandlers(self.frontend),))
        self.frontend.address = _listen(server, self._wanted_address)
        await server.start()
        self._server = server
        if self._http is not None:
            await self._http.start()
        self._removals = asyncio.create_task(self._finish_removals(), name="namespace removals")
        await self._set_health(_SERVING)

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return
        await self._set_health(_NOT_SERVING)
        self.frontend.polls.end()
        if self._removals is not None:
            self._removals.cancel()
            await asyncio.wait({self._removals})
        ending = [server.stop(self.frontend.config.stop_grace.total_seconds())]
        if self._http is not None:
            ending.append(self._http.stop())
        await asyncio.gather(*ending)

    def addresses(self) -> dict[str, str]:
        if self._server is None:
            return {}
        own = {"frontend": self.frontend.address}
        return own if self._http is None else own | {"http": self.frontend.http_address}

    async def _finish_removals(self) -> None:
        try:
            await finish_all_removals(self.frontend)
        except Exception:
            log.exception("deleted namespaces could not be looked up; the next start tries again")

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus) -> None:
        for name in ("", *self._names):
            await self._health.set(name, status)


class _GenericOnly:
    """A server as the generated code wants it, without registering methods by name: for each of those gRPC's loop waits
    separately, and takes all these waits up anew whenever a call comes, of whatever method."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._server = server

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._server.add_generic_rpc_handlers(handlers)

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """They are found through the generic handler that comes with them."""


def _listen(server: grpc.aio.Server, address: str) -> str:
    host, _, wanted = address.rpartition(":")
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    try:
        port = server.add_insecure_port(f"{host}:{wanted}")
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {error}") from error
    if not port:
        raise OSError(f"cannot listen on {address}")
    return f"{host}:{port}"


def _infrastructure_services() -> tuple[str, ...]:
    return (health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)


def _options(config: FrontendConfig) -> list[tuple[str, int]]:
    """Keep-alive as upstream's frontend: clients may ping every 10 s, and the server pings a silent one each minute."""
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", config.hard_request_limit),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 100_000),
        ("grpc.keepalive_time_ms", _milliseconds(config.keepalive_time)),
        ("grpc.keepalive_timeout_ms", _milliseconds(config.keepalive_timeout)),
        # Without it a client that has gone silent is noticed only after gRPC's own minute.
        ("grpc.http2.ping_timeout_ms", _milliseconds(config.keepalive_timeout)),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", _milliseconds(config.keepalive_min_interval)),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _milliseconds(config.keepalive_min_interval)),
        ("grpc.max_metadata_size", 64 * 1024),
    ]


def _milliseconds(duration: timedelta) -> int:
    return int(duration.total_seconds() * 1_000)
