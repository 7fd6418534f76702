"""Where this server answers differently on purpose, each with its reason; everything else that differs is a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.compare.differences import differences


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """Differences whose line matches `line` in scenarios whose name matches `scenario` (both anchored at the start)."""

    line: str
    why: str
    scenario: str = ""

    def covers(self, scenario: str, line: str) -> bool:
        return bool(re.match(self.scenario, scenario) and re.match(self.line, line))


DEVIATIONS: tuple[Deviation, ...] = ()


@dataclass(kw_only=True)
class Judgement:
    wrong: list[str] = field(default_factory=list)
    meant: list[str] = field(default_factory=list)


def judged(scenario: str, official: Any, ours: Any) -> Judgement:
    """All differences of one scenario, those that are meant apart."""
    judgement = Judgement()
    for line in differences(official, ours):
        meant = any(deviation.covers(scenario, line) for deviation in DEVIATIONS)
        (judgement.meant if meant else judgement.wrong).append(line)
    return judgement
