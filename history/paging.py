"""Pages of a history, and the tokens that say where the next one begins.

A token names the run, so that a client which asked for the current run keeps to the one it got. It is opaque to clients and
JSON to us.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from temporalio.api.history.v1 import HistoryEvent

from common.errors import InvalidArgument

PAGE_EVENTS = 256
"""Upstream's default and largest page."""
PAGE_BYTES = 2 * 1024 * 1024
"""A page ends with the event that reaches this, so that with one event more it still fits a gRPC message of 4 MiB."""


class HistoryToken(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    run_id: str
    position: int
    """The next event to send: the lowest not sent, or in reverse the highest not sent."""


def encode_page_token(token: HistoryToken) -> bytes:
    return msgspec.json.encode(token)


def decode_page_token(data: bytes, *, run_id: str) -> HistoryToken | None:
    """None for an empty token. Raises INVALID_ARGUMENT for a foreign one, or one of another run than the request names."""
    if not data:
        return None
    try:
        token = msgspec.json.decode(data, type=HistoryToken)
    except msgspec.MsgspecError as error:
        raise InvalidArgument("Invalid NextPageToken.") from error
    if token.position < 0:
        raise InvalidArgument("Invalid NextPageToken.")
    if run_id and run_id != token.run_id:
        raise InvalidArgument("RunId in the request does not match the NextPageToken.")
    return token


def page_size(requested: int) -> int:
    return min(requested, PAGE_EVENTS) if requested > 0 else PAGE_EVENTS


def cut_by_bytes(events: list[HistoryEvent]) -> list[HistoryEvent]:
    """As many of the first events as a page may have by size, at least one."""
    size = 0
    for count, event in enumerate(events, start=1):
        size += event.ByteSize()
        if size >= PAGE_BYTES:
            return events[:count]
    return events


Read = Callable[[int, int], Awaitable[list[HistoryEvent]]]
"""(first, last) → the events first ≤ id < last."""


async def page_forward(read: Read, *, position: int, end: int, size: int) -> list[HistoryEvent]:
    """The page that begins with event `position`; `end` is the run's next event id."""
    return cut_by_bytes(await read(position, min(position + size, end)))


async def page_backward(read: Read, *, position: int, size: int) -> list[HistoryEvent]:
    """The page that begins with event `position` and goes down to event 1."""
    events = await read(max(position - size + 1, 1), position + 1)
    return cut_by_bytes(events[::-1])
