"""`python -m tests.chaos [--seconds N] [--seed N]`: the whole run, its plan, what each fault did, and a table of figures."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from tests.chaos.plan import duration_s, full_plan, short_plan
from tests.chaos.run import Outcome, Shape, run

WITHIN_S = 10.0
SHAPE = Shape(sdk=12, raw=12, pace=timedelta(milliseconds=150), baseline_s=10, steady_s=4, look_s=7, durable=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600, help="how long the faults go on at least (600)")
    parser.add_argument("--seed", type=int, default=None, help="of the plan; drawn when not given")
    parser.add_argument("--only", default="", help="faults that begin so: usurp, 'freeze         frontend', …")
    parser.add_argument("--short", action="store_true", help="the plan of the test instead")
    parser.add_argument("--keep", type=Path, default=None, help="a folder for the processes' logs")
    options = parser.parse_args()
    seed = secrets.randbelow(10_000) if options.seed is None else options.seed
    plan = short_plan(seed=seed) if options.short else full_plan(seed=seed, seconds=options.seconds, only=options.only)
    print(f"seed {seed}: {len(plan)} faults in about {sum(map(duration_s, plan)):.0f} s")
    for number, fault in enumerate(plan, start=1):
        print(f"{number:>4}  after {fault.calm_s:>3.1f} s  {fault}")
    with tempfile.TemporaryDirectory(prefix="tinytemporal-chaos-") as folder:
        where = options.keep or Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        outcome = asyncio.run(run(plan=plan, shape=SHAPE, within_s=WITHIN_S, folder=where, say=say))
    report(outcome)
    sys.exit(1 if outcome.problems or outcome.slow else 0)


def say(text: str) -> None:
    print(text, flush=True)


def report(outcome: Outcome) -> None:
    times = sorted(felt.recovered_s for felt in outcome.felt)
    rows = {
        "seconds under load": f"{outcome.seconds:.0f}",
        "workflows a second, undisturbed": f"{outcome.baseline:.1f}",
        "workflows a second, over all": f"{outcome.completed / outcome.seconds:.1f}",
        "starts acknowledged": outcome.acknowledged,
        "recovery, median": f"{times[len(times) // 2]:.1f} s",
        "recovery, longest": f"{times[-1]:.1f} s",
        f"faults felt for more than {WITHIN_S:.0f} s": len(outcome.slow),
        **outcome.figures,
        "calls that failed and were repeated": dict(outcome.errors.most_common()),
        "verify": outcome.verified,
        "problems": len(outcome.problems),
    }
    print()
    for name, value in rows.items():
        print(f"{name:<38}{value}")
    for problem in outcome.problems[:50]:
        print(f"PROBLEM: {problem}")


if __name__ == "__main__":
    main()
