"""Placement by rendezvous hashing: each key belongs to the member that scores highest for it.

When a member leaves, only its keys move; when one joins, it takes an even share from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from msgspec import Struct

KEYS_KEPT = 20_000


class Member(Struct, frozen=True, kw_only=True):
    """A process in one of its roles. `host` is unique in the cluster; `address` is HOST:PORT, empty for a role that serves
    nobody."""

    role: str
    host: str
    address: str = ""


class Ring:
    """The members of one role at one time; never changes. Remembers the owners of the keys that were asked for last."""

    __slots__ = ("_owners", "members")

    def __init__(self, members: Sequence[Member] = ()) -> None:
        self.members: tuple[Member, ...] = tuple(sorted(members, key=lambda member: member.host))
        self._owners: dict[str, Member] = {}

    def owner(self, key: str) -> Member | None:
        """None when there is no member at all."""
        owner = self._owners.get(key)
        if owner is None and self.members:
            if len(self._owners) >= KEYS_KEPT:
                self._owners.clear()
            owner = self._owners[key] = max(self.members, key=lambda member: _score(key, member.host))
        return owner

    def by_host(self, host: str) -> Member | None:
        return next((member for member in self.members if member.host == host), None)


def _score(key: str, host: str) -> bytes:
    return blake2b(f"{key}\0{host}".encode(), digest_size=8).digest()
