"""When a run's cron schedule wants its next run."""

from __future__ import annotations

from datetime import timedelta

from history.cron import next_backoff
from history.state import Draft


def cron_backoff(draft: Draft) -> timedelta | None:
    """How long a run that ends now leaves its successor waiting; None without a schedule (or a next time)."""
    info = draft.info
    return next_backoff(info.cron_schedule, scheduled=info.execution_time, now=draft.work.now)
