"""What goes wrong and when: drawn from a seed, so that a run can be had again."""

from __future__ import annotations

import random
from dataclasses import dataclass

HOSTS = ("history-1", "history-2", "matching-1", "matching-2", "frontend-1", "frontend-2", "worker-1")
LEASE_S = 5.0
"""A process that says nothing for so long has lost its shards and queues: four heartbeats."""
OUTAGE_S = 20.0


@dataclass(frozen=True, kw_only=True)
class Fault:
    """`for_s`: how long the process stays away or frozen, the database stopped, the usurper there."""

    kind: str
    host: str = ""
    for_s: float = 0.0
    calm_s: float = 2.0
    """Without a fault before it."""

    def __str__(self) -> str:
        return f"{self.kind:<15}{self.host:<12}{self.for_s:>5.1f} s"


def full_plan(*, seed: int, seconds: float, only: str = "") -> list[Fault]:
    """Faults for about so many seconds: every kind at least once, with processes of each role, then by chance. `only`: those
    whose description begins so."""
    chance = random.Random(seed)
    first = [_kill(chance, host) for host in HOSTS[::2]]
    first += [_freeze(chance, role) for role in ("history", "matching", "frontend")]
    first += [_stop(chance), _restart(chance, crash=False), _restart(chance, crash=True), _usurp(chance)]
    first.append(Fault(kind="outage", for_s=OUTAGE_S, calm_s=_calm(chance)))
    chance.shuffle(first)
    plan: list[Fault] = []
    planned = 0.0
    while planned < seconds:
        fault = first.pop() if first else _any(chance)
        if not str(fault).startswith(only):
            continue
        plan.append(fault)
        planned += duration_s(fault)
    return plan


def short_plan(*, seed: int) -> list[Fault]:
    """One of each that matters most, as short as they make sense."""
    chance = random.Random(seed)
    number = chance.choice("12")
    plan = [
        Fault(kind="kill", host=f"history-{number}", calm_s=0),
        Fault(kind="kill", host=f"matching-{number}", calm_s=0),
        Fault(kind="kill", host=f"frontend-{number}", calm_s=0),
        Fault(kind="freeze", host=f"history-{3 - int(number)}", for_s=LEASE_S + 1, calm_s=0),
        Fault(kind="crash database", for_s=0.5, calm_s=0),
    ]
    chance.shuffle(plan)
    return plan


def duration_s(fault: Fault) -> float:
    """At least so long it takes, the look at the throughput afterwards included, so that a run lasts the time asked for."""
    return fault.calm_s + fault.for_s + 5.5 * (2 if fault.kind == "freeze" else 1)


def _any(chance: random.Random) -> Fault:
    weighted = [
        (6, lambda: _kill(chance, chance.choice(HOSTS))),
        (4, lambda: _freeze(chance, chance.choice(("history", "matching", "frontend")))),
        (2, lambda: _stop(chance)),
        (1, lambda: _restart(chance, crash=False)),
        (1, lambda: _restart(chance, crash=True)),
        (2, lambda: _usurp(chance)),
    ]
    (make,) = chance.choices([make for _, make in weighted], [weight for weight, _ in weighted])
    return make()


def _calm(chance: random.Random) -> float:
    return round(chance.uniform(1, 4), 1)


def _kill(chance: random.Random, host: str) -> Fault:
    return Fault(kind="kill", host=host, for_s=round(chance.uniform(0, 3), 1), calm_s=_calm(chance))


def _stop(chance: random.Random) -> Fault:
    return Fault(kind="stop", host=chance.choice(HOSTS), for_s=round(chance.uniform(0, 3), 1), calm_s=_calm(chance))


def _freeze(chance: random.Random, role: str) -> Fault:
    host = f"{role}-{chance.choice('12')}"
    return Fault(kind="freeze", host=host, for_s=round(LEASE_S + chance.uniform(2, 8), 1), calm_s=_calm(chance))


def _restart(chance: random.Random, *, crash: bool) -> Fault:
    kind = "crash database" if crash else "stop database"
    return Fault(kind=kind, for_s=round(chance.uniform(0.2, 3), 1), calm_s=_calm(chance))


def _usurp(chance: random.Random) -> Fault:
    return Fault(kind="usurp", host="usurper-1", for_s=round(chance.uniform(8, 14), 1), calm_s=_calm(chance))
