"""Page tokens of a run's history: opaque to clients, readable JSON to us.

A poll answer with a long history carries one for the rest, which GetWorkflowExecutionHistory continues.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from temporalio.api.history.v1 import HistoryEvent

from common.errors import InvalidArgument

PAGE_EVENTS = 256
"""Events of a page at most, and when the caller does not say."""
PAGE_BYTES = 4 * 1024 * 1024 - 256 * 1024
"""Bytes of a page's events at most (one larger event is a page of its own), so that the answer is under gRPC's limit."""


class HistoryToken(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Where the next page begins: events first ≤ id < last of the run."""

    run_id: str
    first_event_id: int
    """Read backwards: the page begins with this one and goes down."""
    last_event_id: int = 0
    """0: as far as the history goes by then."""


def encode_history_token(token: HistoryToken) -> bytes:
    return msgspec.json.encode(token)


def decode_history_token(data: bytes, *, run_id: str = "") -> HistoryToken:
    """Raises INVALID_ARGUMENT for a foreign token, and for one of another run than `run_id` (if that is given)."""
    try:
        token = msgspec.json.decode(data, type=HistoryToken)
    except msgspec.MsgspecError as error:
        raise InvalidArgument("Invalid NextPageToken.") from error
    if run_id and token.run_id != run_id:
        raise InvalidArgument("RunId in the request does not match the NextPageToken.")
    return token


def token_of(data: bytes, *, run_id: str) -> HistoryToken | None:
    """As `decode_history_token`; None for an empty token, which asks for the first page."""
    return decode_history_token(data, run_id=run_id) if data else None


def page_size(requested: int) -> int:
    """How many events a page may have when the caller asks for so many (0: does not say)."""
    return min(requested, PAGE_EVENTS) if requested > 0 else PAGE_EVENTS


def page_length(events: Sequence[HistoryEvent], *, limit: int = PAGE_EVENTS, size: int = PAGE_BYTES) -> int:
    """How many of the events make the first page: at least one, if there is one."""
    count = 0
    left = size
    for event in events[:limit]:
        left -= event.ByteSize()
        if left < 0 and count:
            break
        count += 1
    return count
