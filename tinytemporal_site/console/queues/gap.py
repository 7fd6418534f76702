"""The picture of a physical queue: which of its task ids are acknowledged, retained, dispatched, waiting, unread.

`states` says it of each id from a little below the ack level upward; `draw` makes an SVG of cells of it, one an id; `spans`
says the same in words. With the owner away all that is known is which rows are stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from msgspec import Struct

from common.contracts.inspect import PhysicalQueueInspection

BELOW = 10
"""Acknowledged ids that are shown before the others."""
MOST_CELLS = 400
PER_LINE = 40
_CELL, _PITCH, _LEFT = 16, 19, 64

ACKED, RETAINED, DISPATCHED, WAITING, UNREAD, STORED = "acked", "retained", "dispatched", "waiting", "unread", "stored"
WORDS = {
    ACKED: "acknowledged, and its row deleted or about to be",
    RETAINED: "acknowledged above the gap: its row is retained until all before it are",
    DISPATCHED: "dispatched, not acknowledged yet",
    WAITING: "waiting for a poller",
    UNREAD: "stored and not read yet",
    STORED: "stored",
}
_CLASSES = {
    ACKED: "c-acked",
    RETAINED: "c-gap",
    DISPATCHED: "c-out",
    WAITING: "c-wait",
    UNREAD: "c-unread",
    STORED: "c-unread",
}


class State(Struct, frozen=True):
    task_id: int
    state: str


class Span(Struct, frozen=True):
    """A row of ids of one state."""

    first: int
    last: int
    state: str

    @property
    def words(self) -> str:
        return WORDS[self.state]

    @property
    def ids(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def states(
    *, ack_level: int, last_task_id: int, stored: Mapping[int, int], live: PhysicalQueueInspection | None
) -> list[State]:
    """Of the ids from BELOW under the ack level on, MOST_CELLS at most; `stored` are the ids of rows in that window, and
    their priorities."""
    level = ack_level if live is None else live.ack_level
    last = max(last_task_id, 0 if live is None else live.last_task_id)
    first = max(1, level - BELOW + 1)
    window = range(first, min(last, first + MOST_CELLS - 1) + 1)
    known = _known(live) if live is not None else {}
    return [State(i, known.get(i) or _otherwise(i, level=level, stored=stored, live=live)) for i in window]


def _known(live: PhysicalQueueInspection) -> dict[int, str]:
    found: dict[int, str] = {}
    for sub in live.subqueues:
        found |= dict.fromkeys(sub.waiting, WAITING)
        found |= dict.fromkeys(sub.dispatched, DISPATCHED)
        found |= dict.fromkeys(sub.acknowledged, RETAINED)
    return found


def _otherwise(task_id: int, *, level: int, stored: Mapping[int, int], live: PhysicalQueueInspection | None) -> str:
    """Of an id that the owner does not name: its priority's own prefix has passed it, or it is not in memory."""
    if task_id <= level or task_id not in stored:
        return ACKED
    if live is None:
        return STORED
    levels = {sub.priority: sub.ack_level for sub in live.subqueues}
    return ACKED if task_id <= levels.get(stored[task_id], 0) else UNREAD


def spans(found: list[State]) -> list[Span]:
    groups = groupby(found, key=lambda one: one.state)
    rows = [(state, [one.task_id for one in members]) for state, members in groups]
    return [Span(ids[0], ids[-1], state) for state, ids in rows]


def draw(found: list[State]) -> SafeString:
    """Cells, PER_LINE a line, each with its id and state to be pointed at; nothing for no ids."""
    if not found:
        return SafeString("")
    lines = -(-len(found) // PER_LINE)
    width, height = _LEFT + PER_LINE * _PITCH, lines * _PITCH + 4
    cells = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="3"><title>{}</title></rect>',
        (
            (
                _CLASSES[one.state],
                _LEFT + i % PER_LINE * _PITCH,
                i // PER_LINE * _PITCH + 2,
                _CELL,
                _CELL,
                f"{one.task_id}: {WORDS[one.state]}",
            )
            for i, one in enumerate(found)
        ),
    )
    labels = format_html_join(
        "",
        '<text class="c-text" x="{}" y="{}" text-anchor="end">{}</text>',
        ((_LEFT - 8, line * _PITCH + 14, found[line * PER_LINE].task_id) for line in range(lines)),
    )
    return format_html(
        '<svg class="c-plot c-cells" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>',
        width,
        height,
        f"Task ids {found[0].task_id} to {found[-1].task_id} by state",
        labels,
        cells,
    )


def legend(found: list[State]) -> list[tuple[str, str]]:
    """Of the states that occur: the key's class and the words."""
    keys = {ACKED: "acked", RETAINED: "gap", DISPATCHED: "out", WAITING: "wait", UNREAD: "unread", STORED: "unread"}
    return [
        (f"c-key-{keys[state]}", words) for state, words in WORDS.items() if any(one.state == state for one in found)
    ]
