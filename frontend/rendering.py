"""Errors as gRPC statuses: the one place where a TemporalError becomes code, message and details.

Source: upstream's go.temporal.io/api/serviceerror and the frontend's interceptors (service_error_interceptor.go,
frontend_service_error.go, mask_internal_error.go in common/rpc/interceptor).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from msgspec import Struct
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.errordetails.v1 import MultiOperationExecutionFailure
from temporalio.api.failure.v1 import MultiOperationExecutionAborted

from common.errors import Aborted, MultiOperationFailed, ResourceExhausted, ShardOwnershipLost, TemporalError

DETAILS_KEY = "grpc-status-details-bin"
_TRUNCATED = "... <truncated>"
_OK = grpc.StatusCode.OK.value[0]
_PERCENT = ord("%")
_LONGEST_ENCODED = 12


class Rendered(Struct, frozen=True):
    """What a client sees of an error."""

    code: grpc.StatusCode
    message: str
    headers: tuple[tuple[str, str], ...] = ()
    trailers: tuple[tuple[str, bytes], ...] = ()


def render(error: TemporalError, *, message_limit: int) -> Rendered:
    """`message_limit` is in bytes on the wire; a longer message is cut and says so."""
    code = _code(error)
    message = _cut(_message(error), message_limit)
    detail = _detail(error)
    trailers: tuple[tuple[str, bytes], ...] = ()
    if detail is not None:
        status = Status(code=code.value[0], message=message, details=[_pack(detail)])
        trailers = ((DETAILS_KEY, status.SerializeToString()),)
    return Rendered(code=code, message=message, headers=_headers(error), trailers=trailers)


def render_unexpected(error: BaseException) -> Rendered:
    """An error nobody foresaw: its text stays in the log, found by the digits in the message."""
    digest = blake2b(f"{type(error).__name__}: {error}".encode(), digest_size=4).hexdigest()
    return Rendered(
        code=grpc.StatusCode.INTERNAL,
        message=f"something went wrong, please retry ({digest})",
    )


async def abort(context: Any, rendered: Rendered) -> None:
    """Ends the call with it: raises grpc's own AbortError."""
    if rendered.headers:
        await context.send_initial_metadata(rendered.headers)
    await context.abort(rendered.code, rendered.message, rendered.trailers)


def _code(error: TemporalError) -> grpc.StatusCode:
    if not isinstance(error, MultiOperationFailed):
        return error.status
    for failed in error.errors:
        if failed is not None and not isinstance(failed, Aborted):
            return failed.status
    return grpc.StatusCode.ABORTED


def _message(error: TemporalError) -> str:
    if isinstance(error, ShardOwnershipLost):
        return "shard unavailable, please backoff and retry"
    return error.message


def _detail(error: TemporalError) -> Message | None:
    if isinstance(error, MultiOperationFailed):
        return MultiOperationExecutionFailure(statuses=[_operation_status(failed) for failed in error.errors])
    return error.detail()


def _operation_status(error: TemporalError | None) -> MultiOperationExecutionFailure.OperationStatus:
    if error is None:
        return MultiOperationExecutionFailure.OperationStatus(code=_OK)
    detail = MultiOperationExecutionAborted() if isinstance(error, Aborted) else error.detail()
    return MultiOperationExecutionFailure.OperationStatus(
        code=error.status.value[0],
        message=error.message,
        details=[] if detail is None else [_pack(detail)],
    )


def _pack(detail: Message) -> PackedAny:
    packed = PackedAny()
    packed.Pack(detail)
    return packed


def _headers(error: TemporalError) -> tuple[tuple[str, str], ...]:
    if not isinstance(error, ResourceExhausted):
        return ()
    cause = ResourceExhaustedCause.Name(error.cause).removeprefix("RESOURCE_EXHAUSTED_CAUSE_")
    scope = ResourceExhaustedScope.Name(error.scope).removeprefix("RESOURCE_EXHAUSTED_SCOPE_")
    return (("x-resource-exhausted-cause", _pascal(cause)), ("x-resource-exhausted-scope", _pascal(scope)))


def _pascal(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _cut(message: str, limit: int) -> str:
    """Within `limit` bytes as gRPC sends it: everything but printable ASCII takes three bytes for each of its own.

    Clients drop an answer whose headers are too large, and with it the status.
    """
    if len(message) * _LONGEST_ENCODED <= limit or _encoded_size(message) <= limit:
        return message
    room = limit - len(_TRUNCATED)
    for length, character in enumerate(message):
        room -= _encoded_size(character)
        if room < 0:
            return message[:length] + _TRUNCATED
    return message


def _encoded_size(text: str) -> int:
    return sum(1 if 0x20 <= byte <= 0x7E and byte != _PERCENT else 3 for byte in text.encode())
