"""What two answers to the same scenario do not agree on, each as one line that names the place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def differences(official: Any, ours: Any, *, where: str = "") -> Iterator[str]:
    """Yields `place: what the official server has | what ours has`. Histories of other events are told by their events alone."""
    if isinstance(official, dict) and isinstance(ours, dict):
        for key in [*official, *(k for k in ours if k not in official)]:
            place = f"{where} / {key}" if where else key
            if key not in ours:
                yield f"{place}: {short(official[key])} | missing"
            elif key not in official:
                yield f"{place}: missing | {short(ours[key])}"
            else:
                yield from differences(official[key], ours[key], where=place)
    elif isinstance(official, list) and isinstance(ours, list):
        yield from _lists(official, ours, where)
    elif official != ours:
        yield f"{where}: {short(official)} | {short(ours)}"


def _lists(official: list[Any], ours: list[Any], where: str) -> Iterator[str]:
    if _events(official) != _events(ours):
        yield f"{where}: {', '.join(_events(official))} | {', '.join(_events(ours))}"
        return
    if len(official) != len(ours):
        yield f"{where}: {len(official)} items {short(official)} | {len(ours)} items {short(ours)}"
        return
    for number, (one, other) in enumerate(zip(official, ours, strict=True)):
        name = one.get("event", number) if isinstance(one, dict) else number
        yield from differences(one, other, where=f"{where} / {name}")


def _events(items: list[Any]) -> list[str]:
    return [item["event"] for item in items if isinstance(item, dict) and "event" in item]


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
