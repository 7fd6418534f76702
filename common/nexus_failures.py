"""Failures of Nexus as failures of the API.

    failure_of(failure) -> Failure                  a Nexus failure (the form of older SDKs, and of Nexus over HTTP)
    handler_failure(kind, message) -> Failure       a handler error that the server makes itself
    is_retryable(failure) -> bool                   of a handler error: whether the call may be made again

Source: upstream's common/nexus/failure.go and the handler error types of nexus-rpc.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import NexusHandlerErrorRetryBehavior
from temporalio.api.failure.v1 import ApplicationFailureInfo, CanceledFailureInfo, Failure, NexusHandlerFailureInfo
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.nexus.v1 import HandlerError

from common.codec import CodecError, from_json

RETRYABLE = NexusHandlerErrorRetryBehavior.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_RETRYABLE
NON_RETRYABLE = NexusHandlerErrorRetryBehavior.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_NON_RETRYABLE
FINAL = frozenset(("BAD_REQUEST", "UNAUTHENTICATED", "UNAUTHORIZED", "NOT_FOUND", "NOT_IMPLEMENTED", "CONFLICT"))
"""Types of handler errors that another try does not cure, unless they say otherwise."""


def failure_of(failure: NexusFailure) -> Failure:
    """What is neither a failure of the API nor an error of Nexus becomes an application failure that holds it."""
    result = _without_cause(failure)
    result.message, result.stack_trace = failure.message, failure.stack_trace
    if failure.HasField("cause"):
        result.cause.CopyFrom(failure_of(failure.cause))
    return result


def _without_cause(failure: NexusFailure) -> Failure:
    kind = failure.metadata.get("type", "")
    try:
        match kind:
            case "temporal.api.failure.v1.Failure":
                return from_json(Failure, failure.details)
            case "nexus.OperationError":
                return _operation_error(_details(failure))
            case "nexus.HandlerError":
                return _handler_error(_details(failure))
    except (CodecError, ValueError):
        pass
    if not failure.metadata and not failure.details:
        return Failure()
    held = json.dumps(_held(failure), separators=(",", ":"), ensure_ascii=False).encode()
    payload = Payload(metadata={"encoding": b"json/plain"}, data=held)
    info = ApplicationFailureInfo(type="NexusFailure", details=Payloads(payloads=[payload]))
    return Failure(application_failure_info=info)


def _held(failure: NexusFailure) -> dict[str, Any]:
    held: dict[str, Any] = {}
    if failure.metadata:
        held["metadata"] = dict(sorted(failure.metadata.items()))
    if failure.details:
        try:
            held["details"] = json.loads(failure.details)
        except ValueError:
            held["details"] = failure.details.decode(errors="replace")
    return held


def _details(failure: NexusFailure) -> dict[str, Any]:
    details = json.loads(failure.details) if failure.details else {}
    return details if isinstance(details, dict) else {}


def _operation_error(details: dict[str, Any]) -> Failure:
    if details.get("state") == "canceled":
        return Failure(canceled_failure_info=CanceledFailureInfo())
    return Failure(application_failure_info=ApplicationFailureInfo(type="OperationError", non_retryable=True))


def _handler_error(details: dict[str, Any]) -> Failure:
    info = NexusHandlerFailureInfo(type=str(details.get("type") or ""))
    override = details.get("retryableOverride")
    if isinstance(override, bool):
        info.retry_behavior = RETRYABLE if override else NON_RETRYABLE
    result = Failure(nexus_handler_failure_info=info)
    encoded = details.get("encodedAttributes")
    if isinstance(encoded, str) and encoded:
        padded = encoded + "=" * (-len(encoded) % 4)
        result.encoded_attributes.CopyFrom(from_json(Payload, base64.urlsafe_b64decode(padded)))
    return result


def failure_of_error(error: HandlerError) -> Failure:
    """A handler error in the form of older SDKs: what it says is its cause."""
    info = NexusHandlerFailureInfo(type=error.error_type, retry_behavior=error.retry_behavior)
    return Failure(nexus_handler_failure_info=info, cause=failure_of(error.failure))


def handler_failure(kind: str, message: str) -> Failure:
    return Failure(message=message, nexus_handler_failure_info=NexusHandlerFailureInfo(type=kind))


def is_retryable(failure: Failure) -> bool:
    info = failure.nexus_handler_failure_info
    if info.retry_behavior in (RETRYABLE, NON_RETRYABLE):
        return info.retry_behavior == RETRYABLE
    return info.type not in FINAL
