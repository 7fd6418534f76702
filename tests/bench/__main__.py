"""`python -m tests.bench [--scale N]`: a table of this server and the official one, with the ratios between them.

Each server runs alone, each scenario once, in the same order. Server CPU counts the server's processes (PostgreSQL's too);
the driver's own cost is not part of any figure.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.load import Figures, Load, Scenario
from tests.bench.peers import Peer, official, ours_on_postgresql, ours_on_sqlite
from tests.bench.processes import cpu_s, resident_mib

PEERS: dict[str, Callable[[Path], AbstractContextManager[Peer]]] = {
    "official": official,
    "sqlite": ours_on_sqlite,
    "postgresql": ours_on_postgresql,
}
SCENARIOS = (
    Scenario(name="noop", workflows=400, concurrency=50),
    Scenario(name="activity", activities=1, workflows=300, concurrency=50),
    Scenario(name="fanout 10", activities=10, fanout=True, workflows=80, concurrency=50),
    Scenario(name="noop, alone", workflows=50, concurrency=1),
    Scenario(name="activity, alone", activities=1, workflows=50, concurrency=1),
)
HEAD = f"{'scenario':<17}{'server':<18}{'wf/s':>8}{'ratio':>7}{'p50 ms':>9}{'ratio':>7}{'CPU ms/wf':>11}{'ratio':>7}{'MiB':>7}"


@dataclass(kw_only=True)
class Result:
    figures: Figures
    cpu_ms: float
    memory_mib: float


def measure(peer: Peer, scenario: Scenario) -> Result:
    """Run one scenario; CPU from the end of the warm-up to the end of the load."""
    before = 0.0

    def begin() -> None:
        nonlocal before
        before = cpu_s(peer.pids)

    load = Load(address=peer.address, scenario=scenario)
    figures = asyncio.run(load.run(warmup=max(5, scenario.workflows // 10), on_measure=begin))
    spent = cpu_s(peer.pids) - before
    return Result(figures=figures, cpu_ms=1_000 * spent / max(1, figures.completed), memory_mib=resident_mib(peer.pids))


def line(scenario: str, peer: str, result: Result, reference: Result | None) -> str:
    """Ratios say how many times better than the reference."""

    def ratio(theirs: float | None, ours: float, *, more_is_better: bool = False) -> str:
        if theirs is None or not ours or not theirs:
            return ""
        return f"{ours / theirs if more_is_better else theirs / ours:.1f}x"

    f = result.figures
    r = reference
    return (
        f"{scenario:<17}{peer:<18}{f.workflows_per_s:>8.1f}"
        f"{ratio(r and r.figures.workflows_per_s, f.workflows_per_s, more_is_better=True):>7}"
        f"{f.p50_ms:>9.1f}{ratio(r and r.figures.p50_ms, f.p50_ms):>7}"
        f"{result.cpu_ms:>11.2f}{ratio(r and r.cpu_ms, result.cpu_ms):>7}{result.memory_mib:>7.0f}"
        + (f"  errors: {dict(f.errors)}" if f.errors else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="how many times the usual number of workflows")
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--only", nargs="+", help="scenarios by name", choices=[s.name for s in SCENARIOS])
    options = parser.parse_args()
    scenarios = [s for s in SCENARIOS if not options.only or s.name in options.only]
    references: dict[str, Result] = {}
    print(HEAD)
    for key in options.peers:
        with tempfile.TemporaryDirectory(prefix="tinytemporal-bench-") as folder, PEERS[key](Path(folder)) as peer:
            for scenario in scenarios:
                scaled = Scenario(**{**vars(scenario), "workflows": max(10, int(scenario.workflows * options.scale))})
                result = measure(peer, scaled)
                if key == "official":
                    references[scenario.name] = result
                reference = None if key == "official" else references.get(scenario.name)
                print(line(scenario.name, peer.name, result, reference), flush=True)


if __name__ == "__main__":
    main()
