"""Runs as a busy installation has them, in any number, for measuring: the same ones for the same number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payload

from common.contracts.visibility import VisibilityIntent
from common.ids import uuid7
from visibility.statuses import STATUS_NUMBER

NAMESPACE = "measured"
CUSTOM = {f"Sample{name}": name for name in ("Keyword", "Int", "Double", "Bool", "Datetime", "Text", "KeywordList")}
PREDEFINED = {"BuildIds": "KeywordList", "TemporalScheduledById": "Keyword", "TemporalChangeVersion": "KeywordList"}
"""Of these, and of CUSTOM, the runs have values."""

FIRST_START = datetime(2026, 1, 1, tzinfo=UTC)
BETWEEN_STARTS = timedelta(seconds=1)
_OPEN_SHARE = 0.01
_ENDS = {"Completed": 930, "Failed": 40, "Canceled": 15, "Terminated": 10, "ContinuedAsNew": 3, "TimedOut": 2}
_TYPES = [f"Type-{n}" for n in range(50)]
_QUEUES = [f"queue-{n}" for n in range(20)]
_SKEW = [1 / (n + 1) for n in range(50)]
_WORDS = [f"word{n}" for n in range(1_000)]

_write = msgspec.json.Encoder().encode


def sample_runs(number: int) -> Iterator[VisibilityIntent]:
    """The oldest first; about one in a hundred is open, among the newest."""
    draw = random.Random(number)  # noqa: S311  not for secrets
    for index in range(number):
        yield _run(index, draw, is_open=index >= number * (1 - 2 * _OPEN_SHARE) and draw.random() < 0.5)


def _run(index: int, draw: random.Random, *, is_open: bool) -> VisibilityIntent:
    start = FIRST_START + index * BETWEEN_STARTS
    run_id = uuid7(start)
    close = None if is_open else start + timedelta(seconds=draw.expovariate(1 / 600))
    end = draw.choices(list(_ENDS), list(_ENDS.values()))[0]
    is_child = draw.random() < 0.1
    length = 5 + int(draw.expovariate(1 / 20))
    return VisibilityIntent(
        task_id=index + 1,
        namespace=NAMESPACE,
        workflow_id=f"order-{index}",
        run_id=run_id,
        workflow_type=draw.choices(_TYPES, _SKEW)[0],
        task_queue=draw.choices(_QUEUES, _SKEW[: len(_QUEUES)])[0],
        status=STATUS_NUMBER["Running" if is_open else end],
        start_time=start,
        execution_time=start,
        close_time=close,
        history_length=length,
        history_size=length * 200,
        state_transition_count=length // 2,
        parent_workflow_id=f"order-{index // 2}" if is_child else "",
        parent_run_id=f"parent-of-{index}" if is_child else "",
        root_workflow_id=f"order-{index // 4}" if is_child else "",
        root_run_id=f"root-of-{index}" if is_child else "",
        search_attributes=_attributes(index, start, draw),
    )


def _attributes(index: int, start: datetime, draw: random.Random) -> dict[str, Payload]:
    values: dict[str, Any] = {}
    if draw.random() < 0.5:
        values["BuildIds"] = [f"versioned:{index // 10_000}"]
    if draw.random() < 0.05:
        values["TemporalScheduledById"] = f"schedule-{index % 100}"
    if draw.random() < 0.02:
        values["TemporalChangeVersion"] = [f"change-{index % 7}", "change-1"]
    if draw.random() < 0.3:
        values |= {
            "SampleKeyword": f"customer-{draw.randrange(1_000)}",
            "SampleInt": draw.randrange(100_000),
            "SampleDouble": round(draw.random() * 1_000, 2),
            "SampleBool": draw.random() < 0.5,
            "SampleDatetime": (start + timedelta(days=7)).isoformat(),
            "SampleText": " ".join(draw.choices(_WORDS, k=5)),
            "SampleKeywordList": draw.choices([f"tag-{n}" for n in range(500)], k=2),
        }
    types = CUSTOM | PREDEFINED
    return {name: _payload(value, types[name]) for name, value in values.items()}


def _payload(value: Any, type_name: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "type": type_name.encode()}, data=_write(value))
