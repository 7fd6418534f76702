"""Doing what the plan says, one fault after another, and noting how long each was felt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from common.clock import Clock
from tests.chaos.arena import Arena
from tests.chaos.plan import Fault
from tests.chaos.throughput import Throughput

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Felt:
    """What one fault, or the end of one, did to the throughput."""

    what: str
    recovered_s: float
    during_rate: float
    """Workflows a second while the fault lasted."""
    after_rate: float


class Faults:
    """`within_s`: how long recovery may take; the wait for it goes on a little beyond, to say how long it took."""

    def __init__(self, *, arena: Arena, throughput: Throughput, clock: Clock, within_s: float, say: Say) -> None:
        self._arena = arena
        self._throughput = throughput
        self._clock = clock
        self._within_s = within_s
        self._say = say
        self.felt: list[Felt] = []

    async def play(self, plan: list[Fault]) -> None:
        do: dict[str, Callable[[Fault], Awaitable[None]]] = {
            "kill": self._kill,
            "stop": self._stop,
            "freeze": self._freeze,
            "usurp": self._usurp,
            "stop database": self._database_away,
            "crash database": self._database_away,
            "outage": self._database_away,
        }
        for fault in plan:
            await self._sleep(fault.calm_s)
            await do[fault.kind](fault)

    @property
    def slow(self) -> list[Felt]:
        return [felt for felt in self.felt if felt.recovered_s > self._within_s]

    async def _kill(self, fault: Fault) -> None:
        began = self._throughput.now()
        await self._arena.kill(fault.host)
        await self._sleep(fault.for_s)
        await self._arena.start(fault.host)
        await self._note(str(fault), began=began, since=began)

    async def _stop(self, fault: Fault) -> None:
        began = self._throughput.now()
        await self._arena.stop(fault.host)
        await self._sleep(fault.for_s)
        await self._arena.start(fault.host)
        await self._note(str(fault), began=began, since=began)

    async def _freeze(self, fault: Fault) -> None:
        """Felt twice: when the others take over, and when it goes on in the belief that nothing has happened."""
        began = self._throughput.now()
        self._arena.freeze(fault.host)
        try:
            recovered = await self._throughput.recovery_s(since=began, give_up_s=max(fault.for_s, self._within_s + 2))
            await self._sleep(began + fault.for_s - self._throughput.now())
        finally:
            self._arena.thaw(fault.host)
        thawed = self._throughput.now()
        self._add(str(fault), recovered=recovered, began=began, until=thawed)
        await self._note(f"{'  goes on':<15}{fault.host:<12}{'':>7}", began=thawed, since=thawed)

    async def _usurp(self, fault: Fault) -> None:
        began = self._throughput.now()
        await self._arena.start_usurper(fault.host)
        await self._sleep(fault.for_s)
        await self._arena.kill(fault.host)
        await self._note(str(fault), began=began, since=self._throughput.now())

    async def _database_away(self, fault: Fault) -> None:
        began = self._throughput.now()
        postgres = self._arena.postgres
        # Not in a thread: PostgreSQL is to die with the thread that started it.
        if fault.kind == "crash database":
            postgres.crash()
        else:
            postgres.stop()
        await self._sleep(fault.for_s)
        postgres.start()
        await self._note(str(fault), began=began, since=self._throughput.now())

    async def _note(self, what: str, *, began: float, since: float) -> None:
        """`since`: from when on it may recover."""
        recovered = await self._throughput.recovery_s(since=since, give_up_s=self._within_s + 15)
        self._add(what, recovered=recovered, began=began, until=max(since, since + recovered))

    def _add(self, what: str, *, recovered: float, began: float, until: float) -> None:
        now = self._throughput.now()
        felt = Felt(
            what=what,
            recovered_s=recovered,
            during_rate=self._throughput.rate(began, max(until, began + 1)),
            after_rate=self._throughput.rate(now - 3, now),
        )
        self.felt.append(felt)
        self._say(line(felt))

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await self._clock.sleep(timedelta(seconds=seconds))


HEAD = f"{'fault':<34}{'recovered':>10}{'during':>11}{'after':>11}"


def line(felt: Felt) -> str:
    return f"{felt.what:<34}{felt.recovered_s:>8.1f} s{felt.during_rate:>9.1f}/s{felt.after_rate:>9.1f}/s"
