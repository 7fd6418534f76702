"""Sparing a destination that fails, and the others while it does.

A destination is a host as one namespace calls it. So many requests go to it at once and no more; after some failures in a row
none goes for a while (its circuit breaker is open), then one tries, and its success lets the others through again. In memory
only: what is held back is stored elsewhere with the time at which to ask again.
Source: the defaults of upstream's circuit breaker of its outbound queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from common.clock import Clock

FAILURES_TO_OPEN = 6
OPEN_FOR = timedelta(seconds=60)
BUSY_FOR = timedelta(seconds=1)
KEPT = 10_000

Key = tuple[str, str]
"""(namespace, scheme://host)"""


class HeldBack(Exception):
    """The request is not to be made before `until`."""

    def __init__(self, until: datetime) -> None:
        super().__init__(until)
        self.until = until


def destination_of(namespace: str, url: str) -> Key:
    parts = urlsplit(url)
    return namespace, f"{parts.scheme}://{parts.netloc}"


class _Destination:
    __slots__ = ("failures", "in_flight", "open_until", "trying")

    def __init__(self) -> None:
        self.failures = 0
        """In a row."""
        self.in_flight = 0
        self.open_until: datetime | None = None
        self.trying = False
        """Whether the one request is under way that decides if the breaker closes."""


class Destinations:
    def __init__(self, *, clock: Clock, at_once: int) -> None:
        self._clock = clock
        self._at_once = at_once
        self._known: dict[Key, _Destination] = {}
        """Only those that are in use or have failed of late."""

    def is_blocked(self, key: Key) -> bool:
        found = self._known.get(key)
        return found is not None and found.open_until is not None

    @contextmanager
    def place(self, key: Key) -> Iterator[Outcome]:
        """A place for one request; say on what is yielded how it went. Raises HeldBack."""
        destination = self._known.setdefault(key, _Destination())
        self._admit(destination)
        outcome = Outcome()
        destination.in_flight += 1
        try:
            yield outcome
        finally:
            destination.in_flight -= 1
            self._settle(key, destination, outcome)

    def _admit(self, destination: _Destination) -> None:
        now = self._clock.now()
        if destination.open_until is not None:
            if destination.trying or now < destination.open_until:
                raise HeldBack(max(destination.open_until, now + BUSY_FOR))
            destination.trying = True
        elif destination.in_flight >= self._at_once:
            raise HeldBack(now + BUSY_FOR)

    def _settle(self, key: Key, destination: _Destination, outcome: Outcome) -> None:
        destination.trying = False
        if outcome.failed:
            destination.failures += 1
            if destination.failures >= FAILURES_TO_OPEN:
                destination.open_until = self._clock.now() + OPEN_FOR
        elif outcome.failed is not None:
            destination.failures, destination.open_until = 0, None
        if not destination.in_flight and (not destination.failures or len(self._known) > KEPT):
            self._known.pop(key, None)


class Outcome:
    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed: bool | None = None
        """Whether the destination is at fault; None: nobody knows, the request was given up."""
