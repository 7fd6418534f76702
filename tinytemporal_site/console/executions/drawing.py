"""A timeline as the numbers of its picture: the template `executions/timeline.svg` only writes them down."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct

from tinytemporal_site.console.executions.timeline import Lane, Span, Timeline
from tinytemporal_site.console.look import span as length_text

WIDTH = 1_000
LABELS = 200
"""Left of the plot."""
_RIGHT = 10
_TOP = 24
_LANE = 22
_BAR = 12
_LEAST = 2.0
"""Pixels: what is shorter could not be seen."""
_MOST_LABEL = 30
_TICKS = 8
_NICE_S = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600,
    7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
)  # fmt: skip


class Bar(Struct, frozen=True, kw_only=True):
    x: float
    y: float
    width: float
    height: int
    style: str
    text: str
    event_id: int


class Dot(Struct, frozen=True, kw_only=True):
    x: float
    y: float
    style: str
    text: str
    event_id: int


class Label(Struct, frozen=True, kw_only=True):
    y: float
    text: str
    whole: str


class Tick(Struct, frozen=True, kw_only=True):
    x: float
    text: str


class Picture(Struct, frozen=True, kw_only=True):
    width: int
    height: int
    plot_left: int
    plot_right: int
    labels: list[Label]
    bars: list[Bar]
    dots: list[Dot]
    ticks: list[Tick]


def draw(timeline: Timeline) -> Picture:
    scale = _Scale(timeline.begin, timeline.end)
    labels: list[Label] = []
    bars: list[Bar] = []
    dots: list[Dot] = []
    for number, lane in enumerate(timeline.lanes):
        middle = _TOP + number * _LANE + _LANE / 2
        labels.append(Label(y=middle + 4, text=_shortened(lane.label), whole=lane.label))
        bars += [_bar(span, scale, middle) for span in lane.spans]
        dots += [
            Dot(x=scale.x(point.at), y=middle, style=point.style, text=point.text, event_id=point.event_id)
            for point in lane.points
        ]
    height = _TOP + len(timeline.lanes) * _LANE + 6
    return Picture(
        width=WIDTH,
        height=height,
        plot_left=LABELS,
        plot_right=WIDTH - _RIGHT,
        labels=labels,
        bars=bars,
        dots=dots,
        ticks=list(_ticks(timeline, scale)),
    )


class _Scale:
    def __init__(self, begin: datetime, end: datetime) -> None:
        self._begin = begin
        self._length = (end - begin).total_seconds()

    def x(self, when: datetime) -> float:
        share = (when - self._begin).total_seconds() / self._length
        return round(LABELS + min(max(share, 0.0), 1.0) * (WIDTH - _RIGHT - LABELS), 1)


def _bar(span: Span, scale: _Scale, middle: float) -> Bar:
    left, right = scale.x(span.begin), scale.x(span.end)
    width = max(right - left, _LEAST)
    return Bar(
        x=min(left, WIDTH - _RIGHT - width),
        y=middle - _BAR / 2,
        width=round(width, 1),
        height=_BAR,
        style=span.style,
        text=f"{span.text} · {length_of(span)}",
        event_id=span.event_id,
    )


def length_of(span: Span) -> str:
    """How long it took; more than that, where one of its ends is not in the picture."""
    length = length_text(span.end - span.begin)
    return f"more than {length}" if span.open_left or (span.open_right and span.style != "open") else length


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_LABEL else f"{text[: _MOST_LABEL - 1]}…"


def _ticks(timeline: Timeline, scale: _Scale) -> list[Tick]:
    length = (timeline.end - timeline.begin).total_seconds()
    step = next((nice for nice in _NICE_S if length / nice <= _TICKS), length)
    ticks = []
    for number in range(int(length / step) + 1):
        after = timedelta(seconds=number * step)
        ticks.append(Tick(x=scale.x(timeline.begin + after), text=f"+{length_text(after)}" if number else "0"))
    return ticks


class TableRow(Struct, frozen=True, kw_only=True):
    """The picture for those who do not see it: one row for each span and point."""

    lane: str
    what: str
    begin: datetime
    length: str
    event_id: int


def table(lanes: list[Lane]) -> list[TableRow]:
    rows = []
    for lane in lanes:
        found = [
            TableRow(lane=lane.label, what=span.text, begin=span.begin, length=length_of(span), event_id=span.event_id)
            for span in lane.spans
        ]
        found += [
            TableRow(lane=lane.label, what=point.text, begin=point.at, length="", event_id=point.event_id)
            for point in lane.points
        ]
        rows += sorted(found, key=lambda row: row.begin)
    return rows
