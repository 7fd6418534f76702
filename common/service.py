"""The one start/stop contract of everything that runs, and the two shapes it takes: a loop and a group.

`start` returns once the service does its work; `stop` returns once it has ceased to, with its tasks ended. Both are
idempotent and may be called at the same time by several callers, each of whom waits for the outcome. A stopped service
can be started again. A loop that ends without being told to is a fault: it is logged and either reported, so that the
process stops, or run again after a back-off.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from common.clock import Clock, RealClock

log = logging.getLogger(__name__)

OnFailure = Callable[[BaseException], None]


class Service(ABC):
    """Something with a name that is started and stopped; see the module for what the two promise."""

    def __init__(self, *, name: str) -> None:
        self.name = name

    @abstractmethod
    async def start(self) -> None: ...

    @abstractmethod
    async def stop(self) -> None: ...

    def addresses(self) -> dict[str, str]:
        """Where it listens while it runs, as `HOST:PORT` by role; a service that listens says so by overriding this."""
        return {}


class LoopEnded(Exception):
    """A loop returned although nobody stopped it."""


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """How long a loop that died waits before it runs again: `first`, then doubled up to `longest`.

    A run that lasted at least `healthy_after` is forgiven: the next wait is `first` again.
    """

    first: timedelta = timedelta(milliseconds=100)
    longest: timedelta = timedelta(seconds=10)
    healthy_after: timedelta = timedelta(seconds=30)

    def delay(self, *, failures: int) -> timedelta:
        """The wait after the given number of failures in a row, counted from 1."""
        return min(self.longest, self.first * (1 << min(failures - 1, 30)))


class TaskLoop(Service):
    """Runs `run()` as a named task until stopped; stopping cancels it and waits until it has ended.

    Without `restart`, an unexpected end is final: it is logged as critical and `on_failure` is called once with the
    error (`LoopEnded` when `run` merely returned). With `restart`, it is logged as an error and `run` is called again.
    """

    def __init__(
        self,
        *,
        name: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        on_failure: OnFailure | None = None,
        restart: RestartPolicy | None = None,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(name=name)
        self._run = run
        self._on_failure = on_failure
        self._restart = restart
        self._clock = clock or RealClock()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._guard(), name=self.name)

    async def stop(self) -> None:
        task = self._task
        if task is None:
            return
        task.cancel()
        # wait() and not await: what the loop raised has been dealt with, and our own cancellation stays ours.
        await asyncio.wait({task})
        if self._task is task:
            self._task = None

    async def _guard(self) -> None:
        failures = 0
        while True:
            began = self._clock.monotonic()
            error = await self._run_once()
            if self._restart is None:
                self._report(error)
                return
            lasted = timedelta(seconds=self._clock.monotonic() - began)
            failures = 1 if lasted >= self._restart.healthy_after else failures + 1
            delay = self._restart.delay(failures=failures)
            log.error("%s ended unexpectedly; it runs again in %s", self.name, delay, exc_info=error)
            await self._clock.sleep(delay)

    async def _run_once(self) -> Exception:
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001  whatever it was is reported by the caller
            return error
        return LoopEnded(f"{self.name} returned although nobody stopped it")

    def _report(self, error: Exception) -> None:
        log.critical("%s ended unexpectedly", self.name, exc_info=error)
        if self._on_failure is not None:
            self._on_failure(error)


class ServiceGroup(Service):
    """Starts its members in order and stops them in reverse.

    When a start fails, the members started before it are stopped and the error is raised. When stops fail, the other
    members are stopped all the same and an `ExceptionGroup` of the errors is raised at the end.
    """

    def __init__(self, *, name: str, members: Sequence[Service]) -> None:
        super().__init__(name=name)
        self._members = tuple(members)
        # Guarded by _lock: the members that run, in the order of their start.
        self._running: list[Service] = []
        self._lock = asyncio.Lock()

    async def start(self) -> None:
        async with self._lock:
            if self._running:
                return
            try:
                for member in self._members:
                    # Listed before its start: one that fails half-way is told to stop as well.
                    self._running.append(member)
                    await member.start()
            except BaseException:
                await self._stop_running(log_only=True)
                raise

    async def stop(self) -> None:
        async with self._lock:
            await self._stop_running(log_only=False)

    def addresses(self) -> dict[str, str]:
        return {role: address for member in self._running for role, address in member.addresses().items()}

    async def _stop_running(self, *, log_only: bool) -> None:
        errors: list[Exception] = []
        while self._running:
            member = self._running.pop()
            try:
                await member.stop()
            except Exception as error:
                log.exception("%s did not stop cleanly", member.name)
                errors.append(error)
        if errors and not log_only:
            raise ExceptionGroup(f"{self.name} did not stop cleanly", errors)
