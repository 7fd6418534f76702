"""The server side: serves objects that implement contracts, on one address.

The first byte of every answer says whether the rest is a result or an error; gRPC's own status then only speaks of the
transport. A call runs with its caller's deadline (`common.deadline`) and metadata (`common.caller`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

import grpc
import msgspec

from common import caller, deadline
from common.clock import Clock
from common.errors import Internal, TemporalError
from common.rpc.contract import Contract, Method
from common.rpc.errors import encode_error
from common.service import Service

log = logging.getLogger(__name__)

RESULT, ERROR = b"\0", b"\1"
NO_LIMIT = -1


class RpcServer(Service):
    """Listens on `address` (HOST:PORT; port 0 takes a free one) from `start` to `stop`, as `role`.

    `implementations` is asked for the object behind each contract when the server is made. `start` raises OSError when the
    address can't be listened on. `stop` takes no new calls, gives those in flight `grace`, and cancels what is left.
    """

    def __init__(
        self,
        *,
        role: str,
        address: str,
        implementations: Mapping[Contract, Any],
        clock: Clock,
        grace: timedelta = timedelta(seconds=3),
    ) -> None:
        super().__init__(name=f"{role} server")
        self._role = role
        self._wanted_address = address
        self._grace = grace
        self._handlers = _Handlers(implementations, clock)
        self._server: grpc.aio.Server | None = None
        self.address = address

    async def start(self) -> None:
        if self._server is not None:
            return
        server = grpc.aio.server(options=_OPTIONS)
        server.add_generic_rpc_handlers((self._handlers,))
        self.address = listen(server, self._wanted_address)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop(self._grace.total_seconds())

    def addresses(self) -> dict[str, str]:
        return {self._role: self.address} if self._server is not None else {}


_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", NO_LIMIT),
    ("grpc.max_send_message_length", NO_LIMIT),
    ("grpc.max_concurrent_streams", 1_000_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
]


def listen(server: grpc.aio.Server, address: str) -> str:
    """Bind the server; where it listens, as HOST:PORT. Raises OSError."""
    host, _, _ = address.rpartition(":")
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"cannot listen on {address}: {error}") from error
    if not port:
        raise OSError(f"cannot listen on {address}")
    return f"{host}:{port}"


class _Handlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, implementations: Mapping[Contract, Any], clock: Clock) -> None:
        self._handlers = {
            method.path: grpc.unary_unary_rpc_method_handler(_behavior(method, implementation, clock))
            for contract, implementation in implementations.items()
            for method in contract.methods.values()
        }

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(details.method)


def _behavior(method: Method, implementation: Any, clock: Clock) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def handle(data: bytes, context: Any) -> bytes:
        try:
            args, kwargs = method.decode_arguments(data)
        except msgspec.MsgspecError as error:
            return ERROR + encode_error(Internal(f"{method.path}: unreadable arguments: {error}"))
        caller.set_metadata(context.invocation_metadata)
        remaining = context.time_remaining()
        if remaining is not None:
            deadline.set_current(clock.now() + timedelta(seconds=remaining))
        try:
            return RESULT + method.encode_result(await getattr(implementation, method.name)(*args, **kwargs))
        except TemporalError as error:
            return ERROR + encode_error(error)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.exception("%s failed", method.path)
            return ERROR + encode_error(error)

    return handle
