"""Filters and tags of the console's templates; everything they return is escaped."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.clock import RealClock
from tinytemporal_site.console import look

register = template.Library()
_CLOCK = RealClock()


@register.filter
def span(length: timedelta | None) -> str:
    return look.span(length)


@register.filter
def ago(when: datetime | None) -> SafeString | str:
    """How long ago (or "in …"), with the exact time to be pointed at."""
    if when is None:
        return "-"
    length = _CLOCK.now() - when
    words = f"in {look.span(-length)}" if length < timedelta() else f"{look.span(length)} ago"
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', when.isoformat(), words)


@register.filter
def since(when: datetime | None) -> str:
    """How long ago, in bare words."""
    return "-" if when is None else look.span(max(_CLOCK.now() - when, timedelta()))


@register.filter
def nicejson(value: Any) -> SafeString:
    return format_html('<pre class="c-json">{}</pre>', look.json_text(value))


@register.filter
def badge(status: str) -> SafeString:
    words = look.STATUS_WORDS.get(status, status)
    return format_html('<span class="c-badge c-status-{}">{}</span>', status.lower(), words)


@register.filter
def bounded(count: int, most: int = 1_000) -> str:
    return look.bounded(count, most=most)


@register.simple_tag
def run_link(run_id: str, text: object = "") -> SafeString:
    return format_html('<a class="c-mono" href="{}">{}</a>', look.run_url(run_id), text or run_id)


@register.simple_tag
def queue_link(physical_queue: str, text: object = "") -> SafeString:
    return format_html('<a class="c-mono" href="{}">{}</a>', look.queue_url(physical_queue), text or physical_queue)


@register.simple_tag
def row_link(model: str, key: object, text: object = "") -> SafeString:
    """To the plain page of a row: `{% row_link "history_executionview" run_id "row" %}`."""
    return format_html('<a href="{}">{}</a>', look.row_url(model, key), text or key)
