"""A server whose time can be skipped: what it is made of, and which processes can be one (settings.TIME_SKIPPING)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import ImproperlyConfigured

from common.time_skipping import TimeSkipping

if TYPE_CHECKING:
    from history.engine.engine import Engine
    from worker.schedules.loop import ScheduleLoop
    from worker.schedules.store import ScheduleStore

NEEDED = frozenset(("history", "matching", "frontend", "worker"))
RETENTION = timedelta(days=3_650)
"""Of a new namespace `default`: what a test has run can be looked at however far time was skipped since."""


def check_roles(roles: frozenset[str]) -> None:
    """Raises ImproperlyConfigured: only a process that does everything knows when nothing is under way."""
    missing = sorted(NEEDED - roles)
    if missing:
        raise ImproperlyConfigured(
            f"TIME_SKIPPING needs one process that plays all roles; {' and '.join(missing)} would be elsewhere."
        )


def watch(time: TimeSkipping, *, engine: Engine, schedules: ScheduleLoop, store: ScheduleStore) -> None:
    """Everything in which something falls due; `time` is to start after it."""
    from history.time_skipping import HistoryPart
    from worker.schedules.time_skipping import SchedulesPart

    time.watch(HistoryPart(engine, changed=time.note))
    time.watch(SchedulesPart(loop=schedules, store=store))
