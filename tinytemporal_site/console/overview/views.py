"""The first page: what needs attention, how many runs there are, and what has been going on in the last hour."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib.admin.models import LogEntry
from django.http import HttpRequest

from common.clock import RealClock
from tinytemporal_site.console import live, look, store
from tinytemporal_site.console.overview import attention, plot

PERMISSION = "history.view_executionview"
SLICES = 60
SLICE = timedelta(minutes=1)
LATEST_ACTIONS = 10
_CLOCK = RealClock()


def overview(request: HttpRequest) -> dict[str, Any]:
    """The context of the page; for those who may not see executions, only what they did themselves."""
    assert request.user.pk is not None, "the admin has its pages for who is signed in"
    # Without the joins of Django's own list, for which SQLite would sort all that somebody ever did.
    latest = LogEntry.objects.filter(user_id=request.user.pk).order_by("-action_time")[:LATEST_ACTIONS]
    if not request.user.has_perm(PERMISSION):
        return {"latest_actions": latest}
    now = _CLOCK.now()
    history, matching = live.all_hosts()
    asked = attention.Live(history=history, matching=matching)
    slices = store.activity(until=now, slices=SLICES, length=SLICE)
    return {
        "latest_actions": latest,
        "attention": attention.items(asked, now=now),
        "away": asked.away,
        "is_bound": live.services() is not None,
        "statuses": [
            (status, look.bounded(count, most=store.MOST_COUNTED)) for status, count in store.status_counts().items()
        ],
        "plot": plot.draw(slices),
        "started": sum(one.started for one in slices),
        "closed": sum(one.closed for one in slices),
        "is_estimate": any(one.is_estimate for one in slices),
    }
