"""A long run as a whole: when its events happened, from a few of them, and which of them the page shows.

The picture is a curve of event ids over time: steep where much happened, flat where the run waited. Each piece of it leads to
the page of its events.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from msgspec import Struct

WIDTH = 1_000
HEIGHT = 60
SAMPLES = 60


class Piece(Struct, frozen=True, kw_only=True):
    """From one sample to the next."""

    x: float
    width: float
    first: int
    """The event with which it begins."""
    text: str


class Overview(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    points: str
    """Of an SVG's polyline."""
    pieces: list[Piece]
    window_x: float
    window_width: float
    begin: datetime
    end: datetime


def sample_ids(last: int) -> list[int]:
    """Evenly spread, the first and the last among them."""
    return sorted({1, last, *(1 + (last - 1) * number // SAMPLES for number in range(SAMPLES))})


def overview(samples: Sequence[tuple[int, datetime]], *, first: datetime, last: datetime) -> Overview | None:
    """`samples`: (event id, time) in order; `first` and `last`: of the events that the page shows."""
    if len(samples) < 2:
        return None
    begin, end = samples[0][1], max(when for _, when in samples)
    length = max(end - begin, timedelta(milliseconds=1))
    most = samples[-1][0]

    def x(when: datetime) -> float:
        return round(min(max((when - begin) / length, 0.0), 1.0) * WIDTH, 1)

    pieces = [
        Piece(
            x=x(when),
            width=max(round(x(after) - x(when), 1), 1.0),
            first=event_id,
            text=f"Events {event_id:,} to {following - 1:,}, from {when.isoformat(sep=' ', timespec='seconds')}",
        )
        for (event_id, when), (following, after) in pairwise(samples)
    ]
    return Overview(
        width=WIDTH,
        height=HEIGHT,
        points=" ".join(f"{x(when)},{round(HEIGHT - HEIGHT * event_id / most, 1)}" for event_id, when in samples),
        pieces=pieces,
        window_x=x(first),
        window_width=max(round(x(last) - x(first), 1), 2.0),
        begin=begin,
        end=end,
    )
