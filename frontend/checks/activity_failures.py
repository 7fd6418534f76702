"""What RespondActivityTaskFailed and its by-id form check, and cut.

Source: RespondActivityTaskFailed in upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice.v1 import RespondActivityTaskFailedByIdRequest, RespondActivityTaskFailedRequest

from common.errors import InvalidArgument
from frontend.checks.blobs import HEARTBEAT_TOO_LARGE, server_failure, too_large_failure
from frontend.config import FrontendConfig

_LONGEST_S = 315_576_000_000
"""What a valid proto3 Duration can hold: about 10,000 years."""


def check_kind(request: RespondActivityTaskFailedRequest) -> None:
    """An activity fails with an application failure."""
    if request.HasField("failure") and not request.failure.HasField("application_failure_info"):
        raise InvalidArgument("Failure must have ApplicationFailureInfo.")


def check_delays(failure: Failure) -> None:
    """The retry delays that a failure and its causes ask for are valid durations."""
    current = failure
    while True:
        info = current.application_failure_info
        if info.HasField("next_retry_delay"):
            _check_delay(info.next_retry_delay)
        if not current.HasField("cause"):
            return
        current = current.cause


def cut_to_size(
    request: RespondActivityTaskFailedRequest | RespondActivityTaskFailedByIdRequest, *, config: FrontendConfig
) -> list[Failure]:
    """Replaces what is too large to be recorded, in place, and says so in failures for the response."""
    failures: list[Failure] = []
    if request.last_heartbeat_details.ByteSize() > config.blob_limit:
        failures.append(server_failure(HEARTBEAT_TOO_LARGE))
        request.ClearField("last_heartbeat_details")
    if request.failure.ByteSize() > config.blob_limit:
        request.failure.CopyFrom(too_large_failure(request.failure, room=config.truncated_failure))
        failures.append(request.failure)
    return failures


def _check_delay(delay: Duration) -> None:
    """In the words of Go's durationpb.CheckValid."""
    if abs(delay.seconds) > _LONGEST_S:
        side = "exceeds +10000 years" if delay.seconds > 0 else "exceeds -10000 years"
        raise InvalidArgument(f"NextRetryDelay is not a valid duration: proto: duration ({_text(delay)}) {side}")
    if not -1_000_000_000 < delay.nanos < 1_000_000_000:
        raise InvalidArgument(
            f"NextRetryDelay is not a valid duration: proto: duration ({_text(delay)}) has out-of-range nanos"
        )
    if delay.seconds * delay.nanos < 0:
        raise InvalidArgument(
            "NextRetryDelay is not a valid duration: "
            f"proto: duration ({_text(delay)}) has seconds and nanos with different signs"
        )


def _text(delay: Duration) -> str:
    parts = [f"seconds:{delay.seconds}"] if delay.seconds else []
    parts += [f"nanos:{delay.nanos}"] if delay.nanos else []
    return " ".join(parts)
