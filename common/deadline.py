"""When the caller of the present request stops waiting, carried along its await chain.

The frontend (or the server side of an internal RPC) sets it; whoever waits on the caller's behalf, a long poll or a
query, answers a little before. An RPC client passes it on as its own timeout. A task that outlives the request which
happened to create it must not read it.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime, timedelta

_DEADLINE: ContextVar[datetime | None] = ContextVar("deadline", default=None)


def current() -> datetime | None:
    """None when the caller waits for ever, or when there is no caller."""
    return _DEADLINE.get()


def set_current(deadline: datetime | None) -> None:
    """For the task of one request, once, before it is handled."""
    _DEADLINE.set(deadline)


def earlier(until: datetime, *, margin: timedelta) -> datetime:
    """`until`, or `margin` before the caller's deadline when that comes first."""
    deadline = _DEADLINE.get()
    return until if deadline is None else min(until, deadline - margin)
