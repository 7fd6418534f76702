"""The forms that payloads and failures take in Nexus over HTTP.

    content_of(payload) -> Content              a payload as a body and its `content-…` headers
    failure_json(failure) -> dict               an API failure as the JSON of a Nexus failure
    link_value(link) -> str                     a link to a workflow's event, as a value of the header `nexus-link`

Source: upstream's common/nexus/{payload_serializer,failure,link_converter}.go; the protocol is Nexus over HTTP.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct, field
from temporalio.api.common.v1 import Link, Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import Failure

from common.codec import to_dict

_PATH_SAFE = "$&+=:@"
"""Beside letters, digits and `-_.~`: what Go leaves as it is in one part of a path."""


class Content(Struct, frozen=True):
    data: bytes
    headers: dict[str, str] = field(default_factory=dict)
    """Without their prefix `content-`."""


def content_of(payload: Payload | None) -> Content:
    """In a media type of its own where its metadata says no more than that; else the whole payload as protobuf."""
    if payload is None:
        return Content(b"")
    metadata = {name: value.decode(errors="replace") for name, value in payload.metadata.items()}
    encoding = metadata.pop("encoding", "")
    if encoding == "unknown/nexus-content":
        return Content(payload.data, metadata)
    if encoding == "binary/null" and not metadata:
        return Content(payload.data)
    media_type = _media_type(encoding, metadata)
    if media_type is None:
        return Content(payload.SerializeToString(), {"type": "application/x-temporal-payload"})
    return Content(payload.data, {"type": media_type})


def _media_type(encoding: str, rest: dict[str, str]) -> str | None:
    message_type = rest.get("messageType", "")
    if message_type and len(rest) == 1:
        name = json.dumps(message_type)
        if encoding == "json/protobuf":
            return f"application/json; format=protobuf; message-type={name}"
        if encoding == "binary/protobuf":
            return f"application/x-protobuf; message-type={name}"
    if rest:
        return None
    return {"json/plain": "application/json", "binary/plain": "application/octet-stream"}.get(encoding)


def failure_json(failure: Failure) -> dict[str, Any]:
    """All of the failure but message and stack trace is in `details`, causes included, so that a Temporal server can make
    the same failure of it again."""
    result: dict[str, Any] = {"message": failure.message, "stackTrace": failure.stack_trace}
    if failure.HasField("nexus_handler_failure_info"):
        result["metadata"] = {"type": "nexus.HandlerError"}
        result["details"] = _handler_error(failure)
    else:
        details = to_dict(failure)
        details.pop("message", None)
        details.pop("stackTrace", None)
        result["metadata"] = {"type": Failure.DESCRIPTOR.full_name}
        result["details"] = details
    if failure.HasField("cause"):
        result["cause"] = failure_json(failure.cause)
    return {name: value for name, value in result.items() if value != ""}


def _handler_error(failure: Failure) -> dict[str, Any]:
    info = failure.nexus_handler_failure_info
    details: dict[str, Any] = {"type": info.type} if info.type else {}
    retryable = {1: True, 2: False}.get(info.retry_behavior)
    if retryable is not None:
        details["retryableOverride"] = retryable
    return details


def event_type_words(event_type: EventType.ValueType) -> str:
    name = EventType.Name(event_type).removeprefix("EVENT_TYPE_")
    return "".join(part.capitalize() for part in name.split("_"))


def link_value(link: Link.WorkflowEvent) -> str:
    path = "/".join(
        quote(part, safe=_PATH_SAFE) for part in (link.namespace, "workflows", link.workflow_id, link.run_id)
    )
    query: dict[str, str] = {}
    if link.HasField("request_id_ref"):
        query["eventType"] = event_type_words(link.request_id_ref.event_type)
        query["referenceType"] = "RequestIdReference"
        query["requestID"] = link.request_id_ref.request_id
    else:
        if link.event_ref.event_id:
            query["eventID"] = str(link.event_ref.event_id)
        query["eventType"] = event_type_words(link.event_ref.event_type)
        query["referenceType"] = "EventReference"
    kind = Link.WorkflowEvent.DESCRIPTOR.full_name
    return f'<temporal:///namespaces/{path}/history?{urlencode(query)}>; type="{kind}"'


def operation_link_value(link: Link.NexusOperation) -> str:
    path = "/".join(
        quote(part, safe=_PATH_SAFE) for part in (link.namespace, "nexus-operations", link.operation_id, link.run_id)
    )
    return f'<temporal:///namespaces/{path}/details>; type="{Link.NexusOperation.DESCRIPTOR.full_name}"'


def activity_link_value(link: Link.Activity) -> str:
    path = "/".join(
        quote(part, safe=_PATH_SAFE) for part in (link.namespace, "activities", link.activity_id, link.run_id)
    )
    return f'<temporal:///namespaces/{path}/details>; type="{Link.Activity.DESCRIPTOR.full_name}"'
