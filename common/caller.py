"""Who makes the present request, as far as answers depend on it; carried along its await chain like its deadline.

The frontend sets it from the call's metadata, and only reads the metadata when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar

Metadata = Iterable[tuple[str, str | bytes]] | None

_METADATA: ContextVar[Callable[[], Metadata] | None] = ContextVar("caller_metadata", default=None)

READERS_OF_WRITTEN_EVENTS = frozenset(("temporal-cli", "temporal-ui"))
"""Clients that show a history to people and expect nothing in it that may yet vanish."""


def set_metadata(metadata: Callable[[], Metadata]) -> None:
    """For the task of one request, once, before it is handled."""
    _METADATA.set(metadata)


def source() -> Callable[[], Metadata] | None:
    """Where the present caller's metadata is read, to be kept for later: see `set_source`."""
    return _METADATA.get()


def set_source(metadata: Callable[[], Metadata] | None) -> None:
    """Acts for that caller, in a task of one's own."""
    _METADATA.set(metadata)


def client_name() -> str:
    """The `client-name` that SDKs and tools send; "" when unknown."""
    return _value("client-name")


def client_version() -> str:
    """The `client-version`, likewise."""
    return _value("client-version")


def _value(wanted: str) -> str:
    metadata = _METADATA.get()
    for key, value in (metadata() or ()) if metadata is not None else ():
        if key == wanted:
            return value if isinstance(value, str) else value.decode(errors="replace")
    return ""


def knows_unwritten_events() -> bool:
    """Whether the caller is given events of a workflow task that are not written yet. Source: upstream's
    ClientSupportsTranOrSpecEvents."""
    return client_name() not in READERS_OF_WRITTEN_EVENTS
