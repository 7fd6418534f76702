"""Which shard is where: by the rows (the leases), by the processes themselves, and by membership."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from msgspec import Struct

from common.contracts.inspect import HistoryInspection, ShardInspection
from history.models import Shard
from tinytemporal_site.console import live
from tinytemporal_site.routing.keys import shard_key

_CELL, _PITCH, _LEFT, _PER_LINE = 14, 17, 190, 40


class ShardLine(Struct, kw_only=True):
    """A shard: its row (None: nobody ever took it) and what the process says that holds it."""

    shard_id: int
    range_id: int
    owner: str
    """By the row."""
    taken_at: datetime | None
    """When the row's range was taken."""
    held_by: str
    """The process that says that it holds it, with the row's range or a later one."""
    held: ShardInspection | None
    expected: str
    """The host that membership gives it to."""
    state: str
    """"ok"; "moving": held, and not by whom membership names; "away": nobody that answered holds it; "unknown"."""

    @property
    def is_away(self) -> bool:
        return self.state == "away"


def shard_lines(
    rows: Iterable[Shard], *, shards: int, hosts: dict[str, HistoryInspection | live.Away]
) -> list[ShardLine]:
    """Of every shard, by its number. Without any host that answers, who is there is unknown."""
    by_id = {row.shard_id: row for row in rows}
    holders: dict[int, list[tuple[str, ShardInspection]]] = defaultdict(list)
    answered = False
    for host, answer in hosts.items():
        if isinstance(answer, live.Away):
            continue
        answered = True
        for held in answer.shards:
            holders[held.shard_id].append((host, held))
    services = live.services()
    ring = None if services is None else services.membership.ring("history")
    lines = []
    for shard_id in range(1, shards + 1):
        owner = ring.owner(shard_key(shard_id)) if ring is not None else None
        expected = "" if owner is None else owner.host
        lines.append(_line(shard_id, by_id.get(shard_id), holders.get(shard_id, []), expected, answered=answered))
    return lines


def _line(
    shard_id: int, row: Shard | None, holders: list[tuple[str, ShardInspection]], expected: str, *, answered: bool
) -> ShardLine:
    host, held = max(holders, key=lambda one: one[1].range_id, default=("", None))
    if held is not None and row is not None and held.range_id < row.range_id:
        host, held = "", None  # it does not know yet that it has lost the shard
    if held is not None:
        state = "ok" if host == expected else "moving"
    elif services_known(answered=answered):
        state = "away"
    else:
        state = "unknown"
    return ShardLine(
        shard_id=shard_id,
        range_id=0 if row is None else row.range_id,
        owner="" if row is None else row.owner,
        taken_at=None if row is None else row.updated_at,
        held_by=host,
        held=held,
        expected=expected,
        state=state,
    )


def services_known(*, answered: bool) -> bool:
    """Whether silence means something: this process is tied to the cluster, or somebody answered."""
    return answered or live.services() is not None


_STATES = {"ok": "c-gap", "moving": "c-out", "away": "c-lost", "unknown": "c-unread"}
_WORDS = {
    "ok": "held by whom membership names",
    "moving": "held, and about to move",
    "away": "without a live owner",
    "unknown": "not known",
}


def draw(lines: list[ShardLine]) -> SafeString:
    """A line for each host with its shards as cells; those that nobody holds have one of their own."""
    places: dict[str, list[ShardLine]] = defaultdict(list)
    for line in lines:
        places[line.held_by or (f"{line.owner or 'nobody'} (away)" if line.is_away else "not known")].append(line)
    y, labels, cells = 4, [], []
    for host, members in sorted(places.items()):
        labels.append((_LEFT - 10, y + 11, _short(host), f"{host}: {len(members)} shards"))
        for i, line in enumerate(members):
            x = _LEFT + i % _PER_LINE * _PITCH
            top = y + i // _PER_LINE * _PITCH
            words = f"shard {line.shard_id}: {_WORDS[line.state]}"
            cells.append((_STATES[line.state], x, top, _CELL, _CELL, words))
        y += (-(-len(members) // _PER_LINE)) * _PITCH + 8
    return format_html(
        '<svg class="c-plot c-cells" viewBox="0 0 {} {}" role="img" aria-label="Shards by host">{}{}</svg>',
        _LEFT + _PER_LINE * _PITCH,
        y,
        format_html_join("", '<text class="c-text" x="{}" y="{}" text-anchor="end">{}<title>{}</title></text>', labels),
        format_html_join(
            "", '<rect class="{}" x="{}" y="{}" width="{}" height="{}" rx="2"><title>{}</title></rect>', cells
        ),
    )


def _short(host: str) -> str:
    return host if len(host) <= 28 else f"{host[:26]}…"
