"""What does not fit is refused with the path of the offending value, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from google.protobuf.wrappers_pb2 import Int32Value
from temporalio.api.common.v1 import Payload, Payloads, Priority, RetryPolicy
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent, TimerStartedEventAttributes
from temporalio.api.workflow.v1 import WorkflowExecutionVersioningInfo
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.codec import CodecError, from_dict, from_json, to_dict, to_json

EVENT, STARTED = HistoryEvent, "workflowExecutionStartedEventAttributes"
ANY_URL = "type.googleapis.com/"

# type, malformed JSON value, path to blame
REFUSED_LIKE_JSON_FORMAT: list[tuple[type[Message], Any, str]] = [
    (EVENT, {"eventId": "seven"}, "eventId"),
    (EVENT, {"eventId": "1 2"}, "eventId"),
    (EVENT, {"eventId": 1.5}, "eventId"),
    (EVENT, {"eventId": True}, "eventId"),
    (EVENT, {"eventId": [1]}, "eventId"),
    (EVENT, {"eventId": str(2**63)}, "eventId"),
    (EVENT, {"eventId": "9" * 5000}, "eventId"),
    (EVENT, {"eventType": "EVENT_TYPE_NOPE"}, "eventType"),
    (EVENT, {"eventType": {}}, "eventType"),
    (EVENT, {"eventType": 2**31}, "eventType"),
    (EVENT, {"eventTime": "yesterday"}, "eventTime"),
    (EVENT, {"eventTime": "2025-13-01T00:00:00Z"}, "eventTime"),
    (EVENT, {"eventTime": "2025-02-30T00:00:00.5Z"}, "eventTime"),
    (EVENT, {"eventTime": "2025-01-01T00:00:00"}, "eventTime"),
    (EVENT, {"eventTime": "2025-01-01t00:00:00Z"}, "eventTime"),
    (EVENT, {"eventTime": "2025-01-01T00:00:00.1234567890Z"}, "eventTime"),
    (EVENT, {"eventTime": "2025-W01-1T00:00:00Z"}, "eventTime"),
    (EVENT, {"eventTime": "0001-01-01T00:00:00+00:01"}, "eventTime"),
    (EVENT, {"eventTime": 1_760_000_000}, "eventTime"),
    (EVENT, {"workerMayIgnore": "true"}, "workerMayIgnore"),
    (EVENT, {"workerMayIgnore": 1}, "workerMayIgnore"),
    (EVENT, {"links": {}}, "links"),
    (EVENT, {"links": [{}, None]}, "links[1]"),
    (EVENT, {"links": [{}, {"workflowEvent": 5}]}, "links[1].workflowEvent"),
    (EVENT, {"nope": 1}, "nope"),
    (EVENT, {"[tests.extension]": 1}, "[tests.extension]"),
    (EVENT, {STARTED: {"memo": {"fields": {"note": {"data": 5}}}}}, f"{STARTED}.memo.fields.note.data"),
    (EVENT, {STARTED: {"memo": {"fields": []}}}, f"{STARTED}.memo.fields"),
    (EVENT, {STARTED: {"identity": 5}}, f"{STARTED}.identity"),
    (EVENT, {STARTED: {"identity": ["a"]}}, f"{STARTED}.identity"),
    (EVENT, {STARTED: {"identity": "\ud800"}}, f"{STARTED}.identity"),
    (EVENT, {STARTED: {"workflowRunTimeout": "10"}}, f"{STARTED}.workflowRunTimeout"),
    (EVENT, {STARTED: {"workflowRunTimeout": 10}}, f"{STARTED}.workflowRunTimeout"),
    (EVENT, {STARTED: {"workflowRunTimeout": "1e3.5s"}}, f"{STARTED}.workflowRunTimeout"),
    (EVENT, {STARTED: {}, "timerFiredEventAttributes": {}}, "timerFiredEventAttributes"),
    (RetryPolicy, {"backoffCoefficient": "twice"}, "backoffCoefficient"),
    (RetryPolicy, {"backoffCoefficient": [2]}, "backoffCoefficient"),
    (RetryPolicy, {"backoffCoefficient": "nan"}, "backoffCoefficient"),
    (RetryPolicy, {"backoffCoefficient": float("nan")}, "backoffCoefficient"),
    (RetryPolicy, {"maximumAttempts": 2**31}, "maximumAttempts"),
    (RetryPolicy, {"nonRetryableErrorTypes": "one"}, "nonRetryableErrorTypes"),
    (RetryPolicy, {"nonRetryableErrorTypes": ["one", 2]}, "nonRetryableErrorTypes[1]"),
    (Priority, {"fairnessWeight": 1e39}, "fairnessWeight"),
    (Payload, {"metadata": {"encoding": None}}, "metadata.encoding"),
    (Payload, {"metadata": {5: "AA=="}}, "metadata.5"),
    (Payload, {"data": "A"}, "data"),
    (Payload, None, ""),
    (Payload, "text", ""),
    (Failure, {"cause": {"cause": {"cause": "deep"}}}, "cause.cause.cause"),
    (Timestamp, "9999-12-31T23:59:59-01:00", ""),
    (Duration, "315576000001s", ""),
    (FieldMask, 5, ""),
    (Struct, [], ""),
    (Struct, {"a": {"b": [1, object()]}}, "a.b[1]"),
    (ListValue, {}, ""),
    (ListValue, [1, {1, 2}], "[1]"),
    (Value, {1, 2}, ""),
    (Int32Value, "x", ""),
    (AnyMessage, {"type": "x"}, "@type"),
    (AnyMessage, {"@type": ANY_URL + "no.such.Type"}, ""),
    (AnyMessage, {"@type": ANY_URL + "temporal.api.common.v1.Payload", "data": 5}, "data"),
    (AnyMessage, {"@type": ANY_URL + "google.protobuf.Timestamp", "value": "now"}, "value"),
    (AnyMessage, {"@type": ANY_URL + "google.protobuf.Timestamp"}, "value"),
]
# What json_format takes by accident and the codec does not.
REFUSED_BY_THE_CODEC: list[tuple[type[Message], Any, str]] = [
    (Payload, {"data": "!!!!"}, "data"),
    (Payload, {"data": "AAA=AAA="}, "data"),
    (Payload, {"data": "é"}, "data"),
    (Payloads, {"payloads": [{}, {"data": "Zm9v\n"}]}, "payloads[1].data"),
    (Payload, [], ""),
    (EVENT, {"links": [{}, {"workflowEvent": []}]}, "links[1].workflowEvent"),
    (EVENT, {"eventType": True}, "eventType"),
    (EVENT, {"eventType": 1.5}, "eventType"),
    (EVENT, {"eventId": "1", "event_id": "2"}, "event_id"),
    (RetryPolicy, {"backoffCoefficient": True}, "backoffCoefficient"),
    (RetryPolicy, {"backoffCoefficient": "inf"}, "backoffCoefficient"),
    (Priority, {"fairnessWeight": "1e39"}, "fairnessWeight"),
    (WorkflowExecutionVersioningInfo, {"behavior": [], "version": ""}, "behavior"),
]


def blamed(cls: type[Message], value: Any) -> CodecError:
    """Return the error with which `from_dict` refuses `value`."""
    with pytest.raises(CodecError) as caught:
        from_dict(cls, value)
    assert caught.value.reason
    return caught.value


@pytest.mark.parametrize(("cls", "value", "path"), REFUSED_LIKE_JSON_FORMAT)
def test_malformed_values_name_their_path(cls: type[Message], value: Any, path: str) -> None:
    assert blamed(cls, value).path == path
    with pytest.raises(Exception):  # noqa: B017, PT011 - json_format lets errors of many types through
        json_format.ParseDict(value, cls())


@pytest.mark.parametrize(("cls", "value", "path"), REFUSED_BY_THE_CODEC)
def test_the_codec_is_stricter_about_accidents(cls: type[Message], value: Any, path: str) -> None:
    assert blamed(cls, value).path == path


def test_an_error_says_what_and_where() -> None:
    error = blamed(EVENT, {STARTED: {"input": {"payloads": [{"data": 5}]}}})
    assert str(error) == f"expected a base64 string, got a number at {STARTED}.input.payloads[0].data"
    assert str(blamed(EVENT, {"eventType": "NO"})) == (
        "'NO' is not a name or number of enum temporal.api.enums.v1.EventType at eventType"
    )
    assert str(blamed(Payload, [])) == "expected an object, got an array"


def test_an_error_deep_in_nested_arrays_is_found_at_once() -> None:
    bad: Any = {1}
    for _ in range(60):
        bad = [0, bad]
    assert blamed(ListValue, bad).path == "[1]" * 60


def test_json_values_nested_beyond_the_wire_format_are_refused() -> None:
    value: Any = 1
    for _ in range(99):
        value = [value]
    assert "Exceeded" in blamed(ListValue, value).reason


@pytest.mark.parametrize("text", [b"", b"{", b'{"eventId": 1}}', b"\xff", b'{"a": NaN}', "{", b"[" * 100_000])
def test_what_is_not_json(text: bytes | str) -> None:
    with pytest.raises(CodecError):
        from_json(EVENT, text)


def test_json_errors_have_the_path_too() -> None:
    with pytest.raises(CodecError) as caught:
        from_json(EVENT, json.dumps({STARTED: {"attempt": "x"}}))
    assert caught.value.path == f"{STARTED}.attempt"


def test_nesting_beyond_pythons_stack_is_an_error_not_a_crash() -> None:
    value: dict[str, Any] = {}
    for _ in range(5_000):
        value = {"cause": value}
    assert blamed(Failure, value).reason == "nested too deeply"


# message, path of what has no JSON form
NO_JSON_FORM: list[tuple[Message, str]] = [
    (EVENT(event_time=Timestamp(seconds=253_402_300_800)), "eventTime"),
    (EVENT(event_time=Timestamp(nanos=-1)), "eventTime"),
    (EVENT(event_time=Timestamp(nanos=1_000_000_000)), "eventTime"),
    (EVENT(event_time=Timestamp(nanos=-1_000_000_000)), "eventTime"),
    (
        EVENT(
            timer_started_event_attributes=TimerStartedEventAttributes(
                start_to_fire_timeout=Duration(seconds=1, nanos=-1)
            )
        ),
        "timerStartedEventAttributes.startToFireTimeout",
    ),
    (Struct(fields={"a": Value(list_value=ListValue(values=[Value(), Value(number_value=float("nan"))]))}), "a[1]"),
    (Value(number_value=float("inf")), ""),
    (FieldMask(paths=["camelCase"]), ""),
    (AnyMessage(type_url=ANY_URL + "no.such.Type"), ""),
    (AnyMessage(type_url=ANY_URL + "temporal.api.common.v1.Payload", value=b"\xff"), "value"),
]


@pytest.mark.parametrize(("message", "path"), NO_JSON_FORM)
def test_messages_without_a_json_form_are_refused(message: Message, path: str) -> None:
    for write in (to_dict, to_json):
        with pytest.raises(CodecError) as caught:
            write(message)
        assert caught.value.path == path
    with pytest.raises(Exception):  # noqa: B017, PT011 - json_format lets errors of many types through
        json_format.MessageToDict(message)


def test_a_bad_value_among_the_headers_of_a_request() -> None:
    value = {"header": {"fields": {"good": {}, "bad": {"metadata": {"encoding": "?"}}}}}
    assert blamed(StartWorkflowExecutionRequest, value).path == "header.fields.bad.metadata.encoding"
