"""Operations of services elsewhere: Nexus over HTTP.

    start_external(engine, info, item, event, *, endpoint, within) -> CallResult
    cancel_external(engine, item, event, *, endpoint, within) -> CallResult

A start is answered with 200 (the result), 201 (it goes on), 424 (it failed or was canceled); anything else is a handler error.
Source: upstream's common/nexus/nexusrpc/client.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from temporalio.api.enums.v1 import NexusHandlerErrorRetryBehavior
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.nexus.v1 import Failure as NexusFailure

from common.contracts.nexus import CALLBACK_TOKEN_HEADER, OPERATION_TOKEN_HEADER
from common.nexus import content_of
from common.nexus_failures import failure_of, handler_failure
from common.nexus_links import links_of
from common.nexus_reading import (
    HANDLER_ERROR,
    OPERATION_ERROR,
    header_links,
    is_json,
    nexus_failure_of,
    payload_of,
    unwrapped,
)
from history.callbacks.responses import TYPES
from history.http_posts import Answer, PostFailed
from history.nexus import calls
from history.records import ExecutionInfo, NexusEndpointRecord, NexusOperationItem
from history.transitions.nexus import CallResult

if TYPE_CHECKING:
    from history.engine.engine import Engine

OPERATION_STATE = "nexus-operation-state"
UNSUCCESSFUL = 424


async def start_external(
    engine: Engine,
    info: ExecutionInfo,
    item: NexusOperationItem,
    event: HistoryEvent,
    *,
    endpoint: NexusEndpointRecord,
    within: timedelta,
) -> CallResult:
    attributes = event.nexus_operation_scheduled_event_attributes
    content = content_of(attributes.input if attributes.HasField("input") else None)
    query = urlencode(
        {"callback": engine.config.nexus_callback_url.replace("{namespace}", quote(info.namespace, safe=""))}
    )
    headers = {
        "nexus-request-id": item.request_id,
        "user-agent": calls.USER_AGENT,
        **{f"content-{name.lower()}": value for name, value in content.headers.items()},
        f"nexus-callback-{CALLBACK_TOKEN_HEADER}": calls.completion_token(info, item),
        "nexus-link": calls.link_header(calls.caller_of(info, item)),
        "request-timeout": calls.milliseconds(within),
        **calls.start_headers(item, event, now=engine.clock.now()),
    }
    url = f"{_operation_url(endpoint, item)}?{query}"
    try:
        answer = await engine.nexus_http.post(url, headers=headers, body=content.data, within=within)
    except PostFailed as error:
        return calls.call_error(str(error), retryable=True)
    try:
        return _start_result(engine, answer)
    except ValueError as error:
        return calls.call_error(f"{_unexpected(answer)}: {error}", retryable=True)


async def cancel_external(
    engine: Engine,
    item: NexusOperationItem,
    event: HistoryEvent,
    *,
    endpoint: NexusEndpointRecord,
    within: timedelta,
) -> CallResult:
    headers = {
        OPERATION_TOKEN_HEADER: item.operation_token,
        "user-agent": calls.USER_AGENT,
        "request-timeout": calls.milliseconds(within),
        **event.nexus_operation_scheduled_event_attributes.nexus_header,
    }
    url = f"{_operation_url(endpoint, item)}/cancel"
    try:
        answer = await engine.nexus_http.post(url, headers=headers, body=b"", within=within)
    except PostFailed as error:
        return calls.call_error(str(error), retryable=True)
    return CallResult(state="completed") if answer.status == 202 else _handler_error(answer)


def _operation_url(endpoint: NexusEndpointRecord, item: NexusOperationItem) -> str:
    base = endpoint.spec.target.external.url.rstrip("/")
    return f"{base}/{quote(item.service, safe='')}/{quote(item.operation, safe='')}"


def _start_result(engine: Engine, answer: Answer) -> CallResult:
    """Raises ValueError for what can't be read."""
    links = links_of(header_links(answer.headers.get("nexus-link", [])))
    match answer.status:
        case 200:
            return calls.completed(payload_of(answer.body, _content_headers(answer)), links, config=engine.config)
        case 201:
            operation = json.loads(answer.body)
            token = operation.get("token") or operation.get("id") if isinstance(operation, dict) else None
            if not isinstance(token, str) or operation.get("state", "running") != "running":
                raise ValueError("it tells of no operation that runs")
            return calls.started(token, links, config=engine.config)
        case 424:
            return _unsuccessful(answer)
    return _handler_error(answer)


def _content_headers(answer: Answer) -> Mapping[str, str]:
    return {
        name.removeprefix("content-"): values[0]
        for name, values in answer.headers.items()
        if name.startswith("content-")
    }


def _unsuccessful(answer: Answer) -> CallResult:
    failure = nexus_failure_of(json.loads(answer.body))
    state = answer.header(OPERATION_STATE)
    if failure.metadata.get("type") == OPERATION_ERROR:
        details = json.loads(failure.details or b"{}")
        state = details.get("state") or state
    if state not in ("failed", "canceled"):
        raise ValueError(f'invalid operation state header: "{state}"')
    return CallResult(state="canceled" if state == "canceled" else "failed", failure=failure_of(unwrapped(failure)))


def _handler_error(answer: Answer) -> CallResult:
    failure = _failure_in(answer)
    if failure is not None and failure.metadata.get("type") == HANDLER_ERROR:
        return calls.from_handler(failure_of(failure))
    if answer.status not in TYPES:
        words = f": {failure.message}" if failure is not None and failure.message else ""
        return calls.call_error(_unexpected(answer) + words, retryable=True)
    result = handler_failure(TYPES[answer.status], "" if failure is not None else _unexpected(answer))
    behavior = {
        "true": _BEHAVIOR.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_RETRYABLE,
        "false": _BEHAVIOR.NEXUS_HANDLER_ERROR_RETRY_BEHAVIOR_NON_RETRYABLE,
    }
    told = behavior.get(answer.header("nexus-request-retryable").lower())
    if told is not None:
        result.nexus_handler_failure_info.retry_behavior = told
    if failure is not None:
        result.cause.CopyFrom(failure_of(failure))
    return calls.from_handler(result)


_BEHAVIOR = NexusHandlerErrorRetryBehavior


def _failure_in(answer: Answer) -> NexusFailure | None:
    if not is_json(answer.header("content-type")):
        return None
    try:
        return nexus_failure_of(json.loads(answer.body))
    except ValueError:
        return None


def _unexpected(answer: Answer) -> str:
    return f'unexpected response status: "{answer.status} {answer.reason}"'
