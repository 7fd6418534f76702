"""The codec equals `json_format`: for every API message type, and for every kind of field proto3 has."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent, TimerFiredEventAttributes

from common.codec import from_dict, from_json, to_dict, to_json
from common.codec.decode import Decoders
from common.codec.encode import Encoders
from tests.common.codec_everything import everything
from tests.common.codec_samples import history
from tests.common.codec_strategies import api_types, messages, one_field_messages

EVERYTHING = everything()
QUICK = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=12,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def wire(message: Message) -> bytes:
    """Return what two equal messages share even when they hold NaN, which differs from itself."""
    return message.SerializeToString(deterministic=True)


def check_equal(message: Message, *, lossy: bool = False) -> None:
    """Assert that the codec prints what `json_format` prints, and reads it back.

    A `lossy` message is one that its JSON form does not hold in full; then `json_format` says what comes back.
    (It may not say so for all: it packs the maps inside an Any in an order of its own.)
    """
    cls = type(message)
    expected = json_format.MessageToDict(message)
    assert to_dict(message) == expected
    text = to_json(message)
    assert json.loads(text) == expected
    back = wire(json_format.ParseDict(expected, cls()) if lossy else message)
    assert wire(from_dict(cls, expected)) == back
    assert wire(from_json(cls, text)) == wire(from_json(cls, text.decode())) == back


@pytest.mark.parametrize("name", api_types())
def test_random_messages_of_every_type(name: str) -> None:
    cls = api_types()[name]

    @QUICK
    @given(messages(cls, depth=2))
    def check(message: Message) -> None:
        check_equal(message)

    check()


def test_each_field_alone_of_every_type() -> None:
    for name, cls in api_types().items():
        check_equal(cls(), lossy=True)
        if not name.startswith("google.protobuf."):  # their fields have bounds that their own tests know
            for message in one_field_messages(cls):
                check_equal(message, lossy=True)


@settings(QUICK, max_examples=150)
@given(messages(HistoryEvent, depth=4))
def test_random_history_events(message: Message) -> None:
    check_equal(message)


@settings(QUICK, max_examples=200)
@given(messages(EVERYTHING, depth=3))
def test_random_messages_with_every_kind_of_field(message: Message) -> None:
    check_equal(message)


def test_each_kind_of_field_alone() -> None:
    for message in one_field_messages(EVERYTHING):
        check_equal(message, lossy=True)


def test_a_realistic_history() -> None:
    for event in history():
        check_equal(event)
        assert from_json(HistoryEvent, to_json(event)) == event


def test_original_names_and_enum_numbers_are_read_too() -> None:
    for event in history():
        value = json_format.MessageToDict(event, preserving_proto_field_name=True, use_integers_for_enums=True)
        assert from_dict(HistoryEvent, value) == event


@pytest.mark.parametrize(
    "nanos", [0, 1, 999, 1_000, 999_000, 1_000_000, 12_000_000, 99_999_999, 100_000_000, 123_456_000, 999_999_999]
)
@pytest.mark.parametrize("seconds", [-62_135_596_800, -1, 0, 1_760_000_000, 253_402_300_799])
def test_timestamps_have_0_3_6_or_9_digits(seconds: int, nanos: int) -> None:
    check_equal(HistoryEvent(event_time=Timestamp(seconds=seconds, nanos=nanos)))
    check_equal(Timestamp(seconds=seconds, nanos=nanos))


@pytest.mark.parametrize("nanos", [0, 1, 1_000, 1_000_000, 10_000_000, 999_999_999])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seconds", [0, 1, 315_576_000_000])
def test_durations_have_0_3_6_or_9_digits(seconds: int, nanos: int, sign: int) -> None:
    check_equal(Duration(seconds=sign * seconds, nanos=sign * nanos))


@pytest.mark.parametrize(
    "text",
    [
        "2025-10-09T08:53:20+02:30",
        "2025-10-09T08:53:20.5-07:00",
        "2025-10-09T08:53:20.1234Z",
        "2025-1-9T8:53:20Z",
        "1969-12-31T23:59:59.999999999Z",
    ],
)
def test_unusual_timestamps_are_read(text: str) -> None:
    assert from_dict(Timestamp, text) == json_format.ParseDict(text, Timestamp())  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["+_-/", "-_8", "AA", "AAA=", "AA==", ""])
def test_unusual_base64_is_read(text: str) -> None:
    value = {"data": text.replace("+_", "-_").replace("/", "_")}
    assert from_dict(Payload, value) == json_format.ParseDict(value, Payload())


def test_a_set_but_default_member_of_a_oneof_is_kept() -> None:
    choice = EVERYTHING(choice_type_int32=0)
    assert to_dict(choice) == {"choiceTypeInt32": 0}
    assert from_dict(EVERYTHING, {"choiceTypeInt32": 0}).WhichOneof("choice") == "choice_type_int32"
    event = HistoryEvent(timer_fired_event_attributes=TimerFiredEventAttributes())
    assert from_json(HistoryEvent, to_json(event)).WhichOneof("attributes") == "timer_fired_event_attributes"


def test_null_means_absent_except_in_a_json_value() -> None:
    assert from_dict(HistoryEvent, {"eventId": None, "eventTime": None, "links": None}) == HistoryEvent()
    assert from_dict(EVERYTHING, {"oneValue": None}) == json_format.ParseDict({"oneValue": None}, EVERYTHING())
    assert from_dict(EVERYTHING, {"oneValue": None}).HasField("one_value")
    assert from_dict(EVERYTHING, {"choiceTypeInt32": None, "choiceTypeBool": True}).WhichOneof("choice")


def test_an_unset_json_value_is_printed_as_null() -> None:
    check_equal(Value(), lossy=True)
    check_equal(Struct(fields={"a": Value()}), lossy=True)
    check_equal(ListValue(values=[Value(), Value(number_value=1)]), lossy=True)


def test_any_holds_messages_with_and_without_a_form_of_their_own() -> None:
    for packed in (Payload(data=b"1"), Timestamp(seconds=5), Failure(message="no"), Value(string_value="s")):
        message = AnyMessage()
        message.Pack(packed)
        check_equal(message)


def test_large_payload_bytes() -> None:
    data = bytes(range(256)) * 4096
    message = Payloads(payloads=[Payload(metadata={"encoding": b"binary/plain"}, data=data)])
    check_equal(message)
    assert from_json(Payloads, to_json(message)).payloads[0].data == data


def test_recursive_messages() -> None:
    failure = Failure(message="root")
    for depth in range(60):
        failure = Failure(message=f"level {depth}", cause=failure)
    check_equal(failure)


@settings(QUICK, max_examples=100)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.text('aé\n"')))
def test_a_struct_is_any_json_object(value: dict[str, Any]) -> None:
    value = {key: item if isinstance(item, str) else item % 2**50 for key, item in value.items()}
    assert to_dict(from_dict(Struct, value)) == value


def test_threads_may_meet_a_type_for_the_first_time_together() -> None:
    event = history()[0]
    expected = json_format.MessageToDict(event)

    def meet(encoders: Encoders, decoders: Decoders, start: Barrier) -> tuple[Any, Any]:
        start.wait()
        return encoders.encode(event), decoders.of(HistoryEvent)(expected)

    for _ in range(10):
        fresh = Encoders(raw_bytes=False), Decoders(), Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(meet, *fresh) for _ in range(4)]
        for answer in answers:
            value, fields = answer.result()
            assert value == expected
            assert HistoryEvent(**fields) == event
