"""API messages as fields of msgspec records."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads, RetryPolicy
from temporalio.api.failure.v1 import Failure

from common.codec import CodecError, dec_hook, enc_hook
from tests.common.codec_samples import FAILURE, RETRY_POLICY, payload, payloads


class Pending(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """A record such as History keeps: plain fields and API messages side by side."""

    activity_id: str
    scheduled_at: Timestamp
    attempt: int = 1
    retry_policy: RetryPolicy | None = None
    last_failure: Failure | None = None
    details: Payloads | None = None
    header: dict[str, Payload] = {}
    history: list[Failure] = []


RECORD = Pending(
    activity_id="a",
    scheduled_at=Timestamp(seconds=1_760_000_000, nanos=5),
    retry_policy=RETRY_POLICY,
    last_failure=FAILURE,
    details=payloads(b"\x00\xff", b""),
    header={"trace": payload(b'"id"'), "": Payload()},
    history=[FAILURE, Failure()],
)
BUILTINS = {
    "activityId": "a",
    "scheduledAt": "2025-10-09T08:53:20.000000005Z",
    "retryPolicy": json_format.MessageToDict(RETRY_POLICY),
    "lastFailure": json_format.MessageToDict(FAILURE),
    "details": {
        "payloads": [
            {"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": "AP8="},
            {"metadata": {"encoding": "anNvbi9wbGFpbg=="}},
        ]
    },
    "header": {"trace": json_format.MessageToDict(payload(b'"id"')), "": {}},
    "history": [json_format.MessageToDict(FAILURE), {}],
}


def test_json_both_ways() -> None:
    text = msgspec.json.encode(RECORD, enc_hook=enc_hook)
    assert json.loads(text) == BUILTINS
    assert msgspec.json.decode(text, type=Pending, dec_hook=dec_hook) == RECORD


def test_builtins_both_ways() -> None:
    value = msgspec.to_builtins(RECORD, enc_hook=enc_hook)
    assert value == BUILTINS
    assert msgspec.convert(value, Pending, dec_hook=dec_hook) == RECORD


def test_absent_messages_stay_absent() -> None:
    record = Pending(activity_id="a", scheduled_at=Timestamp())
    text = msgspec.json.encode(record, enc_hook=enc_hook)
    assert json.loads(text) == {"activityId": "a", "scheduledAt": "1970-01-01T00:00:00Z"}
    assert msgspec.json.decode(text, type=Pending, dec_hook=dec_hook) == record


def test_a_message_given_as_itself_is_taken_as_it_is() -> None:
    record = msgspec.convert({"activityId": "a", "scheduledAt": Timestamp(seconds=5)}, Pending, dec_hook=dec_hook)
    assert record.scheduled_at == Timestamp(seconds=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": {"trace": {"data": 5}}}, "expected a base64 string, got a number at data - at `$.header[...]`"),
        ({"history": [{}, {"cause": {"nope": 1}}]}, "Failure has no such field at cause.nope - at `$.history[1]`"),
        ({"scheduledAt": "soon"}, "missing valid timezone offset. - at `$.scheduledAt`"),
        ({"retryPolicy": []}, "expected an object, got an array - at `$.retryPolicy`"),
    ],
)
def test_errors_name_the_place_in_the_record_and_in_the_message(change: dict[str, Any], message: str) -> None:
    value = {**BUILTINS, **change}
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(value, Pending, dec_hook=dec_hook)
    assert str(caught.value).endswith(message)
    assert isinstance(caught.value.__cause__, CodecError)
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(json.dumps(value), type=Pending, dec_hook=dec_hook)
    assert str(caught.value).endswith(message)


def test_a_message_without_a_json_form_is_refused_when_the_record_is_written() -> None:
    record = Pending(activity_id="a", scheduled_at=Timestamp(nanos=-1))
    with pytest.raises(CodecError, match="nanos -1"):
        msgspec.json.encode(record, enc_hook=enc_hook)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        msgspec.json.encode({"a": object()}, enc_hook=enc_hook)
    with pytest.raises(TypeError, match="complex"):
        dec_hook(complex, "1")
