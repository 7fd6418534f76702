"""The codec's promise of speed, on the events of a realistic history: run with -s to see the figures."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest
from google.protobuf import json_format
from temporalio.api.history.v1 import HistoryEvent

from common.codec import from_dict, from_json, to_dict, to_json
from tests.common.codec_samples import history

ROUNDS = 7
EVENTS = history()
DICTS = [json_format.MessageToDict(event) for event in EVENTS]
TEXTS = [to_json(event) for event in EVENTS]

# what, its inputs, ours, json_format's
CASES: list[tuple[str, list[Any], Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("to_dict", EVENTS, to_dict, json_format.MessageToDict),
    ("to_json", EVENTS, to_json, lambda event: json_format.MessageToJson(event, indent=None)),
    (
        "from_dict",
        DICTS,
        lambda value: from_dict(HistoryEvent, value),
        lambda value: json_format.ParseDict(value, HistoryEvent()),
    ),
    (
        "from_json",
        TEXTS,
        lambda text: from_json(HistoryEvent, text),
        lambda text: json_format.Parse(text, HistoryEvent()),
    ),
]


def microseconds(convert: Callable[[Any], Any], inputs: list[Any], *, repeat: int) -> float:
    """Return the CPU time of one conversion, in µs."""
    start = process_time()
    for _ in range(repeat):
        for value in inputs:
            convert(value)
    return (process_time() - start) / repeat / len(inputs) * 1e6


@pytest.mark.parametrize(("name", "inputs", "ours", "theirs"), CASES, ids=[case[0] for case in CASES])
def test_at_least_twice_as_fast_as_json_format(
    name: str, inputs: list[Any], ours: Callable[[Any], Any], theirs: Callable[[Any], Any]
) -> None:
    # The two alternate and each keeps its best round, so that a busy machine disturbs neither more.
    rounds = [(microseconds(ours, inputs, repeat=60), microseconds(theirs, inputs, repeat=15)) for _ in range(ROUNDS)]
    fast, slow = (min(times) for times in zip(*rounds, strict=True))
    print(f"\n{name:10} {fast:6.2f} µs an event, json_format {slow:6.2f} µs: {slow / fast:.1f} times as fast")
    assert slow / fast >= 2
