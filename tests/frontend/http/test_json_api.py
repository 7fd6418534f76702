"""The JSON HTTP API against what the official server 1.32.0 answers to the same requests."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.api import annotations_pb2
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType, HistoryEventFilterType
from temporalio.api.history.v1 import History, HistoryEvent, WorkflowExecutionSignaledEventAttributes
from temporalio.api.workflowservice import v1 as ws

from common.errors import NotFound
from frontend.http.routes import all_routes, find
from frontend.methods import SERVICES

from .conftest import HttpSetup

PLACE = "/api/v1/namespaces/default/workflows/w"
HISTORY = f"{PLACE}/history"
SIGNAL = f"{PLACE}/signal/s"


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def payload(encoding: str, data: bytes = b"", **more: str) -> Payload:
    metadata = {"encoding": encoding.encode(), **{key: value.encode() for key, value in more.items()}}
    return Payload(metadata=metadata, data=data)


def history_of(*payloads: Payload) -> ws.GetWorkflowExecutionHistoryResponse:
    attributes = WorkflowExecutionSignaledEventAttributes(signal_name="s", input=Payloads(payloads=payloads))
    event = HistoryEvent(
        event_id=1,
        event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
        workflow_execution_signaled_event_attributes=attributes,
    )
    return ws.GetWorkflowExecutionHistoryResponse(history=History(events=[event]))


def test_every_annotated_method_has_its_route() -> None:
    methods = [method for service in SERVICES for method in service.methods]
    annotated = {method.name for method in methods if method.GetOptions().HasExtension(annotations_pb2.http)}
    routed = {route.method.path.rpartition("/")[2] for route in all_routes()}
    assert routed == annotated
    assert len(all_routes()) > 200
    for route in all_routes():
        path = "/" + "/".join(segment or "x" for segment in route.segments)
        assert find(route.verb, path).route.method == route.method, path


async def test_a_start_says_all_of_the_request(http: HttpSetup) -> None:
    http.history.answer("start_workflow_execution", ws.StartWorkflowExecutionResponse(run_id="r", started=True))
    body = {
        "workflowType": {"name": "T"},
        "taskQueue": {"name": "q"},
        "requestId": "one",
        "input": [1, "two", {"a": [True, None, 1.5], "_protoMessageType": "x.Y"}, None],
        "memo": {"fields": {"m": {"k": "v"}}},
        "namespace": "of the body",
    }
    reply = await http.ask("POST", PLACE, body)
    assert (reply.status, reply.headers["content-type"]) == (200, "*")
    assert reply.json() == {"runId": "r", "started": True}
    request = http.history.last()
    assert (request.namespace, request.workflow_id, request.request_id) == ("default", "w", "one")
    assert list(request.input.payloads) == [
        payload("json/plain", b"1"),
        payload("json/plain", b'"two"'),
        payload("json/protobuf", b'{"a":[true,null,1.5]}', messageType="x.Y"),
        payload("binary/null"),
    ]
    assert request.memo.fields["m"] == payload("json/plain", b'{"k":"v"}')


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([], []),
        (None, []),
        ({}, []),
        ({"payloads": [3]}, [payload("json/plain", b"3")]),
        ([[1], {}, ""], [payload("json/plain", data) for data in (b"[1]", b"{}", b'""')]),
        ([{"b": 1, "a": {"metadata": 1}}], [payload("json/plain", b'{"a":{"metadata":1},"b":1}')]),
        ([{"metadata": {"encoding": text(b"binary/null")}}], [payload("binary/null")]),
        ([{"metadata": {"encoding": text(b"binary/plain")}, "data": "/+8="}], [payload("binary/plain", b"\xff\xef")]),
        (
            [{"metadata": {"encoding": "no base64"}, "data": "MQ=="}],
            [payload("json/plain", b'{"data":"MQ==","metadata":{"encoding":"no base64"}}')],
        ),
    ],
)
async def test_payloads_in_either_form(http: HttpSetup, given: Any, kept: list[Payload]) -> None:
    reply = await http.ask("POST", SIGNAL, {"input": given})
    assert reply.status == 200, reply.body
    assert list(http.history.last().input.payloads) == kept


@pytest.mark.parametrize(
    ("payloads", "shown"),
    [
        ([payload("json/plain", b'{"z":1,"a":"<&>"}')], [{"z": 1, "a": "<&>"}]),
        (
            [payload("json/plain", b"1"), payload("json/protobuf", b'{"q":1}', messageType="a.B")],
            [1, {"q": 1, "_protoMessageType": "a.B"}],
        ),
        ([payload("binary/null")], [{"metadata": {"encoding": text(b"binary/null")}}]),
        ([], []),
        (
            [payload("json/plain", b"1"), payload("binary/plain", b"\xff")],
            {
                "payloads": [
                    {"metadata": {"encoding": text(b"json/plain")}, "data": "MQ=="},
                    {"metadata": {"encoding": text(b"binary/plain")}, "data": "/w=="},
                ]
            },
        ),
        (
            [payload("json/plain", b"12", x="a")],
            {"payloads": [{"metadata": {"encoding": text(b"json/plain"), "x": "YQ=="}, "data": "MTI="}]},
        ),
    ],
)
async def test_payloads_are_shown_as_values(http: HttpSetup, payloads: list[Payload], shown: Any) -> None:
    http.history.answer("get_workflow_execution_history", history_of(*payloads))
    reply = await http.ask("GET", HISTORY)
    assert reply.json()["history"]["events"][0]["workflowExecutionSignaledEventAttributes"]["input"] == shown


async def test_a_payload_that_lies_about_its_encoding_is_seen_in_the_long_form(http: HttpSetup) -> None:
    http.history.answer("get_workflow_execution_history", history_of(payload("json/plain", b"{oops")))
    short = await http.ask("GET", HISTORY)
    assert (short.status, short.json()["code"]) == (500, 2)
    long = await http.ask("GET", f"{HISTORY}?noPayloadShorthand")
    assert long.status == 200 and text(b"{oops").encode() in long.body


@pytest.mark.parametrize(
    ("query", "accept", "media_type"),
    [
        ("", "", "*"),
        ("", "application/json", "*"),
        ("?pretty", "", "application/json+pretty"),
        ("", "application/json+pretty", "application/json+pretty"),
        ("?noPayloadShorthand", "", "application/json+no-payload-shorthand"),
        ("", "application/json+no-payload-shorthand", "application/json+no-payload-shorthand"),
        ("?pretty&noPayloadShorthand", "", "application/json+pretty+no-payload-shorthand"),
    ],
)
async def test_forms_of_an_answer(http: HttpSetup, query: str, accept: str, media_type: str) -> None:
    http.history.answer("get_workflow_execution_history", history_of(payload("json/plain", b"7")))
    reply = await http.ask("GET", HISTORY + query, headers={"Accept": accept} if accept else {})
    assert reply.headers["content-type"] == media_type
    shown = reply.json()["history"]["events"][0]["workflowExecutionSignaledEventAttributes"]["input"]
    assert (shown == [7]) == ("shorthand" not in media_type)
    assert (b'\n  "history": {\n    "events"' in reply.body) == ("pretty" in media_type)


async def test_parameters_of_the_query(http: HttpSetup) -> None:
    reply = await http.ask(
        "GET",
        f"{HISTORY}?maximum_page_size=1&historyEventFilterType=2&execution.runId={'0' * 8}-0000-4000-8000-{'0' * 12}"
        "&nextPageToken=-_8=&unknown=1&namespace=other&namespace.x=1&skipArchival=T",
    )
    assert reply.status == 200, reply.body
    request = http.history.last()
    assert (request.namespace, request.execution.workflow_id) == ("default", "w")
    assert request.execution.run_id.startswith("00000000-")
    assert (request.maximum_page_size, request.skip_archival) == (1, True)
    assert request.history_event_filter_type == HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
    assert request.next_page_token == b"\xfb\xff"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("maximumPageSize=x", 'parsing field "maximum_page_size": strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "maximumPageSize=3000000000",
            'parsing field "maximum_page_size": strconv.ParseInt: parsing "3000000000": value out of range',
        ),
        ("historyEventFilterType=7", 'parsing field "history_event_filter_type": "7" is not a valid value'),
        ("historyEventFilterType=close", 'parsing field "history_event_filter_type": "close" is not a valid value'),
        ("waitNewEvent=maybe", 'parsing field "wait_new_event": strconv.ParseBool: parsing "maybe": invalid syntax'),
        ("nextPageToken=%%%", 'invalid URL escape "%%%"'),
        ("nextPageToken=!!", 'parsing field "next_page_token": illegal base64 data at input byte 0'),
        (
            "execution=x",
            'parsing field "execution": unsupported message type: "temporal.api.common.v1.WorkflowExecution"',
        ),
        ("maximumPageSize=1&maximumPageSize=2", 'too many values for field "maximum_page_size": 1, 2'),
        ("maximumPageSize.x=1", 'invalid path: "maximumPageSize" is not a message'),
        ("maximumPageSize=1;x", "invalid semicolon separator in query"),
    ],
)
async def test_refused_parameters(http: HttpSetup, query: str, message: str) -> None:
    reply = await http.ask("GET", f"{HISTORY}?{query}")
    assert (reply.status, reply.json()) == (400, {"code": 3, "message": message})


@pytest.mark.parametrize("body", [b"", b"  ", '{"identity":"a"} trailing', '{"namespace":"zzz"}'])
async def test_bodies_that_pass(http: HttpSetup, body: Any) -> None:
    assert (await http.ask("POST", SIGNAL, body)).status == 200
    assert http.history.last().namespace == "default"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{", "unexpected EOF"),
        ('{"identity":', "unexpected EOF"),
        ("xyz", "invalid character 'x' looking for beginning of value"),
        (b"\xff\xfe\x00", "invalid character 'ÿ' looking for beginning of value"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("[]", "temporalproto: syntax error (line 1:1): unexpected token ["),
        ("null", "temporalproto: syntax error (line 1:1): unexpected token null"),
        ('{"nope":1}', None),
        ('{"identity":1}', None),
        ('{"input":5}', None),
        ('{"input":[{"_protoMessageType":5}]}', None),
        (b'{"identity":"\xff"}', None),
        ('{"identity":"\\ud800"}', None),
        ('{"input":[{"a":"\\ud800"}]}', None),
        ("[" * 100_000, None),
        ('{"input":' + "[" * 100_000, None),
        ('{"header":' * 5_000, None),
        ('{"input":[1e400]}', None),
    ],
)
async def test_refused_bodies(http: HttpSetup, body: Any, message: str | None) -> None:
    reply = await http.ask("POST", SIGNAL, body)
    assert (reply.status, reply.json()["code"]) == (400, 3)
    assert message is None or reply.json()["message"] == message
    assert http.history.asked("signal_workflow_execution") == []


async def test_a_body_that_is_too_large_is_refused_in_words(http: HttpSetup) -> None:
    reply = await http.ask("POST", SIGNAL, {"identity": "x" * (5 << 20)})
    assert (reply.status, reply.json()) == (400, {"code": 3, "message": "http: request body too large"})


async def test_errors_are_statuses_with_their_details(http: HttpSetup) -> None:
    http.history.answer("describe_workflow_execution", NotFound("workflow not found for ID: w"))
    reply = await http.ask("GET", PLACE)
    kind = "type.googleapis.com/temporal.api.errordetails.v1."
    assert (reply.status, reply.json()) == (
        404,
        {"code": 5, "message": "workflow not found for ID: w", "details": [{"@type": f"{kind}NotFoundFailure"}]},
    )
    reply = await http.ask("GET", "/api/v1/namespaces/nope/workflows/w")
    assert (reply.status, reply.json()["details"]) == (
        404,
        [{"@type": f"{kind}NamespaceNotFoundFailure", "namespace": "nope"}],
    )
    http.history.answer("describe_workflow_execution", RuntimeError("secret"))
    reply = await http.ask("GET", PLACE)
    assert (reply.status, reply.json()["code"]) == (500, 13) and b"secret" not in reply.body


@pytest.mark.parametrize(
    ("verb", "path", "status", "code"),
    [
        ("GET", "/", 404, 5),
        ("GET", "/nothing", 404, 5),
        ("GET", f"{PLACE}/", 404, 5),
        ("POST", f"{PLACE}/signal/a%2Fb", 404, 5),
        ("PUT", PLACE, 501, 12),
        ("OPTIONS", PLACE, 501, 12),
        ("POST", "/api/v1/cluster-info", 501, 12),
    ],
)
async def test_places_that_there_are_not(http: HttpSetup, verb: str, path: str, status: int, code: int) -> None:
    reply = await http.ask(verb, path)
    words = "Not Found" if code == 5 else "Method Not Allowed"
    assert (reply.status, reply.json()) == (status, {"code": code, "message": words})


async def test_paths_are_cleaned_and_must_be_readable(http: HttpSetup) -> None:
    reply = await http.ask("GET", "//api/../api/v1/cluster-info?pretty")
    assert (reply.status, reply.headers["location"]) == (301, "/api/v1/cluster-info?pretty")
    assert (await http.ask("POST", f"{PLACE}/signal/a%zz")).status == 400
    assert (await http.ask("HEAD", PLACE)).body == b""


async def test_a_form_stands_for_a_long_query(http: HttpSetup) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = await http.ask("POST", HISTORY, "maximumPageSize=3", headers=form)
    assert reply.status == 200, reply.body
    assert http.history.last().maximum_page_size == 3


async def test_the_callers_deadline(http: HttpSetup) -> None:
    refused = await http.ask("GET", PLACE, headers={"Grpc-Timeout": "x"})
    assert (refused.status, refused.json()) == (400, {"code": 3, "message": "invalid grpc-timeout: x"})

    async def late(request: Any) -> Any:
        await http.clock.sleep_until(http.clock.next_due() + (http.clock.next_due() - http.clock.now()) * 10)

    http.history.answer("describe_workflow_execution", late)
    from tests.frontend.conftest import passing_time

    reply = await passing_time(http, http.ask("GET", PLACE, headers={"Grpc-Timeout": "1S"}))
    assert (reply.status, reply.json()["code"]) == (504, 4)


async def test_pages_of_other_origins_are_refused(http: HttpSetup) -> None:
    reply = await http.ask("GET", PLACE, headers={"Origin": "https://evil.example"})
    assert (reply.status, reply.json()) == (403, {"code": 7, "message": "Host not allowed"})
    assert (await http.ask("GET", PLACE, headers={"Origin": "http://localhost"})).status == 200


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00", b"GET / HTTP/1.1\r\nHost: a b\r\nbad\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"]
)
async def test_what_is_no_http_ends_with_400(http: HttpSetup, data: bytes) -> None:
    answer = await http.send(data + b"\r\n\r\n")
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")


async def test_list_clusters_says_where_it_is(http: HttpSetup) -> None:
    from temporalio.api.operatorservice.v1 import ListClustersRequest

    (cluster,) = (await http.call(ListClustersRequest())).clusters
    assert cluster.http_address == http.server.addresses()["http"]
    assert json.loads((await http.ask("GET", "/cluster")).body)["clusterName"] == cluster.cluster_name
