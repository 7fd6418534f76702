"""What every page of the console shares: its frame, and small pieces of text."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import reverse

STATUS_WORDS = {"ContinuedAsNew": "Continued as new", "TimedOut": "Timed out"}


def page(request: HttpRequest, template: str, /, *, status: int = 200, **context: Any) -> TemplateResponse:
    """The page with the admin's own frame around it. `title` in the context is its heading."""
    return TemplateResponse(request, template, {**admin.site.each_context(request), **context}, status=status)


def run_url(run_id: str) -> str:
    """The page of a run."""
    return reverse("admin:console_execution", args=[quote(run_id)])


def queue_url(physical_queue: str) -> str:
    return reverse("admin:console_queue", args=[quote(physical_queue)])


def row_url(model: str, key: object) -> str:
    """The plain page of a row: `row_url("history_shard", 1)`."""
    return reverse(f"admin:{model}_change", args=[quote(str(key))])


def span(length: timedelta | None) -> str:
    """A length of time in its two greatest units: "3 d 4 h", "12 min 5 s", "1.25 s", "40 ms"; "-" for none."""
    if length is None:
        return "-"
    seconds = length.total_seconds()
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if seconds < 1:
        return f"{sign}{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{sign}{seconds:.2f}".rstrip("0").rstrip(".") + " s"
    units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")]
    whole = int(seconds)
    for (size, unit), (smaller, smaller_unit) in itertools.pairwise(units):
        if whole >= size:
            rest = whole % size // smaller
            return f"{sign}{whole // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{sign}{whole} s"


def bounded(count: int, *, most: int) -> str:
    """A count that was broken off beyond `most`."""
    return f"{most:,}+" if count > most else f"{count:,}"


def json_text(value: Any) -> str:
    """A value as indented JSON; text that is JSON is read first, any other is shown as it is."""
    if isinstance(value, str):
        text = value
        try:
            value = json.loads(text)
        except ValueError:
            return text
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
