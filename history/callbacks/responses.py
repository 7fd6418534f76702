"""What an HTTP answer to a callback means: taken, refused for good, or to be tried again.

Source: upstream's common/nexus/nexusrpc/client.go and the handler errors of Nexus.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from history.http_posts import Answer

TYPES = {
    400: "BAD_REQUEST",
    401: "UNAUTHENTICATED",
    403: "UNAUTHORIZED",
    404: "NOT_FOUND",
    408: "REQUEST_TIMEOUT",
    409: "CONFLICT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "NOT_IMPLEMENTED",
    503: "UNAVAILABLE",
    520: "UPSTREAM_TIMEOUT",
}
FINAL = frozenset(("BAD_REQUEST", "UNAUTHENTICATED", "UNAUTHORIZED", "NOT_FOUND", "NOT_IMPLEMENTED", "CONFLICT"))
HANDLER_ERROR = "nexus.HandlerError"


class Fault(Struct, kw_only=True, frozen=True):
    message: str
    retryable: bool


def fault_of(answer: Answer) -> Fault | None:
    """None when the callback was taken. Says the answer what kind of error it is, in its body or by its status, that
    decides whether it is tried again, unless it says that as well; any other answer is one that may be better next time."""
    status = answer.status
    if 200 <= status < 300:
        return None
    failure = _json_failure(answer)
    metadata = failure.get("metadata")
    if isinstance(metadata, dict) and metadata.get("type") == HANDLER_ERROR:
        return _handler_error(failure)
    if status in TYPES:
        return _typed(TYPES[status], retryable=_retryable_header(answer))
    message = f'unexpected response status: "{status} {answer.reason}"'
    if isinstance(failure.get("message"), str) and failure["message"]:
        message += f": {failure['message']}"
    return Fault(message=message, retryable=True)


def _handler_error(failure: dict[str, Any]) -> Fault:
    details = failure.get("details")
    given = details if isinstance(details, dict) else {}
    override = given.get("retryableOverride")
    return _typed(
        str(given.get("type") or "INTERNAL"),
        message=str(failure.get("message") or ""),
        retryable=override if isinstance(override, bool) else None,
    )


def _typed(kind: str, *, message: str = "", retryable: bool | None) -> Fault:
    text = f"handler error ({kind})" + (f": {message}" if message else "")
    return Fault(message=text, retryable=kind not in FINAL if retryable is None else retryable)


def _json_failure(answer: Answer) -> dict[str, Any]:
    if answer.header("content-type").partition(";")[0].strip().lower() != "application/json":
        return {}
    try:
        failure = json.loads(answer.body)
    except ValueError:
        return {}
    return failure if isinstance(failure, dict) else {}


def _retryable_header(answer: Answer) -> bool | None:
    return {"true": True, "false": False}.get(answer.header("nexus-request-retryable").lower())
