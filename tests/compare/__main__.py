"""`python -m tests.compare`: runs every scenario on the official server and on ours, and prints what they disagree on.

    --peers sqlite postgresql   which of our servers (both by default); --against HOST:PORT: one that runs already
    --only NAME …               scenarios by name or by the beginning of their names
    --record                    runs the official server alone and keeps its answers as the reference of `make test`
    --recorded                  compares with those instead of starting the official server

Differences that are meant (`deviations.py`) are counted and not shown. Exit status 1 when any other is found.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.compare import reference, scenarios  # noqa: F401  # registers them
from tests.compare.deviations import judged
from tests.compare.peers import PEERS, official
from tests.compare.scenario import SCENARIOS, observe


def answers_of(peer: Any, names: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tinytemporal-compare-") as folder, peer(Path(folder)) as running:
        return asyncio.run(observe(running.address, names))


def report(name: str, expected: dict[str, Any], seen: dict[str, Any]) -> int:
    """Prints the differences of all scenarios; gives how many have any that is not meant."""
    wrong = meant = found = 0
    for scenario in seen:
        judgement = judged(scenario, expected[scenario], seen[scenario])
        meant += len(judgement.meant)
        found += len(judgement.wrong)
        wrong += bool(judgement.wrong)
        for line in judgement.wrong:
            print(f"{name}: {scenario}: {line}")
    print(
        f"{name}: {len(seen) - wrong} of {len(seen)} scenarios agree; {found} differences, {meant} more are meant",
        flush=True,
    )
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=list(PEERS))
    parser.add_argument("--against", metavar="HOST:PORT")
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--recorded", action="store_true")
    options = parser.parse_args()
    names = [name for name in SCENARIOS if any(name.startswith(only) for only in options.only)]
    if options.recorded:
        expected = reference.read()
    else:
        expected = answers_of(official, names)
        stuck = [f"{name}: {notes['broke off']}" for name, notes in expected.items() if "broke off" in notes]
        print(f"official: {len(names)} scenarios", *stuck, sep="\n", flush=True)
    if options.record:
        reference.write({**(reference.read() if options.only != [""] else {}), **expected})
        return 0
    if options.against:
        return bool(report("ours", expected, asyncio.run(observe(options.against, names))))
    return sum(report(peer, expected, answers_of(PEERS[peer], names)) for peer in options.peers) > 0


if __name__ == "__main__":
    sys.exit(main())
