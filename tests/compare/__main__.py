"""`python -m tests.compare`: runs every scenario on the official server and on ours, and prints what they disagree on.

    --peers sqlite postgresql   which of our servers (both by default); --against HOST:PORT: one that runs already
    --only NAME …               scenarios by name or by the beginning of their names
    --record                    runs the official server alone and keeps its answers as the reference of `make test`
    --recorded                  compares with those instead of starting the official server

A scenario that differs is asked once more on both sides, alone: a busy machine outlasts short time-outs. Differences that are
meant (`deviations.py`) are counted and not shown. Exit status 1 when any other is found.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.compare import reference, scenarios  # noqa: F401  # registers them
from tests.compare.deviations import DEVIATIONS, judged
from tests.compare.peers import PEERS, official
from tests.compare.scenario import SCENARIOS, observe

Answers = dict[str, Any]


@contextmanager
def running(peer: Any) -> Iterator[str]:
    """The address of a server that lives as long as the context."""
    with tempfile.TemporaryDirectory(prefix="tinytemporal-compare-") as folder, peer(Path(folder)) as started:
        yield started.address


def ask(address: str, names: list[str], *, alone: bool = False) -> Answers:
    if not alone:
        return asyncio.run(observe(address, names))
    return {name: asyncio.run(observe(address, [name]))[name] for name in names}


def differing(expected: Answers, seen: Answers) -> list[str]:
    return [name for name in seen if judged(name, expected[name], seen[name]).wrong]


def recorded(address: str, names: list[str]) -> Answers:
    """Answers that the official server gave twice; where it did not, those that it gave alone."""
    first, second = ask(address, names), ask(address, names)
    return {**second, **ask(address, differing(first, second), alone=True)}


def compare(peer: str, address: str, expected: Answers, *, official_address: str) -> int:
    """Prints the differences of all scenarios; gives how many have any that is not meant."""
    seen = ask(address, list(expected))
    if again := differing(expected, seen):
        seen |= ask(address, again, alone=True)
        if official_address:
            expected = expected | ask(official_address, again, alone=True)
    verdicts = {name: judged(name, expected[name], seen[name]) for name in seen}
    for name, verdict in verdicts.items():
        for line in verdict.wrong:
            print(f"{peer}: {name}: {line}")
    wrong = sum(bool(verdict.wrong) for verdict in verdicts.values())
    meant = sum(len(verdict.meant) for verdict in verdicts.values())
    if len(seen) == len(SCENARIOS):
        covered = {deviation.why for verdict in verdicts.values() for deviation in verdict.meant}
        for why in [deviation.why for deviation in DEVIATIONS if deviation.why not in covered]:
            print(f"{peer}: a deviation that covers nothing any more: {why}")
    print(f"{peer}: {len(seen) - wrong} of {len(seen)} scenarios agree; {meant} differences are meant", flush=True)
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
    with ExitStack() as stack:
        theirs = "" if options.recorded else stack.enter_context(running(official))
        if options.record:
            kept = reference.read() if options.only != [""] else {}
            reference.write({**kept, **recorded(theirs, names)})
            return 0
        known = reference.read() if options.recorded else ask(theirs, names)
        expected = {name: known[name] for name in names}
        for name in names:
            if "broke off" in expected[name]:
                print(f"official: {name}: broke off: {expected[name]['broke off']}")
        if options.against:
            return compare("ours", options.against, expected, official_address=theirs) > 0
        wrong = 0
        for peer in options.peers:
            with running(PEERS[peer]) as address:
                wrong += compare(peer, address, expected, official_address=theirs)
        return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
