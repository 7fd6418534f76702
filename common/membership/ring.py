"""Placement by rendezvous hashing: each key belongs to the member that scores highest for it.

When a member leaves, only its keys move; when one joins, it takes an even share from all others. Even by chance, that is:
a few keys, as the shards are, would often be shared out badly, so these are known beforehand and no member gets more than
its share of them.
"""

from __future__ import annotations

from collections import Counter
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
    """The members of one role at one time; never changes. Remembers the owners of the keys that were asked for last.
    `shared` are the keys that are shared out evenly."""

    __slots__ = ("_owners", "_rankings", "_shared", "members")

    def __init__(self, members: Sequence[Member] = (), *, shared: Sequence[str] = ()) -> None:
        self.members: tuple[Member, ...] = tuple(sorted(members, key=lambda member: member.host))
        self._shared = _share_out(shared, self.members)
        self._owners: dict[str, Member] = {}
        self._rankings: dict[str, tuple[Member, ...]] = {}

    def owner(self, key: str, *, rank: int = 0) -> Member | None:
        """None when there is no member at all. Of several things under one key the first, of rank 0, belongs to the member
        that scores highest, the next to the second, and so on, round and round: they are spread over as many members as
        can be, and each stays with its own for as long as no member above it comes or goes."""
        if rank:
            return self._ranked(key, rank)
        owner = self._shared.get(key) or self._owners.get(key)
        if owner is None and self.members:
            if len(self._owners) >= KEYS_KEPT:
                self._owners.clear()
            owner = self._owners[key] = max(self.members, key=lambda member: _score(key, member.host))
        return owner

    def _ranked(self, key: str, rank: int) -> Member | None:
        if not self.members:
            return None
        ranking = self._rankings.get(key)
        if ranking is None:
            if len(self._rankings) >= KEYS_KEPT:
                self._rankings.clear()
            ranking = self._rankings[key] = tuple(
                sorted(self.members, key=lambda member: _score(key, member.host), reverse=True)
            )
        return ranking[rank % len(ranking)]

    def by_host(self, host: str) -> Member | None:
        return next((member for member in self.members if member.host == host), None)


def _share_out(keys: Sequence[str], members: Sequence[Member]) -> dict[str, Member]:
    """Each key to the member that scores highest for it among those that have not got their share yet."""
    if not members or not keys:
        return {}
    share = -(-len(keys) // len(members))
    got = Counter[str]()
    owners: dict[str, Member] = {}
    for key in keys:
        ranked = sorted(members, key=lambda member: _score(key, member.host), reverse=True)
        owner = owners[key] = next(member for member in ranked if got[member.host] < share)
        got[owner.host] += 1
    return owners


def _score(key: str, host: str) -> bytes:
    return blake2b(f"{key}\0{host}".encode(), digest_size=8).digest()
