"""Nexus over HTTP, inbound: operations are started and canceled by handing the call to a worker through Matching.

    POST /nexus/endpoints/{id}/services/{service}/{operation}[/cancel]
    POST /namespaces/{namespace}/task-queues/{task queue}/nexus-services/{service}/{operation}[/cancel]

Source: upstream's service/frontend/nexus_{operation_http_handler,handler}.go and common/nexus/nexusrpc/server.go.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import unquote

from msgspec import Struct
from temporalio.api.nexus.v1 import Link, StartOperationResponse
from temporalio.api.nexus.v1 import Request as NexusRequest
from temporalio.api.nexus.v1 import Response as NexusAnswer

from common.contracts.matching import DispatchNexusTask, NexusOutcome
from common.errors import NamespaceNotFound, NotFound, TemporalError
from common.nexus import content_of, failure_json
from common.nexus_reading import header_links, payload_of
from frontend.http.answers import Answer, Request
from frontend.http.nexus_answers import (
    SUPPORTS_FAILURES,
    OperationFailed,
    Refused,
    failed,
    nexus_failure_json,
    refusal,
    refused_by,
    refused_by_old_worker,
    refused_by_worker,
)
from frontend.namespace_checks import check_name
from frontend.services import Frontend
from history.namespaces import DEPRECATED, REGISTERED

log = logging.getLogger(__name__)

BY_ENDPOINT = re.compile(r"/nexus/endpoints/(?P<endpoint>[^/]+)/services(?P<rest>/.*)")
BY_QUEUE = re.compile(r"/namespaces/(?P<namespace>[^/]+)/task-queues/(?P<queue>[^/]+)/nexus-services(?P<rest>/.*)")
BODY_LIMIT = 2 * 1024 * 1024
_LONGEST = timedelta(minutes=1)
"""How long a call may take whose caller does not say."""
_TIMEOUT = re.compile(r"(?P<number>[0-9]+(\.[0-9]+)?)(?P<unit>ms|s|m)")
_UNITS = {"ms": timedelta(milliseconds=1), "s": timedelta(seconds=1), "m": timedelta(minutes=1)}
_OWN_PREFIXES = ("content-", "nexus-callback-")
_NOT_TOLD = frozenset(
    ("accept-encoding", "host", "x-forwarded-for", "xdc-redirection", "xdc-redirection-api", SUPPORTS_FAILURES)
)
"""Headers that no handler is told."""


class Target(Struct, frozen=True):
    """Where a call goes."""

    namespace: str
    task_queue: str
    endpoint: str = ""
    """The endpoint's name; empty when the caller named the queue."""


class NexusOperations:
    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend

    async def answer(self, request: Request) -> Answer:
        try:
            return await self._answer(request)
        except Refused as error:
            return refusal(request, error)
        except OperationFailed as error:
            return failed(request, error)
        except TemporalError as error:
            return refusal(request, refused_by(error))
        except Exception:
            log.exception("a Nexus call failed")
            return refusal(request, Refused("INTERNAL", "internal error"))

    async def _answer(self, request: Request) -> Answer:
        by_endpoint = BY_ENDPOINT.fullmatch(request.raw_path)
        by_queue = BY_QUEUE.fullmatch(request.raw_path)
        if by_endpoint is not None:
            rest = by_endpoint["rest"]
            target = await self._at_endpoint(unquote(by_endpoint["endpoint"]))
        elif by_queue is not None:
            rest = by_queue["rest"]
            target = self._at_queue(unquote(by_queue["namespace"]), unquote(by_queue["queue"]))
        else:
            raise Refused("NOT_FOUND", "not found")
        if request.method != "POST":
            raise Refused("BAD_REQUEST", f'invalid request method: expected POST, got "{request.method}"')
        match [unquote(part) for part in rest[1:].split("/")]:
            case [service, operation]:
                return await self._start(request, target, service, operation)
            case [service, operation, "cancel"]:
                token = request.headers.get("nexus-operation-token") or _parameter(request, "token")
                if not token:
                    raise Refused("BAD_REQUEST", "missing operation token")
                return await self._cancel(request, target, service, operation, token)
            case [service, operation, token, "cancel"]:
                return await self._cancel(request, target, service, operation, token)
        raise Refused("NOT_FOUND", "not found")

    async def _at_endpoint(self, endpoint_id: str) -> Target:
        try:
            endpoint = await self._frontend.endpoints.by_id(endpoint_id)
        except NotFound:
            raise Refused("NOT_FOUND", "nexus endpoint not found", retryable=False) from None
        if not endpoint.spec.target.HasField("worker"):
            raise Refused("BAD_REQUEST", "invalid endpoint target")
        worker = endpoint.spec.target.worker
        return Target(worker.namespace, worker.task_queue, endpoint.spec.name)

    def _at_queue(self, namespace: str, task_queue: str) -> Target:
        try:
            check_name(namespace, limit=self._frontend.config.id_limit)
        except TemporalError as error:
            raise refused_by(error, tell=True) from None
        return Target(namespace, task_queue)

    async def _start(self, request: Request, target: Target, service: str, operation: str) -> Answer:
        try:
            links = header_links(request.links)
        except ValueError:
            raise Refused("BAD_REQUEST", 'invalid "nexus-link" header') from None
        within = _timeout(request)
        call = _call(request, target)
        await self._check_namespace(target)
        start = call.start_operation
        start.service, start.operation = service, operation
        start.request_id = request.headers.get("nexus-request-id", "")
        start.callback = _parameter(request, "callback")
        start.callback_header.update(_with_prefix(request, "nexus-callback-"))
        start.links.extend(links)
        try:
            if request.is_too_large:
                raise ValueError("the body is too large")
            start.payload.CopyFrom(payload_of(request.body, _with_prefix(request, "content-")))
        except ValueError:
            raise Refused("BAD_REQUEST", "invalid input") from None
        if start.payload.ByteSize() > self._frontend.config.blob_limit:
            raise Refused("BAD_REQUEST", "input exceeds size limit")
        return _started(_answered(await self._dispatch(target, call, within=within)).start_operation)

    async def _cancel(self, request: Request, target: Target, service: str, operation: str, token: str) -> Answer:
        within = _timeout(request)
        call = _call(request, target)
        call.header.pop("nexus-operation-token", None)
        await self._check_namespace(target)
        cancel = call.cancel_operation
        cancel.service, cancel.operation = service, operation
        cancel.operation_token = cancel.operation_id = token
        _answered(await self._dispatch(target, call, within=within))
        return Answer(202)

    async def _check_namespace(self, target: Target) -> None:
        try:
            record = await self._frontend.namespaces.get(target.namespace)
        except NamespaceNotFound:
            raise Refused("NOT_FOUND", f"namespace not found: {json.dumps(target.namespace)}") from None
        if record.state not in (REGISTERED, DEPRECATED):
            raise Refused("BAD_REQUEST", "bad request")

    async def _dispatch(self, target: Target, call: NexusRequest, *, within: timedelta) -> NexusOutcome:
        task = DispatchNexusTask(namespace=target.namespace, task_queue=target.task_queue, request=call, timeout=within)
        return await self._frontend.matching.dispatch_nexus_task(task)


def _call(request: Request, target: Target) -> NexusRequest:
    call = NexusRequest(endpoint=target.endpoint)
    call.capabilities.temporal_failure_responses = request.headers.get(SUPPORTS_FAILURES) == "true"
    call.header.update(
        {
            name: value
            for name, value in request.headers.items()
            if name not in _NOT_TOLD and not name.startswith(_OWN_PREFIXES)
        }
    )
    return call


def _with_prefix(request: Request, prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in request.headers.items() if name.startswith(prefix)}


def _parameter(request: Request, name: str) -> str:
    try:
        return request.query_values().get(name, [""])[0]
    except ValueError:
        return ""


def _timeout(request: Request) -> timedelta:
    text = request.headers.get("request-timeout", "")
    if not text:
        return _LONGEST
    match = _TIMEOUT.fullmatch(text)
    if match is None or len(text) > 20:
        raise Refused("BAD_REQUEST", "invalid request timeout header")
    return min(_LONGEST, float(match["number"]) * _UNITS[match["unit"]]) or _LONGEST


def _answered(outcome: NexusOutcome) -> NexusAnswer:
    if outcome.response is not None:
        return outcome.response
    if outcome.failure is not None:
        raise refused_by_worker(outcome.failure)
    if outcome.error is not None:
        raise refused_by_old_worker(outcome.error)
    raise Refused("UPSTREAM_TIMEOUT", "upstream timeout", from_worker=True)


def _started(response: StartOperationResponse) -> Answer:
    match response.WhichOneof("variant"):
        case "sync_success":
            content = content_of(response.sync_success.payload if response.sync_success.HasField("payload") else None)
            headers = {f"content-{name}": value for name, value in content.headers.items()}
            return Answer(200, content.data, headers | _linked(response.sync_success.links))
        case "async_success":
            token = response.async_success.operation_token or response.async_success.operation_id
            body = json.dumps({"token": token, "state": "running"}, separators=(",", ":")).encode()
            return Answer(201, body, {"content-type": "application/json"} | _linked(response.async_success.links))
        case "operation_error":
            error = response.operation_error
            raise OperationFailed(error.operation_state, nexus_failure_json(error.failure))
        case "failure":
            is_canceled = response.failure.HasField("canceled_failure_info")
            raise OperationFailed("canceled" if is_canceled else "failed", failure_json(response.failure))
    raise Refused("INTERNAL", "empty outcome", from_worker=True)


def _linked(links: Iterable[Link]) -> dict[str, str]:
    values = [f'<{link.url}>; type="{link.type}"' for link in links]
    return {"nexus-link": ", ".join(values)} if values else {}
