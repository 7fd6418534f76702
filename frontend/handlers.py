"""The public services as gRPC handlers: bytes in, bytes out, everything between them a function call."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from common import caller, deadline
from common.errors import Internal, TemporalError, Unimplemented
from frontend.calls import invoker
from frontend.methods import SERVICES, Method, all_methods, unknown_method
from frontend.rendering import abort, render, render_unexpected
from frontend.services import Frontend

log = logging.getLogger(__name__)

Behavior = Callable[[bytes, Any], Awaitable[bytes]]


class TemporalHandlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every method there is, and with UNIMPLEMENTED those that there are not; to be added last."""

    def __init__(self, frontend: Frontend) -> None:
        self._message_limit = frontend.config.error_message_limit
        self._services = {service.full_name for service in SERVICES}
        self._handlers = {
            method.path: grpc.unary_unary_rpc_method_handler(_behavior(frontend, method)) for method in all_methods()
        }

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        handler = self._handlers.get(details.method)
        if handler is None:
            handler = grpc.unary_unary_rpc_method_handler(self._refuse(details.method))
        return handler

    def _refuse(self, path: str) -> Behavior:
        service, _, method = path.removeprefix("/").rpartition("/")
        if service in self._services:
            error = unknown_method(service, method)
        else:
            error = Unimplemented(f"unknown service {service}")
        rendered = render(error, message_limit=self._message_limit)

        async def refuse(data: bytes, context: Any) -> bytes:
            await abort(context, rendered)
            return data

        return refuse


def _behavior(frontend: Frontend, method: Method) -> Behavior:
    invoke = invoker(frontend, method)
    parse = method.request_type.FromString
    clock = frontend.clock
    request_limit, message_limit = frontend.config.request_limit, frontend.config.error_message_limit
    path = method.path

    async def handle(data: bytes, context: Any) -> bytes:
        try:
            if len(data) > request_limit:
                raise RequestTooLarge(size=len(data), limit=request_limit)
            caller.set_metadata(context.invocation_metadata)
            remaining = context.time_remaining()
            if remaining is not None:
                deadline.set_current(clock.now() + timedelta(seconds=remaining))
            answer = await invoke(parse(data))
            return answer.SerializeToString()
        except TemporalError as error:
            rendered = render(error, message_limit=message_limit)
        except DecodeError as error:
            unreadable = Internal(f"grpc: error unmarshalling request: {error}")
            rendered = render(unreadable, message_limit=message_limit)
        except Exception as error:
            log.exception("%s failed", path)
            rendered = render_unexpected(error)
        await abort(context, rendered)
        raise AssertionError("abort returned")

    return handle


class RequestTooLarge(TemporalError):
    """SDKs know by these words that sending it again is of no use, and fail the task. As in Go's gRPC, no details."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(self, *, size: int, limit: int) -> None:
        super().__init__(f"grpc: received message larger than max ({size} vs. {limit})")
