"""Converters by message type, compiled at first use and then remembered for the life of the process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from threading import RLock

from google.protobuf.message import Message

from common.codec.scalars import Converter


def nothing_to_link() -> None:
    """Stand in for the second step of a type that has no fields to look at."""


class Compiled(ABC):
    """One converter a type. Threads may ask at the same time: none sees a converter before it is whole."""

    def __init__(self) -> None:
        self.ready: dict[type[Message], Converter] = {}  # complete entries only, so reading needs no lock
        self._making: dict[type[Message], Converter] = {}  # guarded by _lock
        self._lock = RLock()

    @abstractmethod
    def compile(self, cls: type[Message]) -> tuple[Converter, Callable[[], None]]:
        """Return the converter of `cls`, and the step that ties it to the converters of its fields.

        Two steps because types contain themselves: the second one may ask `of` for `cls` itself.
        """

    def of(self, cls: type[Message]) -> Converter:
        """Return the converter of `cls`, compiling it and those of all types it reaches if need be."""
        found = self.ready.get(cls)
        if found is not None:
            return found
        with self._lock:
            return self.ready.get(cls) or self._making.get(cls) or self._make(cls)

    def _make(self, cls: type[Message]) -> Converter:
        outermost = not self._making
        try:
            converter, link = self.compile(cls)
            self._making[cls] = converter
            link()
            if outermost:
                self.ready.update(self._making)
        finally:
            if outermost:
                self._making.clear()
        return converter
