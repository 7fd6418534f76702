"""When time is moved ahead: the locks on time, and the loop that skips to the next moment at which something is due.

    locks + activities > 0                   time runs as real time does
    otherwise, something else is under way   the same, for the milliseconds that it takes
    otherwise, nothing is due later          the same
    otherwise                                time is moved to the first moment at which something is due, and this is asked again

The locks are clients'; the server starts with one. An activity that a worker has or could take holds the time like a lock, so a long
time-out is not skipped to while its activity is at work. The two are one sum, as in the test server of the Java SDK: an activity
that calls UnlockTimeSkippingWithSleep takes away the lock that it is itself, which is how tests let their activities miss
heartbeats.

The parts of the server say what they have (`Part`). What is due is asked for anew each time, from stored state: a timer that was
cancelled, or the time-out of something that has ended, is nothing that time is skipped to.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Protocol

from common.clock import alarm
from common.errors import FailedPrecondition
from common.service import RestartPolicy, Service, TaskLoop
from common.skipping_clock import SkippingClock

FIRST_LOOK, LONGEST_LOOK = timedelta(milliseconds=1), timedelta(milliseconds=20)
"""Between two looks whether what was under way has ended, while time is unlocked; doubled as long as nothing changes."""
NEWS_HOLD_S = 0.1
"""A client that was told what it waited for has so long to lock the time again before it goes on being skipped."""
UNBALANCED = "time skipping is not locked: there is no lock that this call could take away"


class Part(Protocol):
    """A part of the server in which things fall due. Its loops may be a little behind: what is due already counts as under way."""

    @property
    def activities(self) -> int:
        """How many activities workers have or could take."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether anything else is under way, workflow tasks among it."""
        ...

    async def begin(self) -> None:
        """Before the first look; the part is running."""
        ...

    async def next_due(self) -> datetime | None:
        """When the first thing is due; None when nothing is, ever."""
        ...


class TimeSkipping(Service):
    """All state is touched on the event loop only."""

    def __init__(self, *, clock: SkippingClock, locks: int = 1) -> None:
        super().__init__(name="time skipping")
        self.clock = clock
        self._parts: list[Part] = []
        self._locks = locks
        self._sleeps: list[tuple[datetime, int]] = []
        """A heap of when the calls that sleep want to wake, and their numbers."""
        self._numbers = itertools.count()
        self._awake: set[int] = set()
        """Numbers of those in the heap that sleep no more."""
        self._calls = 0
        self._held_until = 0.0
        self._changes = 0
        self._changed = asyncio.Event()
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)

    def watch(self, part: Part) -> None:
        """Before the start."""
        self._parts.append(part)

    async def start(self) -> None:
        for part in self._parts:
            await part.begin()
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    # --- locks

    @property
    def locks(self) -> int:
        """Those of clients; below zero when activities have taken their own away."""
        return self._locks

    def lock(self) -> None:
        self._locks += 1
        self.note()

    def unlock(self) -> None:
        """Raises FailedPrecondition when neither a lock nor an activity is there."""
        if self._is_unlocked:
            raise FailedPrecondition(UNBALANCED)
        self._locks -= 1
        self._held_until = 0.0
        self.note()

    async def sleep_until(self, when: datetime) -> None:
        """Returns once the clock shows `when`, to which time may be skipped."""
        number = next(self._numbers)
        heapq.heappush(self._sleeps, (when, number))
        self.note()
        try:
            await alarm(self.clock, when)
        finally:
            self._awake.add(number)

    async def unlock_and_sleep(self, duration: timedelta) -> None:
        """Takes a lock away, and gives it back as soon as `duration` has passed, or the caller has gone. Raises as `unlock`."""
        until = self.clock.now() + duration
        self.unlock()
        relock = self.clock.alarm_at(until, self.lock)  # in the same moment: time must not be skipped beyond
        slept = False
        try:
            await self.sleep_until(until)
            slept = True
        finally:
            if not slept and self.clock.now() < until:
                relock.cancel()
                self.lock()

    # --- what is under way

    def note(self) -> None:
        """Something has changed: there may be more or less to wait for."""
        self._changes += 1
        self._changed.set()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """While this lasts a call is under way, and no time is skipped."""
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1
            self.note()

    @contextlib.contextmanager
    def waiting_call(self) -> Iterator[None]:
        """A client waits for something that may take days, and then is given a moment to lock the time again."""
        self._held_until = 0.0
        try:
            yield
        finally:
            self._held_until = self.clock.monotonic() + NEWS_HOLD_S

    @property
    def _is_unlocked(self) -> bool:
        return self._locks + sum(part.activities for part in self._parts) <= 0

    @property
    def _is_busy(self) -> bool:
        is_held = self.clock.monotonic() < self._held_until
        return is_held or self._calls > 0 or any(part.is_busy for part in self._parts)

    # --- skipping

    async def _run(self) -> None:
        pause = FIRST_LOOK
        while True:
            self._changed.clear()
            if not self._is_unlocked:
                await self._changed.wait()
            elif await self._skip():
                pause = FIRST_LOOK
                await self.clock.sleep(pause)  # those who were rung are to begin
            elif await self._wait(pause):
                pause = FIRST_LOOK
            else:
                pause = min(pause * 2, LONGEST_LOOK)

    async def _wait(self, pause: timedelta) -> bool:
        """Until something changes, `pause` at most; whether it did."""
        changes = self._changes
        timer = self.clock.call_at(self.clock.now() + pause, self._changed.set)
        try:
            await self._changed.wait()
        finally:
            timer.cancel()
        return self._changes != changes

    async def _skip(self) -> bool:
        """Moves time if that may be done; whether it did."""
        if self._is_busy:
            return False
        changes = self._changes
        due = await self._next_due()
        if due is None or due <= self.clock.now():
            return False
        if self._changes != changes or not self._is_unlocked or self._is_busy:
            return False  # what was found may have been overtaken
        self.clock.skip_to(due)
        return True

    async def _next_due(self) -> datetime | None:
        found = [due for part in self._parts if (due := await part.next_due()) is not None]
        while self._sleeps and self._sleeps[0][1] in self._awake:
            self._awake.discard(heapq.heappop(self._sleeps)[1])
        if self._sleeps:
            found.append(self._sleeps[0][0])
        return min(found, default=None)
