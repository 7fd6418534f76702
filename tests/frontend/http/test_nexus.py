"""Nexus over HTTP, inbound, against what the official server 1.32.0 answers with the same worker behind it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import ApplicationFailureInfo, CanceledFailureInfo, Failure, NexusHandlerFailureInfo
from temporalio.api.nexus.v1 import (
    CancelOperationResponse,
    EndpointSpec,
    EndpointTarget,
    HandlerError,
    Link,
    Response,
    StartOperationResponse,
    UnsuccessfulOperationError,
)
from temporalio.api.nexus.v1 import Failure as NexusFailure

from common.contracts.history import NexusCompletion
from common.contracts.matching import NexusOutcome
from common.contracts.tokens import NexusCompletionToken, encode_token
from common.errors import NotFound, Unavailable

from .conftest import HttpSetup

QUEUE = "/namespaces/default/task-queues/q/nexus-services"
START = f"{QUEUE}/s/o"
JSON = {"Content-Type": "application/json"}
FAILURE = "temporal.api.failure.v1.Failure"
SUPPORTS = {"temporal-nexus-failure-support": "true"}
TOKEN = NexusCompletionToken(namespace="default", workflow_id="wé", run_id="r", scheduled_event_id=5, request_id="id")
CALLBACK_TOKEN = {"Temporal-Callback-Token": encode_token(TOKEN).decode("latin-1")}


def started(**variant: Any) -> NexusOutcome:
    return NexusOutcome(response=Response(start_operation=StartOperationResponse(**variant)))


def payload(encoding: str, data: bytes = b"", **more: str) -> Payload:
    return Payload(
        metadata={"encoding": encoding.encode(), **{key: value.encode() for key, value in more.items()}}, data=data
    )


def refused(message: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"message": message, "metadata": {"type": "nexus.HandlerError"}, "details": {"type": kind, **more}}


async def endpoint_of(http: HttpSetup, **target: Any) -> str:
    spec = EndpointSpec(name="e", target=EndpointTarget(**target))
    return (await http.endpoints.create(spec)).endpoint_id


async def test_a_start_tells_the_worker_all_of_it(http: HttpSetup) -> None:
    worker = EndpointTarget.Worker(namespace="default", task_queue="of the endpoint")
    endpoint = await endpoint_of(http, worker=worker)
    links = [Link(url="temporal:///x", type="a.B"), Link(url="temporal:///y?z=1", type="a.C")]
    http.matching.answer(
        "dispatch_nexus_task",
        started(sync_success=StartOperationResponse.Sync(payload=payload("json/plain", b'{"a":1}'), links=links)),
    )
    reply = await http.ask(
        "POST",
        f"/nexus/endpoints/{endpoint}/services/s/o%20p?callback=http%3A%2F%2Fx",
        '"hi"',
        headers=JSON
        | {
            "Nexus-Request-Id": "rid",
            "Nexus-Callback-Some-Token": "t",
            "Nexus-Link": '<temporal:///l>; type="a.B"',
            "Request-Timeout": "1.5s",
            "X-Other": "o",
            "X-Forwarded-For": "secret",
        },
    )
    assert (reply.status, reply.body, reply.headers["content-type"]) == (200, b'{"a":1}', "application/json")
    assert reply.headers["nexus-link"] == '<temporal:///x>; type="a.B", <temporal:///y?z=1>; type="a.C"'
    task = http.matching.last()
    assert (task.namespace, task.task_queue, task.timeout) == ("default", "of the endpoint", timedelta(seconds=1.5))
    assert task.request.endpoint == "e"
    start = task.request.start_operation
    assert (start.service, start.operation, start.request_id, start.callback) == ("s", "o p", "rid", "http://x")
    assert dict(start.callback_header) == {"some-token": "t"}
    assert list(start.links) == [Link(url="temporal:///l", type="a.B")]
    assert start.payload == payload("json/plain", b'"hi"')
    assert task.request.header["x-other"] == "o"
    assert not {"content-type", "x-forwarded-for", "host"} & set(task.request.header)


async def test_contents_and_payloads(http: HttpSetup) -> None:
    whole = payload("json/plain", b"1", q="z")
    for headers, body, made in (
        ({}, b"", payload("binary/null")),
        ({"Content-Type": "application/octet-stream"}, b"\x00\xff", payload("binary/plain", b"\x00\xff")),
        (
            {"Content-Type": 'application/json; format=protobuf; message-type="a.B"'},
            b"{}",
            payload("json/protobuf", b"{}", messageType="a.B"),
        ),
        (
            {"Content-Type": 'application/x-protobuf; message-type="a.B"'},
            b"x",
            payload("binary/protobuf", b"x", messageType="a.B"),
        ),
        ({"Content-Type": "application/x-temporal-payload"}, whole.SerializeToString(), whole),
        (
            {"Content-Type": "text/x", "Content-Language": "en"},
            b"zz",
            payload("unknown/nexus-content", b"zz", type="text/x", language="en"),
        ),
    ):
        http.matching.answer("dispatch_nexus_task", started(sync_success=StartOperationResponse.Sync(payload=made)))
        reply = await http.ask("POST", START, body, headers=headers)
        assert http.matching.last().request.start_operation.payload == made
        assert reply.status == 200
        if made is not whole:
            assert reply.body == body
            assert {name: reply.headers.get(name.lower()) for name in headers} == headers


async def test_an_operation_that_goes_on(http: HttpSetup) -> None:
    http.matching.answer(
        "dispatch_nexus_task", started(async_success=StartOperationResponse.Async(operation_token="t"))
    )
    reply = await http.ask("POST", START)
    assert (reply.status, reply.body) == (201, b'{"token":"t","state":"running"}')


OLD_FAILURE = NexusFailure(message="no", metadata={"k": "v"}, details=b'{"d":1}')
OLD_JSON = {"message": "no", "metadata": {"k": "v"}, "details": {"d": 1}}
BOOM = Failure(
    message="boom",
    stack_trace="st",
    application_failure_info=ApplicationFailureInfo(type="T", non_retryable=True),
    cause=Failure(message="c"),
)
BOOM_JSON = {
    "message": "boom",
    "stackTrace": "st",
    "metadata": {"type": FAILURE},
    "details": {"cause": {"message": "c"}, "applicationFailureInfo": {"type": "T", "nonRetryable": True}},
    "cause": {"message": "c", "metadata": {"type": FAILURE}, "details": {}},
}


@pytest.mark.parametrize(
    ("answer", "state", "cause"),
    [
        (
            {"operation_error": UnsuccessfulOperationError(operation_state="failed", failure=OLD_FAILURE)},
            "failed",
            OLD_JSON,
        ),
        (
            {"operation_error": UnsuccessfulOperationError(operation_state="canceled", failure=OLD_FAILURE)},
            "canceled",
            OLD_JSON,
        ),
        ({"failure": BOOM}, "failed", BOOM_JSON),
        (
            {"failure": Failure(message="b", canceled_failure_info=CanceledFailureInfo())},
            "canceled",
            {"message": "b", "metadata": {"type": FAILURE}, "details": {"canceledFailureInfo": {}}},
        ),
    ],
)
async def test_operations_that_fail(http: HttpSetup, answer: Any, state: str, cause: Any) -> None:
    http.matching.answer("dispatch_nexus_task", started(**answer))
    wrapper = {
        "message": "operation error",
        "metadata": {"type": "nexus.OperationError", "unwrap-error": "true"},
        "details": {"state": state},
        "cause": cause,
    }
    for headers, shown in (({}, cause), (SUPPORTS, wrapper)):
        reply = await http.ask("POST", START, headers=headers)
        assert (reply.status, reply.json()) == (424, shown)
        assert reply.headers["nexus-operation-state"] == state
        assert reply.headers["temporal-nexus-failure-source"] == "worker"


HANDLER = Failure(
    message="he",
    nexus_handler_failure_info=NexusHandlerFailureInfo(type="UNAVAILABLE", retry_behavior=1),
    cause=Failure(message="cc"),
)
CC = {"message": "cc", "metadata": {"type": FAILURE}, "details": {}}


@pytest.mark.parametrize(
    ("outcome", "status", "retryable", "cause", "whole"),
    [
        (
            NexusOutcome(failure=HANDLER),
            503,
            "true",
            CC,
            refused("he", "UNAVAILABLE", retryableOverride=True) | {"cause": CC},
        ),
        (
            NexusOutcome(
                error=HandlerError(error_type="NOT_FOUND", failure=NexusFailure(message="nf"), retry_behavior=2)
            ),
            404,
            "false",
            {"message": "nf"},
            {
                "metadata": {"type": "nexus.HandlerError"},
                "details": {"type": "NOT_FOUND", "retryableOverride": False},
                "cause": {"message": "nf"},
            },
        ),
        (
            NexusOutcome(error=HandlerError(error_type="weird")),
            500,
            None,
            {},
            {"metadata": {"type": "nexus.HandlerError"}, "details": {"type": "weird"}, "cause": {}},
        ),
        (
            NexusOutcome(),
            520,
            None,
            refused("upstream timeout", "UPSTREAM_TIMEOUT"),
            refused("upstream timeout", "UPSTREAM_TIMEOUT"),
        ),
        (started(), 500, None, refused("empty outcome", "INTERNAL"), refused("empty outcome", "INTERNAL")),
    ],
)
async def test_workers_that_refuse(
    http: HttpSetup, outcome: Any, status: int, retryable: str | None, cause: Any, whole: Any
) -> None:
    http.matching.answer("dispatch_nexus_task", outcome)
    for headers, shown in (({}, cause), (SUPPORTS, whole)):
        reply = await http.ask("POST", START, headers=headers)
        assert (reply.status, reply.json(), reply.headers.get("nexus-request-retryable")) == (status, shown, retryable)
        assert reply.headers["temporal-nexus-failure-source"] == "worker"


async def test_cancellation(http: HttpSetup) -> None:
    http.matching.answer(
        "dispatch_nexus_task", NexusOutcome(response=Response(cancel_operation=CancelOperationResponse()))
    )
    for path, headers in (
        (f"{START}/cancel", {"Nexus-Operation-Token": "tk"}),
        (f"{START}/cancel?token=tk", {}),
        (f"{START}/tk/cancel", {}),
    ):
        reply = await http.ask("POST", path, headers=headers)
        assert (reply.status, reply.body) == (202, b"")
        request = http.matching.last().request
        assert (request.cancel_operation.operation_token, request.cancel_operation.operation) == ("tk", "o")
        assert "nexus-operation-token" not in request.header


async def test_refused_calls(http: HttpSetup) -> None:
    external = await endpoint_of(http, external=EndpointTarget.External(url="http://x"))
    for verb, path, headers, status, shown in (
        ("GET", START, {}, 400, refused('invalid request method: expected POST, got "GET"', "BAD_REQUEST")),
        ("POST", f"{QUEUE}/s", {}, 404, refused("not found", "NOT_FOUND")),
        ("POST", f"{START}/p", {}, 404, refused("not found", "NOT_FOUND")),
        ("POST", f"{START}/cancel", {}, 400, refused("missing operation token", "BAD_REQUEST")),
        ("POST", START, {"Request-Timeout": "z"}, 400, refused("invalid request timeout header", "BAD_REQUEST")),
        ("POST", START, {"Nexus-Link": "z"}, 400, refused('invalid "nexus-link" header', "BAD_REQUEST")),
        (
            "POST",
            START.replace("default", "nope"),
            {},
            404,
            refused('namespace not found: "nope"', "NOT_FOUND"),
        ),
        (
            "POST",
            START.replace("default", "x" * 1001),
            {},
            400,
            refused("Namespace length exceeds limit.", "BAD_REQUEST"),
        ),
        (
            "POST",
            "/nexus/endpoints/00000000-0000-4000-8000-000000000000/services/s/o",
            {},
            404,
            refused("nexus endpoint not found", "NOT_FOUND", retryableOverride=False),
        ),
        (
            "POST",
            f"/nexus/endpoints/{external}/services/s/o",
            {},
            400,
            refused("invalid endpoint target", "BAD_REQUEST"),
        ),
        ("POST", "/nexus/endpoints/x/services", {}, 404, {"code": 5, "message": "Not Found"}),
        (
            "POST",
            START,
            {"Content-Type": "application/x-temporal-payload"},
            400,
            refused("invalid input", "BAD_REQUEST"),
        ),
    ):
        reply = await http.ask(verb, path, b"\xff", headers=headers)
        assert (reply.status, reply.json()) == (status, shown), path
    reply = await http.ask("POST", START, b"x" * (3 << 20), headers=JSON)
    assert (reply.status, reply.json()) == (400, refused("invalid input", "BAD_REQUEST"))
    http.matching.answer("dispatch_nexus_task", Unavailable("secret"))
    reply = await http.ask("POST", START)
    assert (reply.status, reply.json()) == (503, refused("service unavailable", "UNAVAILABLE"))


async def test_completions(http: HttpSetup) -> None:
    http.history.answer("complete_nexus_operation", lambda _: None)
    wrapped = {
        "message": "operation error",
        "metadata": {"type": "nexus.OperationError", "unwrap-error": "true"},
        "details": {"state": "failed"},
        "cause": BOOM_JSON,
    }
    link = "<temporal:///namespaces/n/workflows/w/r/history?eventType=WorkflowExecutionStarted&referenceType=EventReference>"
    kind = 'type="temporal.api.common.v1.Link.WorkflowEvent"'
    for path, state, headers, body in (
        ("/nexus/callback", "succeeded", JSON, "7"),
        ("/namespaces/default/nexus/callback", "failed", JSON, json.dumps(wrapped)),
        ("/nexus/callback", "canceled", JSON, json.dumps(BOOM_JSON)),
    ):
        told = {"Nexus-Operation-State": state, "Nexus-Operation-Token": "tk", "Nexus-Link": f"{link}; {kind}"}
        told["Nexus-Operation-Start-Time"] = "Tue, 01 Dec 2026 02:39:54 GMT"
        told["Nexus-Operation-Close-Time"] = "2026-12-01T02:39:54.123Z"
        reply = await http.ask("POST", path, body, headers=headers | told | CALLBACK_TOKEN)
        assert (reply.status, reply.body) == (200, b"")
        completion: NexusCompletion = http.history.last()
        for name in ("namespace", "workflow_id", "run_id", "scheduled_event_id", "request_id"):
            assert getattr(completion, name) == getattr(TOKEN, name)
        assert completion.operation_token == "tk"
        assert completion.started_at is not None and completion.started_at.isoformat() == "2026-12-01T02:39:54+00:00"
        assert [found.workflow_event.workflow_id for found in completion.links] == ["w"]
        assert completion.state == ("completed" if state == "succeeded" else state)
        if state == "succeeded":
            assert completion.payload == payload("json/plain", b"7")
        else:
            assert completion.failure == BOOM


async def test_refused_completions(http: HttpSetup) -> None:
    other = msgspec.structs.replace(TOKEN, namespace="nope")
    succeeded = {"Nexus-Operation-State": "succeeded"}
    failed = {"Nexus-Operation-State": "failed"}
    bad_token = "invalid callback token"
    for path, headers, body, status, message in (
        ("/nexus/callback", {}, "", 400, 'invalid request operation state: ""'),
        ("/nexus/callback", succeeded, "", 400, bad_token),
        ("/nexus/callback", succeeded | {"Temporal-Callback-Token": "zzz"}, "", 400, bad_token),
        ("/nexus/callback", failed, "", 400, 'invalid request content type: ""'),
        ("/nexus/callback", failed | JSON, "{", 400, "failed to decode Failure from request body"),
        ("/nexus/callback", failed | JSON, "[" * 100_000, 400, "failed to decode Failure from request body"),
        ("/nexus/callback", failed | JSON, "{}", 400, bad_token),
        (
            "/nexus/callback",
            succeeded | {"Nexus-Operation-Start-Time": "z"},
            "",
            400,
            "failed to parse operation start time header",
        ),
        (
            "/nexus/callback",
            succeeded | {"Nexus-Operation-Close-Time": "z"},
            "",
            400,
            "failed to parse operation close time header",
        ),
        ("/nexus/callback", succeeded | {"Nexus-Link": "z"}, "", 400, "failed to decode links from request headers"),
        ("/namespaces/other/nexus/callback", succeeded | CALLBACK_TOKEN, "", 400, bad_token),
        (
            "/nexus/callback",
            succeeded | {"Temporal-Callback-Token": encode_token(other).decode("latin-1")},
            "",
            404,
            'namespace "nope" not found',
        ),
    ):
        reply = await http.ask("POST", path, body, headers=headers)
        kind = "NOT_FOUND" if status == 404 else "BAD_REQUEST"
        assert (reply.status, reply.json()) == (status, refused(message, kind)), headers
    http.history.answer("complete_nexus_operation", NotFound("operation not found"))
    reply = await http.ask("POST", "/nexus/callback", headers=succeeded | CALLBACK_TOKEN)
    assert (reply.status, reply.json()) == (404, refused("operation not found", "NOT_FOUND"))
