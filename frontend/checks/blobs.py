"""Payload sizes, and what takes the place of one that is too large.

Source: upstream's CheckEventBlobSizeLimit in common/util.go and common/failure/failure.go.
"""

from __future__ import annotations

from google.protobuf.message import Message
from temporalio.api.failure.v1 import Failure

from common.errors import InvalidArgument

RESULT_TOO_LARGE = "Complete result exceeds size limit."
FAILURE_TOO_LARGE = "Failure exceeds size limit."
CANCEL_DETAILS_TOO_LARGE = "Cancel details exceed size limit."
HEARTBEAT_TOO_LARGE = "Heartbeat details exceed size limit."
BLOB_TOO_LARGE = "Blob data size exceeds limit."
MEMO_TOO_LARGE = "Memo size exceeds limit."

_DEPTH = 20
_FIELD_OVERHEAD = 4
_INFO_OVERHEAD = 8


def check_blob(message: Message, *, limit: int) -> None:
    if message.ByteSize() > limit:
        raise InvalidArgument(BLOB_TOO_LARGE)


def check_memo(message: Message, *, limit: int) -> None:
    if message.ByteSize() > limit:
        raise InvalidArgument(MEMO_TOO_LARGE)


def server_failure(message: str) -> Failure:
    """The server's own, not retryable."""
    failure = Failure(message=message)
    failure.server_failure_info.non_retryable = True
    return failure


def too_large_failure(failure: Failure, *, room: int) -> Failure:
    """What is recorded for a failure over the limit: the server's own, with the cut original as its cause."""
    replaced = server_failure(FAILURE_TOO_LARGE)
    replaced.cause.CopyFrom(cut(failure, room=room))
    return replaced


def cut(failure: Failure, *, room: int, depth: int = _DEPTH) -> Failure:
    """The texts of a failure and its causes within about `room` bytes; details and attributes are dropped."""
    short = Failure()

    def take(text: str) -> str:
        nonlocal room
        data = text.encode()[: max(0, room)]
        room -= len(data) + (_FIELD_OVERHEAD if data else 0)
        return data.decode(errors="ignore")

    if failure.HasField("application_failure_info"):
        short.application_failure_info.non_retryable = failure.application_failure_info.non_retryable
        short.application_failure_info.type = take(failure.application_failure_info.type)
        room -= _INFO_OVERHEAD
    elif failure.HasField("server_failure_info"):
        short.server_failure_info.non_retryable = failure.server_failure_info.non_retryable
        room -= _FIELD_OVERHEAD
    short.source = take(failure.source)
    short.message = take(failure.message)
    short.stack_trace = take(failure.stack_trace)
    if failure.HasField("cause") and room > _FIELD_OVERHEAD and depth > 0:
        short.cause.CopyFrom(cut(failure.cause, room=room - _FIELD_OVERHEAD, depth=depth - 1))
    return short
