"""Answers of the web side that last: each learns when the server stops, so that none holds up its end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

_open: set[asyncio.Event] = set()
"""One for each answer that is under way. Used on the web side's event loop only."""


@contextmanager
def opened() -> Iterator[asyncio.Event]:
    """For the time of one answer: the event is set when it should end."""
    ending = asyncio.Event()
    _open.add(ending)
    try:
        yield ending
    finally:
        _open.discard(ending)


def end_all() -> None:
    for ending in _open:
        ending.set()
