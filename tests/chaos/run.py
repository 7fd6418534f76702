"""One run: the arena, the load, the faults, and the audit of what is left."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.runtime import Runtime, TelemetryConfig

from common.clock import RealClock
from tests.chaos import audit
from tests.chaos.arena import Arena, arena
from tests.chaos.faults import HEAD, Faults, Felt, Say
from tests.chaos.plan import Fault
from tests.chaos.raw_load import RawLoad
from tests.chaos.sdk_load import SdkLoad, ended, workers
from tests.chaos.throughput import Throughput

QUEUE = "chaos"
SETTLED_WITHIN_S = 60


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Of the load: starters of each kind, and how long each waits between two workflows."""

    sdk: int
    raw: int
    pace: timedelta
    baseline_s: float
    steady_s: float
    look_s: float
    """As of `Throughput`."""
    durable: bool


@dataclass(kw_only=True)
class Outcome:
    felt: list[Felt]
    slow: list[Felt]
    problems: list[str]
    acknowledged: int
    completed: int
    seconds: float
    baseline: float
    errors: Counter[str]
    figures: dict[str, object]
    verified: str


async def run(*, plan: list[Fault], shape: Shape, within_s: float, folder: Path, say: Say) -> Outcome:
    """Raises AssertionError when `verify` finds a difference or a process does not end in order."""
    async with arena(folder, durable=shape.durable) as found:
        return await _Run(found, shape=shape, within_s=within_s, say=say).all_of_it(plan)


class _Run:
    def __init__(self, found: Arena, *, shape: Shape, within_s: float, say: Say) -> None:
        self._arena = found
        self._shape = shape
        self._within_s = within_s
        self._say = say
        self._clock = RealClock()
        self._throughput = Throughput(clock=self._clock, steady_s=shape.steady_s, look_s=shape.look_s)

    async def all_of_it(self, plan: list[Fault]) -> Outcome:
        # Without the SDK's own log: that it can't reach a killed frontend is no news.
        runtime = Runtime(telemetry=TelemetryConfig(logging=None))
        clients = [await Client.connect(address, runtime=runtime) for address in self._arena.frontends]
        links = {"throughput": self._throughput, "clock": self._clock}
        sdk = SdkLoad(clients=clients, queue=QUEUE, **links)
        raw = RawLoad(addresses=self._arena.frontends, **links)
        faults = Faults(arena=self._arena, within_s=self._within_s, say=self._say, **links)
        await raw.open()
        began = self._throughput.now()
        try:
            async with workers(clients, QUEUE):
                problems = await self._under_load(plan, sdk=sdk, raw=raw, faults=faults)
                seconds = self._throughput.now() - began
                # Nobody waits for what was started without an answer, but it must come to its end as well.
                url = self._arena.database_url
                left = await audit.settled(url, clock=self._clock, within_s=SETTLED_WITHIN_S)
                problems += left
                for problem in problems:
                    self._say(f"PROBLEM: {problem}")
                self._say(f"settled after {self._throughput.now() - began - seconds:.1f} s")
        finally:
            await raw.close()
        await self._arena.end_in_order()
        acknowledged = sdk.acknowledged | raw.acknowledged
        problems += await asyncio.to_thread(audit.problems, url, acknowledged)
        return Outcome(
            felt=faults.felt,
            slow=faults.slow,
            problems=problems,
            acknowledged=len(acknowledged),
            completed=len(sdk.completed | raw.completed),
            seconds=seconds,
            baseline=self._throughput.baseline,
            errors=sdk.errors + raw.errors,
            figures=audit.figures(url),
            verified=await asyncio.to_thread(audit.verify, url),
        )

    async def _under_load(self, plan: list[Fault], *, sdk: SdkLoad, raw: RawLoad, faults: Faults) -> list[str]:
        """What the starters failed with, in words."""
        pace = self._shape.pace
        starters = [asyncio.create_task(sdk.run(first=n, pace=pace)) for n in range(self._shape.sdk)]
        starters += [asyncio.create_task(raw.start_and_wait(first=n, pace=pace)) for n in range(self._shape.raw)]
        try:
            await self._clock.sleep(timedelta(seconds=2))
            await self._throughput.measure_baseline(seconds=self._shape.baseline_s)
            self._say(f"undisturbed: {self._throughput.baseline:.1f} workflows a second\n{HEAD}")
            await faults.play(plan)
        finally:
            sdk.ends.set()
            raw.ends.set()
            problems = await ended(starters, within_s=SETTLED_WITHIN_S)
        unfinished = (sdk.acknowledged - sdk.completed) | (raw.acknowledged - raw.completed)
        return problems + [f"nobody saw the end of {workflow_id}" for workflow_id in sorted(unfinished)]
