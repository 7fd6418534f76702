"""Starts and completions over the last hour, as bars: a picture that the server makes."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from tinytemporal_site.console.store import Slice

WIDTH, HEIGHT = 780, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 6, 10, 24


def draw(slices: Sequence[Slice]) -> SafeString:
    """Two bars for each slice, started and closed; the number of each is shown when it is pointed at."""
    most = _ceiling(max((max(s.started, s.closed) for s in slices), default=0))
    step = (WIDTH - _LEFT - _RIGHT) / max(1, len(slices))
    bar = step * 0.42
    bars = []
    for i, one in enumerate(slices):
        x = _LEFT + i * step
        about = "about " if one.is_estimate else ""
        minute = one.begin.strftime("%H:%M")
        bars.append(_bar("c-bar", x, bar, one.started, most, f"{minute}: {about}{one.started} started"))
        bars.append(_bar("c-bar-2", x + bar, bar, one.closed, most, f"{minute}: {about}{one.closed} closed"))
    return format_html(
        '<svg class="c-plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>',
        WIDTH,
        HEIGHT,
        f"Starts and completions by the minute, {sum(s.started for s in slices)} started, "
        f"{sum(s.closed for s in slices)} closed",
        _grid(most),
        format_html_join("", '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>', bars),
        _times(slices, step),
    )


def _bar(css: str, x: float, width: float, value: int, most: int, title: str) -> tuple[object, ...]:
    height = (HEIGHT - _TOP - _BOTTOM) * value / most
    # What happened at all is to be seen.
    height = max(height, 1.5) if value else 0
    return css, f"{x:.1f}", f"{HEIGHT - _BOTTOM - height:.1f}", f"{width:.1f}", f"{height:.1f}", title


def _grid(most: int) -> SafeString:
    usable = HEIGHT - _TOP - _BOTTOM
    levels = [(HEIGHT - _BOTTOM - usable * part / 2, most * part // 2) for part in (0, 1, 2)]
    return format_html_join(
        "",
        '<line class="c-axis" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="c-text" x="{}" y="{}" '
        'text-anchor="end">{}</text>',
        ((_LEFT, WIDTH - _RIGHT, f"{y:.1f}", f"{y:.1f}", _LEFT - 6, f"{y + 4:.1f}", f"{n:,}") for y, n in levels),
    )


def _times(slices: Sequence[Slice], step: float) -> SafeString:
    return format_html_join(
        "",
        '<text class="c-text" x="{}" y="{}">{}</text>',
        (
            (f"{_LEFT + i * step:.1f}", HEIGHT - 6, slices[i].begin.strftime("%H:%M"))
            for i in range(0, len(slices), max(1, len(slices) // 6))
        ),
    )


def _ceiling(value: int) -> int:
    """The next of 2, 4, 10, 20, 40, 100 …: even, so that half of it is a number too."""
    size = 1
    while True:
        for factor in (2, 4, 10):
            if value <= factor * size:
                return factor * size
        size *= 10
