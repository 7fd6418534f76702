"""Turns what a scenario saw into plain JSON values that two servers can be compared by.

What stays: every field and enum, event ids, types and order, payloads (decoded), words of errors. What becomes a placeholder:
ids that a server draws (the same id the same placeholder), times (apart by hundreds of seconds or not), durations that
depend on the moment, tokens, sizes. A field without a presence of its own is left out when it is empty, as in proto3 JSON; so are
durations of zero and times of zero or of the year one, which mean the same as none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as Packed
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType
from temporalio.api.errordetails import v1 as errordetails_v1
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update import v1 as update_v1
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse

from tests.behaviours.harness import status_of

SPACES = re.compile("[ \u00a0]+")  # Go's protobuf varies them on purpose
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Present or not is what can be said of these: an order, a size, a number of writes of the server's own.
OPAQUE = {
    "task_token",
    "next_page_token",
    "history_size_bytes",
    "task_id",
    "version",
    "clock",
    "execution_duration",
    "state_transition_count",
}
# The load at the moment, and how the server is divided.
IGNORED = {"backlog_count_hint", "poller_scaling_decision", "poller_group_id", "poller_group_infos"}
DRAWN_BY_MATCHING = {"workflow_task_started_event_attributes", "activity_task_started_event_attributes"}
# Lists without an order of their own, and what to order them by.
UNORDERED = {
    "pending_activities": "activity_id",
    "pending_children": "initiated_id",
    "pending_nexus_operations": "scheduled_event_id",
}
# What comes packed into an Any: details of errors, and what updates say.
PACKED: dict[str, type[Message]] = {
    kind.DESCRIPTOR.full_name: kind
    for kind in (*vars(errordetails_v1).values(), *vars(update_v1).values())
    if isinstance(kind, type)
}
BACKOFF = "first_workflow_task_backoff"
WITHIN_A_SECOND = "<within a second>"
DISTANT_S = 50.0


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A gRPC error: status code, words, and the messages in its details."""

    code: str
    message: str
    details: list[Packed]


def refused(error: grpc.aio.AioRpcError) -> Refused:
    late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED  # by the server's word or by the client's own clock
    details = [] if late else list(status_of(error).details)
    return Refused(code=error.code().name, message="" if late else error.details() or "", details=details)


class Normaliser:
    """Makes values of one scenario plain. `labels` says what ids that a server drew are of, `prefix` goes, `began` is time zero."""

    def __init__(self, *, prefix: str, labels: Mapping[str, str], began: datetime) -> None:
        self._prefix = prefix
        self._labels = labels
        self._began = began

    def __call__(self, value: Any) -> Any:
        match value:
            case HistoryEvent():
                return self._event(value)
            case Message():
                return self._message(value)
            case Refused():
                return {
                    "refused": value.code,
                    "message": self._text(value.message),
                    **({"details": [self._packed(d) for d in value.details]} if value.details else {}),
                }
            case str():
                return self._text(value)
            case bytes():
                return self._text(value.decode(errors="backslashreplace"))
            case Mapping():
                return {self._text(str(key)): self(item) for key, item in sorted(value.items())}
            case None | bool() | int() | float():
                return value
        return [self(item) for item in value]

    def _event(self, event: HistoryEvent) -> dict[str, Any]:
        """Type first; attributes without their long name; `event_time` only when it is missing or far away."""
        plain = self._message(event)
        for known in ("event_id", "event_type", "version", "task_id"):
            plain.pop(known, None)
        when = plain.pop("event_time", "missing")
        body = event.WhichOneof("attributes")
        if body in DRAWN_BY_MATCHING and plain[body].get("request_id"):
            plain[body]["request_id"] = "<present>"
        return {
            "event": f"{event.event_id} {EventType.Name(event.event_type).removeprefix('EVENT_TYPE_')}",
            **(plain.pop(body) if body else {}),
            **({"event_time": when} if when != "<time>" else {}),
            **plain,
        }

    def _message(self, message: Message) -> Any:
        match message:
            case Timestamp():
                return self._time(message)
            case Duration():
                return duration_text(message)
            case Payloads():
                return [self(payload) for payload in message.payloads]
            case Payload():
                return self._payload(message)
            case Packed():
                return self._packed(message)
        plain = {f.name: self._field(f, v) for f, v in message.ListFields() if f.name not in IGNORED and not is_none(v)}
        if plain.get(BACKOFF) == WITHIN_A_SECOND:
            del plain[BACKOFF]  # what is left of the shortest time between runs, which a slower server has used up
        if (
            isinstance(message, DescribeWorkflowExecutionResponse)
            and message.workflow_execution_info.close_time.seconds
        ):
            # A name of its own, since an open run that waits for nothing would be another matter.
            plain = {f"left {name}" if name.startswith("pending_") else name: v for name, v in plain.items()}
        return plain

    def _field(self, field: FieldDescriptor, value: Any) -> Any:
        if field.name in OPAQUE:
            return "<present>"
        if field.name == BACKOFF and value.ToNanoseconds() % 1_000_000_000:
            return "<until the next time>" if value.seconds else WITHIN_A_SECOND
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return self._map(value)
        if field.type == FieldDescriptor.TYPE_ENUM:
            names = field.enum_type.values_by_number
            plain = [names[v].name if v in names else v for v in (value if is_list(field) else [value])]
            return plain if is_list(field) else plain[0]
        if not is_list(field):
            return self(value)
        key = UNORDERED.get(field.name)
        return [self(item) for item in (sorted(value, key=lambda item: getattr(item, key)) if key else value)]

    def _map(self, value: Mapping[Any, Any]) -> dict[str, Any]:
        """Ids that a server draws all look the same here: a second one counts."""
        plain: dict[str, Any] = {}
        for key, item in sorted(((self._text(str(key)), self(value[key])) for key in value), key=repr):
            name, count = key, 1
            while name in plain:
                count += 1
                name = f"{key} ({count})"
            plain[name] = item
        return plain

    def _payload(self, payload: Payload) -> Any:
        metadata = {key: value.decode(errors="backslashreplace") for key, value in sorted(payload.metadata.items())}
        encoding = metadata.pop("encoding", "")
        if encoding == "json/plain":
            try:
                return {**metadata, "json": self._inside(json.loads(payload.data))}
            except ValueError:
                pass
        return {**metadata, "encoding": encoding, "data": self(payload.data)}

    def _inside(self, value: Any) -> Any:
        """JSON of a payload; a long text is worth its length."""
        if isinstance(value, str) and len(value) > 200:
            return f"<{len(value)} characters>"
        return self(value)

    def _packed(self, packed: Packed) -> dict[str, Any]:
        name = packed.TypeName()
        if name not in PACKED:
            return {"@type": name}
        message = PACKED[name]()
        packed.Unpack(message)
        return {"@type": name.removeprefix("temporal.api."), **self._message(message)}

    def _text(self, text: str) -> str:
        text = text.replace(self._prefix, "~")
        if len(text) > 300 and len(set(text)) < 3:
            return f"<{len(text)} characters>"
        text = SPACES.sub(" ", UUID.sub(lambda found: self._id(found.group()), text))
        return re.sub(r"^<run .*>(:\d+)+$", "<id>", text)  # a request id that a server makes of a run and an event

    def _id(self, found: str) -> str:
        return f"<{self._labels[found]}>" if found in self._labels else "<id>"

    def _time(self, stamp: Timestamp) -> str:
        away = (stamp.ToDatetime(tzinfo=UTC) - self._began).total_seconds()
        return "<time>" if abs(away) < DISTANT_S else f"<time {round(away / 100) * 100:+d} s>"


def is_none(value: Any) -> bool:
    """A duration or a time that is there and says nothing."""
    if isinstance(value, Duration):
        return not value.ToNanoseconds()
    return isinstance(value, Timestamp) and value.seconds <= 0


def is_list(field: FieldDescriptor) -> bool:
    return bool(getattr(field, "is_repeated", False))


def duration_text(duration: Duration) -> str:
    """Seconds; one that no one can have asked for is rounded to a whole number of them."""
    nanos = duration.ToNanoseconds()
    return f"{(round(nanos / 1e9) if nanos % 1_000_000 else nanos / 1e9):g} s"
