"""Answers of Nexus over HTTP: refusals of a handler (or of us in its name), and operations that failed.

Whoever says `temporal-nexus-failure-support: true` is given the refusal as it is; others the cause of it, when it has one,
as older servers expect. Source: upstream's common/nexus/nexusrpc/server.go and ConvertGRPCError in its common/nexus/failure.go.
"""

from __future__ import annotations

import json
from typing import Any

import grpc
from temporalio.api.enums.v1 import NexusHandlerErrorRetryBehavior as Behavior
from temporalio.api.failure.v1 import Failure
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.nexus.v1 import HandlerError

from common.errors import TemporalError
from common.nexus import failure_json
from common.nexus_reading import HANDLER_ERROR, OPERATION_ERROR, UNWRAP
from frontend.http.answers import Answer, Request

FROM_WORKER = {"temporal-nexus-failure-source": "worker"}
SUPPORTS_FAILURES = "temporal-nexus-failure-support"
_JSON = {"content-type": "application/json"}
_STATUS = {
    "BAD_REQUEST": 400,
    "REQUEST_TIMEOUT": 408,
    "CONFLICT": 409,
    "UNAUTHENTICATED": 401,
    "UNAUTHORIZED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "NOT_IMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "UPSTREAM_TIMEOUT": 520,
}
_OPERATION_FAILED = 424
_STATES = ("failed", "canceled")
_OF_STATUS = {
    grpc.StatusCode.ALREADY_EXISTS: ("BAD_REQUEST", "bad request"),
    grpc.StatusCode.INVALID_ARGUMENT: ("BAD_REQUEST", "bad request"),
    grpc.StatusCode.FAILED_PRECONDITION: ("BAD_REQUEST", "bad request"),
    grpc.StatusCode.OUT_OF_RANGE: ("BAD_REQUEST", "bad request"),
    grpc.StatusCode.ABORTED: ("UNAVAILABLE", "service unavailable"),
    grpc.StatusCode.UNAVAILABLE: ("UNAVAILABLE", "service unavailable"),
    grpc.StatusCode.CANCELLED: ("INTERNAL", "canceled"),
    grpc.StatusCode.UNAUTHENTICATED: ("UNAUTHENTICATED", "authentication failed"),
    grpc.StatusCode.PERMISSION_DENIED: ("UNAUTHORIZED", "permission denied"),
    grpc.StatusCode.NOT_FOUND: ("NOT_FOUND", "not found"),
    grpc.StatusCode.RESOURCE_EXHAUSTED: ("RESOURCE_EXHAUSTED", "resource exhausted"),
    grpc.StatusCode.UNIMPLEMENTED: ("NOT_IMPLEMENTED", "not implemented"),
    grpc.StatusCode.DEADLINE_EXCEEDED: ("UPSTREAM_TIMEOUT", "request timeout"),
}


class Refused(Exception):
    """A handler error: `kind` such as BAD_REQUEST; `retryable` None leaves it to the kind."""

    def __init__(
        self,
        kind: str,
        message: str = "",
        *,
        retryable: bool | None = None,
        whole: dict[str, Any] | None = None,
        from_worker: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retryable = retryable
        self.whole = whole
        """The refusal's own JSON, of a worker's."""
        self.from_worker = from_worker


class OperationFailed(Exception):
    """The worker's answer to a start: the operation failed or was canceled; `cause` is the failure's JSON."""

    def __init__(self, state: str, cause: dict[str, Any]) -> None:
        super().__init__(state)
        self.state = state
        self.cause = cause


def refused_by(error: TemporalError, *, tell: bool = False) -> Refused:
    """An error of ours, as a handler's; what it says is only for those who may know (`tell`)."""
    kind, message = _OF_STATUS.get(error.status, ("INTERNAL", "internal error"))
    return Refused(kind, error.message if tell else message)


def refused_by_worker(failure: Failure) -> Refused:
    """The newer form."""
    info = failure.nexus_handler_failure_info
    return Refused(info.type, retryable=_retryable(info.retry_behavior), whole=failure_json(failure), from_worker=True)


def refused_by_old_worker(error: HandlerError) -> Refused:
    retryable = _retryable(error.retry_behavior)
    details = {"type": error.error_type} if error.error_type else {}
    whole = {
        "metadata": {"type": HANDLER_ERROR},
        "details": details | ({} if retryable is None else {"retryableOverride": retryable}),
        "cause": nexus_failure_json(error.failure),
    }
    return Refused(error.error_type, retryable=retryable, whole=whole, from_worker=True)


def _retryable(behavior: int) -> bool | None:
    retryable = Behavior.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_RETRYABLE
    return {int(retryable): True, int(Behavior.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_NON_RETRYABLE): False}.get(behavior)


def nexus_failure_json(failure: NexusFailure) -> dict[str, Any]:
    """Raises ValueError when the details are no JSON."""
    whole: dict[str, Any] = {
        "message": failure.message,
        "stackTrace": failure.stack_trace,
        "metadata": dict(failure.metadata),
    }
    if failure.details:
        whole["details"] = json.loads(failure.details)
    if failure.HasField("cause"):
        whole["cause"] = nexus_failure_json(failure.cause)
    return {name: value for name, value in whole.items() if value not in ("", {}) or name == "details"}


def refusal(request: Request, error: Refused) -> Answer:
    details = {"type": error.kind} | ({} if error.retryable is None else {"retryableOverride": error.retryable})
    whole = error.whole
    if whole is None:
        message = {"message": error.message} if error.message else {}
        whole = message | {"metadata": {"type": HANDLER_ERROR}, "details": details}
    headers = dict(_JSON)
    if error.retryable is not None:
        headers["nexus-request-retryable"] = "true" if error.retryable else "false"
    if error.from_worker:
        headers |= FROM_WORKER
    return Answer(_STATUS.get(error.kind, 500), _body(request, whole), headers)


def failed(request: Request, error: OperationFailed) -> Answer:
    if error.state not in _STATES:
        return Answer(500, headers=dict(FROM_WORKER))
    whole = {
        "message": "operation error",
        "metadata": {"type": OPERATION_ERROR, UNWRAP: "true"},
        "details": {"state": error.state},
        "cause": error.cause,
    }
    headers = _JSON | FROM_WORKER | {"nexus-operation-state": error.state}
    return Answer(_OPERATION_FAILED, _body(request, whole), headers)


def _body(request: Request, whole: dict[str, Any]) -> bytes:
    if request.headers.get(SUPPORTS_FAILURES) != "true" and "cause" in whole:
        whole = whole["cause"]
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
