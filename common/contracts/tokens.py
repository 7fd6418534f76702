"""Task tokens: opaque to clients, readable JSON to us, with the routing key of the run they belong to."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from common.errors import InvalidArgument


class TaskToken(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Identifies one attempt of one workflow or activity task."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    started_event_id: int = 0
    attempt: int = 1
    activity_id: str = ""
    activity_type: str = ""
    started_at: str = ""
    """RFC 3339, for workflow tasks: tells a speculative task from a later one with the same event ids."""
    stamp: int = 0


class QueryToken(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Identifies a query that Matching handed to a worker."""

    namespace: str
    task_queue: str
    query_id: str


class NexusTaskToken(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Identifies a Nexus call that Matching handed to a worker."""

    namespace: str
    task_queue: str
    nexus_task_id: str


class NexusCompletionToken(
    msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """Identifies a Nexus operation of a run: whoever completes it sends it along, as the header `temporal-callback-token`."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    request_id: str


T = TypeVar("T", TaskToken, QueryToken, NexusTaskToken, NexusCompletionToken)


def encode_token(token: TaskToken | QueryToken | NexusTaskToken | NexusCompletionToken) -> bytes:
    return msgspec.json.encode(token)


def decode_token(cls: type[T], data: bytes) -> T:
    """Raises INVALID_ARGUMENT for an empty, foreign or damaged token."""
    if not data:
        raise InvalidArgument("Task token not set on request.")
    try:
        return msgspec.json.decode(data, type=cls)
    except msgspec.MsgspecError as error:
        raise InvalidArgument("Error deserializing task token.") from error
