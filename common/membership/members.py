"""The present members of each role, as one process knows them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from common.membership.ring import Member, Ring
from common.service import Service

__all__ = ["Member", "Membership"]

log = logging.getLogger(__name__)

_NOBODY = Ring()


class Membership(Service):
    """Fixed lists of members: what never changes by itself. `host` is the name of this process; `shared` are the keys of a
    role that its members share out evenly (see `Ring`)."""

    def __init__(
        self,
        *,
        host: str,
        fixed: Mapping[str, Iterable[Member]] | None = None,
        shared: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(name="membership")
        self.host = host
        self._shared = dict(shared or {})
        self._rings: dict[str, Ring] = {role: self._ring(role, members) for role, members in (fixed or {}).items()}
        self._subscribers: list[Callable[[], None]] = []

    async def start(self) -> None:
        """Nothing to begin with."""

    async def stop(self) -> None:
        """Nothing runs."""

    def ring(self, role: str) -> Ring:
        return self._rings.get(role, _NOBODY)

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call `changed` on the event loop after each change; it looks at `ring` to see what is new."""
        self._subscribers.append(changed)

    async def refresh(self) -> None:
        """Look up the members now; returns with what is known when they can't be."""

    def suspect(self, member: Member) -> None:
        """A call could not be delivered to it, or it denies what it should own: look soon whether it is there."""

    def _ring(self, role: str, members: Iterable[Member]) -> Ring:
        return Ring(tuple(members), shared=self._shared.get(role, ()))

    def _set(self, role: str, members: Iterable[Member]) -> bool:
        """Whether that changed anything."""
        ring = self._ring(role, members)
        before = self.ring(role)
        if ring.members == before.members:
            return False
        gone = {m.host for m in before.members} - {m.host for m in ring.members}
        come = {m.host for m in ring.members} - {m.host for m in before.members}
        log.info(
            "%s: %d members%s%s",
            role,
            len(ring.members),
            f", joined {', '.join(sorted(come))}" if come else "",
            f", gone {', '.join(sorted(gone))}" if gone else "",
        )
        self._rings[role] = ring
        return True

    def _tell(self) -> None:
        for changed in list(self._subscribers):
            try:
                changed()
            except Exception:
                log.exception("a subscriber of the membership failed")
