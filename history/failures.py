"""Failures that the server itself makes, and cutting foreign ones to size.

Source: upstream's common/failure.
"""

from __future__ import annotations

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import TimeoutType
from temporalio.api.failure.v1 import Failure, ServerFailureInfo, TimeoutFailureInfo

STORED_FAILURE_LIMIT = 4 * 1024
"""Bytes of a pending activity's last failure; a larger one is stored cut."""


def server_failure(message: str, *, non_retryable: bool = False) -> Failure:
    return Failure(message=message, server_failure_info=ServerFailureInfo(non_retryable=non_retryable))


def timeout_failure(
    message: str,
    timeout_type: TimeoutType.ValueType,
    *,
    cause: Failure | None = None,
    last_heartbeat_details: Payloads | None = None,
) -> Failure:
    return Failure(
        message=message,
        source="Server",
        cause=cause,
        timeout_failure_info=TimeoutFailureInfo(
            timeout_type=timeout_type, last_heartbeat_details=last_heartbeat_details
        ),
    )


def stored_failure(failure: Failure | None) -> Failure | None:
    """The failure as a pending activity keeps it: itself, or a server failure with what fits of it as the cause."""
    if failure is None or failure.ByteSize() <= STORED_FAILURE_LIMIT:
        return failure
    cut = server_failure("Failure exceeds size limit.")
    cut.cause.CopyFrom(truncated(failure, STORED_FAILURE_LIMIT))
    return cut


def truncated(failure: Failure, size: int, *, depth: int = 20) -> Failure:
    """A failure of about `size` bytes at most: what says whether it is retryable first, then texts, then causes."""
    result = Failure()
    left = size

    def cut(text: str) -> str:
        nonlocal left
        kept = text.encode()[: max(0, left)].decode(errors="ignore")
        left -= len(kept.encode()) + (4 if kept else 0)
        return kept

    if failure.HasField("application_failure_info"):
        info = failure.application_failure_info
        result.application_failure_info.non_retryable = info.non_retryable
        result.application_failure_info.type = cut(info.type)
        left -= 8
    elif failure.HasField("server_failure_info"):
        result.server_failure_info.non_retryable = failure.server_failure_info.non_retryable
        left -= 4
    result.source = cut(failure.source)
    result.message = cut(failure.message)
    result.stack_trace = cut(failure.stack_trace)
    if failure.HasField("cause") and left > 4 and depth > 0:
        result.cause.CopyFrom(truncated(failure.cause, left - 4, depth=depth - 1))
    return result
