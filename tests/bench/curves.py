"""`python -m tests.bench.curves [--rounds N]`: what a transition costs as its run grows, on a real SQLite file.

Two curves: by the number of events of the run, and by the number of its pending activities. A transition costs what it changes,
so both are flat. Each transition commits alone; its time goes from the call to the durable answer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import tempfile
from pathlib import Path

from tests.bench.single_run import Samples, SingleRun
from tests.databases import DatabaseFactory
from tests.history.engine_harness import running_lab

EVENTS = (100, 1_000, 10_000)
PENDING = (10, 100, 1_000, 2_000)
ROUNDS = 100

Point = dict[str, Samples]


async def by_events(url: str, *, counts: tuple[int, ...] = EVENTS, rounds: int = ROUNDS) -> dict[int, Point]:
    """A signal and the workflow task that it leads to, in one run that grows from count to count."""
    curve: dict[int, Point] = {}
    async with running_lab(url) as lab:
        run = SingleRun(lab)
        await run.begin()
        for count in counts:
            await run.grow_to(count)
            run.measured = curve.setdefault(count, {})
            gc.collect()
            for _ in range(rounds):
                if (await run.state()).info.workflow_task is None:
                    await run.signal()
                await run.workflow_task()
            run.measured = None
    return curve


async def by_pending(url: str, *, counts: tuple[int, ...] = PENDING, rounds: int = ROUNDS) -> dict[int, Point]:
    """An activity from its start to its end, and the workflow task that schedules the next, with so many others pending."""
    curve: dict[int, Point] = {}
    async with running_lab(url) as lab:
        run = SingleRun(lab)
        await run.begin()
        for count in counts:
            await run.pend(count)
            run.measured = curve.setdefault(count, {})
            gc.collect()
            for _ in range(rounds):
                await run.activity()
                await run.workflow_task(run.schedule())
            run.measured = None
    return curve


def table(title: str, curve: dict[int, Point]) -> str:
    lines = [f"{title:<20}{'transition':<20}{'ms':>8}{'CPU ms':>8}{'rows':>6}{'bytes':>8}"]
    for kind in next(iter(curve.values())):
        for count, point in curve.items():
            samples = point[kind]
            lines.append(
                f"{count:<20}{kind:<20}{samples.middle('wall_us') / 1e3:>8.2f}{samples.middle('cpu_us') / 1e3:>8.2f}"
                f"{samples.middle('rows'):>6.0f}{samples.middle('sizes'):>8.0f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curves", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        factory = DatabaseFactory(folder=Path(folder), postgres_url=str)
        print(table("events", asyncio.run(by_events(factory.create("sqlite"), rounds=rounds))))
        print()
        print(table("pending activities", asyncio.run(by_pending(factory.create("sqlite"), rounds=rounds))))


if __name__ == "__main__":
    main()
