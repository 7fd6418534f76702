"""`temporal.api.testservice.v1.TestService`, and what calls tell those who skip time. Only in a server that skips time.

Polls of workers, and calls that wait for what may take days, let time be skipped; while any other is under way it is not.
Source: TestService and SelfAdvancingTimerImpl of sdk-java's temporal-test-server.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError, Message
from temporalio.api.testservice.v1 import (
    GetCurrentTimeResponse,
    LockTimeSkippingRequest,
    LockTimeSkippingResponse,
    SleepRequest,
    SleepResponse,
    SleepUntilRequest,
    UnlockTimeSkippingRequest,
    UnlockTimeSkippingResponse,
)
from temporalio.api.testservice.v1 import service_pb2 as test_service
from temporalio.api.workflowservice.v1 import (
    DescribeActivityExecutionRequest,
    DescribeNexusOperationExecutionRequest,
    GetWorkflowExecutionHistoryRequest,
)

from common.clock import EPOCH
from common.errors import Internal, InvalidArgument, TemporalError
from common.time_skipping import TimeSkipping
from frontend.rendering import abort, render, render_unexpected

log = logging.getLogger(__name__)

TEST_SERVICE: ServiceDescriptor = test_service.DESCRIPTOR.services_by_name["TestService"]
POLLS = frozenset(("PollWorkflowTaskQueue", "PollActivityTaskQueue", "PollNexusTaskQueue"))
WAITING: dict[str, Callable[[bytes], bool]] = {
    "UpdateWorkflowExecution": lambda data: True,  # noqa: ARG005
    "ExecuteMultiOperation": lambda data: True,  # noqa: ARG005
    "PollWorkflowExecutionUpdate": lambda data: True,  # noqa: ARG005
    "PollActivityExecution": lambda data: True,  # noqa: ARG005
    "PollNexusOperationExecution": lambda data: True,  # noqa: ARG005
    "GetWorkflowExecutionHistory": lambda data: GetWorkflowExecutionHistoryRequest.FromString(data).wait_new_event,
    "DescribeActivityExecution": lambda data: bool(DescribeActivityExecutionRequest.FromString(data).long_poll_token),
    "DescribeNexusOperationExecution": lambda data: bool(
        DescribeNexusOperationExecutionRequest.FromString(data).long_poll_token
    ),
}
"""Methods whose calls may wait for days → whether one with this request does."""
LONGEST_SLEEP = timedelta(days=365 * 1_000)

Entry = Callable[[TimeSkipping, Any], Awaitable[Message]]
Handler = Callable[[Any, Any], Awaitable[Any]]


async def lock_time_skipping(time: TimeSkipping, request: LockTimeSkippingRequest) -> LockTimeSkippingResponse:  # noqa: ARG001
    time.lock()
    return LockTimeSkippingResponse()


async def unlock_time_skipping(time: TimeSkipping, request: UnlockTimeSkippingRequest) -> UnlockTimeSkippingResponse:  # noqa: ARG001
    time.unlock()
    return UnlockTimeSkippingResponse()


async def sleep(time: TimeSkipping, request: SleepRequest) -> SleepResponse:
    await time.sleep_until(time.clock.now() + _duration(request))
    return SleepResponse()


async def sleep_until(time: TimeSkipping, request: SleepUntilRequest) -> SleepResponse:
    until = EPOCH + timedelta(seconds=request.timestamp.seconds, microseconds=request.timestamp.nanos // 1_000)
    if until - time.clock.now() > LONGEST_SLEEP:
        raise InvalidArgument("the time is too far away")
    await time.sleep_until(until)
    return SleepResponse()


async def unlock_time_skipping_with_sleep(time: TimeSkipping, request: SleepRequest) -> SleepResponse:
    await time.unlock_and_sleep(_duration(request))
    return SleepResponse()


async def get_current_time(time: TimeSkipping, request: Empty) -> GetCurrentTimeResponse:  # noqa: ARG001
    response = GetCurrentTimeResponse()
    response.time.FromDatetime(time.clock.now())
    return response


METHODS: dict[str, tuple[type[Message], Entry]] = {
    "LockTimeSkipping": (LockTimeSkippingRequest, lock_time_skipping),
    "UnlockTimeSkipping": (UnlockTimeSkippingRequest, unlock_time_skipping),
    "Sleep": (SleepRequest, sleep),
    "SleepUntil": (SleepUntilRequest, sleep_until),
    "UnlockTimeSkippingWithSleep": (SleepRequest, unlock_time_skipping_with_sleep),
    "GetCurrentTime": (Empty, get_current_time),
}


def _duration(request: SleepRequest) -> timedelta:
    found: timedelta = request.duration.ToTimedelta()
    if found > LONGEST_SLEEP:
        raise InvalidArgument("the duration is too long")
    return found


class TestServiceHandlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers the methods of TestService, and leaves all others to who comes after it."""

    def __init__(self, time: TimeSkipping, *, message_limit: int) -> None:
        self._handlers = {
            f"/{TEST_SERVICE.full_name}/{name}": grpc.unary_unary_rpc_method_handler(
                _behavior(time, request_type, entry, message_limit=message_limit)
            )
            for name, (request_type, entry) in METHODS.items()
        }

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(details.method)


def _behavior(time: TimeSkipping, request_type: type[Message], entry: Entry, *, message_limit: int) -> Handler:
    async def handle(data: bytes, context: Any) -> bytes:
        try:
            answer = await entry(time, request_type.FromString(data))
            return answer.SerializeToString()
        except TemporalError as error:
            rendered = render(error, message_limit=message_limit)
        except DecodeError as error:
            rendered = render(Internal(f"grpc: error unmarshalling request: {error}"), message_limit=message_limit)
        except Exception as error:
            log.exception("%s failed", entry.__name__)
            rendered = render_unexpected(error)
        await abort(context, rendered)
        raise AssertionError("abort returned")

    return handle


class CallCounter(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """Has `time` know of the calls to the public services that are under way."""

    def __init__(self, time: TimeSkipping) -> None:
        self._time = time

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        handler = await continuation(details)
        service, _, method = details.method.removeprefix("/").rpartition("/")
        is_public = service.startswith("temporal.api.") and service != TEST_SERVICE.full_name
        if handler is None or not is_public or method in POLLS:
            return handler
        behavior: Handler = handler.unary_unary
        may_wait = WAITING.get(method)

        async def counted(request: Any, context: Any) -> Any:
            is_waiting = may_wait is not None and _is_true(may_wait, request)
            with self._time.waiting_call() if is_waiting else self._time.call():
                return await behavior(request, context)

        return grpc.unary_unary_rpc_method_handler(
            counted,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )


def _is_true(may_wait: Callable[[bytes], bool], data: bytes) -> bool:
    try:
        return may_wait(data)
    except DecodeError:
        return False  # the method itself refuses it
