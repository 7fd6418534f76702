"""What comes in as Nexus over HTTP: the other direction of `common.nexus`.

    payload_of(data, headers) -> Payload            a body and its `content-…` headers
    nexus_failure_of(value) -> NexusFailure         the JSON of a Nexus failure (see `common.nexus_failures` for more)
    header_links(values) -> list[NexusLink]         the values of the header `nexus-link` (see `common.nexus_links`)

Source: upstream's common/nexus/payload_serializer.go and nexusrpc/{api,failure_converter}.go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from email.message import Message as Headers
from typing import Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.nexus.v1 import Link as NexusLink

HANDLER_ERROR = "nexus.HandlerError"
OPERATION_ERROR = "nexus.OperationError"
UNWRAP = "unwrap-error"
"""In a failure's metadata: it only wraps its cause, for those who know nothing of Temporal's failures."""

_LINK = re.compile(r'\s*<\s*(?P<url>[^>]+?)\s*>\s*(?P<parameters>(?:;\s*[^=;]+=\s*(?:"[^"]*"|[^";]*?)\s*)+)')
_PARAMETER = re.compile(r';\s*(?P<key>[^=;]+?)\s*=\s*(?P<value>"[^"]*"|[^";]*?)\s*(?=;|$)')
_LINK_TYPE = re.compile(r"[A-Za-z0-9_./]+")


def payload_of(data: bytes, headers: Mapping[str, str]) -> Payload:
    """`headers` without their prefix `content-`, in lower case. Raises ValueError for what says it is a payload and is none."""
    told = {name: value for name, value in headers.items() if name not in ("encoding", "length")}
    if not told and not data:
        return Payload(metadata={"encoding": b"binary/null"})
    if told.keys() == {"type"}:
        media_type, parameters = _media_type(told["type"])
        if media_type == "application/x-temporal-payload":
            try:
                return Payload.FromString(data)
            except DecodeError as error:
                raise ValueError("the content is no payload") from error
        metadata = _metadata(media_type, parameters)
        if metadata is not None:
            return Payload(metadata=metadata, data=data)
    unknown = {name: value.encode() for name, value in told.items()}
    return Payload(metadata=unknown | {"encoding": b"unknown/nexus-content"}, data=data)


def _metadata(media_type: str, parameters: Mapping[str, str]) -> dict[str, bytes] | None:
    message_type = parameters.get("message-type", "").encode()
    if not parameters:
        encoding = {"application/json": b"json/plain", "application/octet-stream": b"binary/plain"}.get(media_type)
        return None if encoding is None else {"encoding": encoding}
    if not message_type:
        return None
    if media_type == "application/json" and len(parameters) == 2 and parameters.get("format") == "protobuf":
        return {"encoding": b"json/protobuf", "messageType": message_type}
    if media_type == "application/x-protobuf" and len(parameters) == 1:
        return {"encoding": b"binary/protobuf", "messageType": message_type}
    return None


def is_json(content_type: str) -> bool:
    return _media_type(content_type)[0] == "application/json"


def _media_type(text: str) -> tuple[str, dict[str, str]]:
    """The type in lower case, and its parameters; "" for what is none."""
    headers = Headers()
    headers["content-type"] = text
    (media_type, _), *parameters = headers.get_params([("", "")])
    return media_type.lower() if "/" in media_type else "", dict(parameters)


def unwrapped(failure: NexusFailure) -> NexusFailure:
    """The cause of a failure that only wraps it; else the same."""
    return failure.cause if failure.metadata.get(UNWRAP) == "true" and failure.HasField("cause") else failure


def nexus_failure_of(value: Any) -> NexusFailure:
    """Raises ValueError for what is no failure's JSON."""
    if not isinstance(value, dict):
        raise ValueError("a failure is a JSON object")
    failure = NexusFailure(message=_text(value, "message"), stack_trace=_text(value, "stackTrace"))
    metadata = value.get("metadata") or {}
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("a failure's metadata are texts")
    failure.metadata.update(metadata)
    details = value.get("details")
    if details is not None:
        if metadata.get("type") in (HANDLER_ERROR, OPERATION_ERROR) and not isinstance(details, dict):
            raise ValueError("the details of an error are a JSON object")
        failure.details = json.dumps(details, separators=(",", ":"), ensure_ascii=False).encode()
    if value.get("cause") is not None:
        failure.cause.CopyFrom(nexus_failure_of(value["cause"]))
    return failure


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise ValueError(f"a failure's {key} is a text")
    return text


def header_links(values: Sequence[str]) -> list[NexusLink]:
    """Each header may hold several, separated by commas. Raises ValueError."""
    return [_link(text) for text in ",".join(values).split(",")] if values else []


def _link(text: str) -> NexusLink:
    match = _LINK.fullmatch(text)
    if match is None:
        raise ValueError(f"failed to parse link header: invalid format: {text}")
    kind = ""
    for parameter in _PARAMETER.finditer(match["parameters"]):
        if parameter["key"] == "type":
            kind = parameter["value"].strip('"')
    if _LINK_TYPE.fullmatch(kind) is None:
        raise ValueError(f"failed to parse link header: no link type: {text}")
    urlsplit(match["url"])
    return NexusLink(url=match["url"], type=kind)
