"""Members from their heartbeats in the table `cluster_members`.

Each process renews its rows every `interval` and then reads all. Whether a member lives is judged by its heartbeat
*changing* from one read to the next, so no two clocks are compared, and a time without the database counts against
nobody. A member is gone when its row is, when `misses` reads in a row saw no change, or as soon as nobody listens at its
address any more, which is looked at after the first missed heartbeat and whenever a caller suspects it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta

from common.clock import Clock
from common.errors import Unavailable
from common.membership.members import Member, Membership
from common.membership.probe import refuses
from common.membership.store import MemberRow, MemberStore
from common.service import RestartPolicy, TaskLoop

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""(role, host)"""

FORGET_AFTER = timedelta(hours=1)
LOOK_EVERY_S = 0.25


class _Seen:
    """What is known of one row."""

    __slots__ = ("alive", "misses", "row")

    def __init__(self, row: MemberRow, *, alive: bool) -> None:
        self.row = row
        self.alive = alive
        self.misses = 0


class LiveMembership(Membership):
    """`own` gives this process's roles and their addresses and is asked at the start. Roles in `fixed` keep those lists.

    `start` raises Unavailable without a database; later outages are ridden out. All state is touched on the event loop.
    """

    def __init__(
        self,
        *,
        host: str,
        store: MemberStore,
        clock: Clock,
        own: Callable[[], Mapping[str, str]],
        fixed: Mapping[str, Iterable[Member]] | None = None,
        shared: Mapping[str, Sequence[str]] | None = None,
        interval: timedelta = timedelta(seconds=1),
        misses: int = 4,
        probe: Callable[[str], Awaitable[bool]] = refuses,
    ) -> None:
        super().__init__(host=host, fixed=fixed, shared=shared)
        self._fixed = frozenset(fixed or ())
        self._store = store
        self._clock = clock
        self._own_roles = own
        self._interval = interval
        self._misses = misses
        self._probe = probe
        self._own: dict[str, str] = {}
        self._started_at = clock.now()
        self._seen: dict[Key, _Seen] = {}
        self._probing: dict[str, asyncio.Task[None]] = {}
        self._looked: dict[str, float] = {}
        """When each address was looked at last, in monotonic seconds."""
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)

    # --- life

    async def start(self) -> None:
        if self._loop.is_running:
            return
        self._own = dict(self._own_roles())
        self._started_at = self._clock.now()
        await self._store.forget(before=self._started_at - FORGET_AFTER)
        await self._store.beat(self._rows())
        self._take(await self._store.list(), counts=False)
        # A predecessor that was killed a moment ago must not be waited for.
        await asyncio.gather(*(self._look(m.address) for m in self._others()))
        self._publish()
        await self._loop.start()

    async def stop(self) -> None:
        """Leaves: the others know with their next read."""
        was_running = self._loop.is_running
        await self._loop.stop()
        for task in list(self._probing.values()):
            task.cancel()
        if was_running:
            try:
                await self._store.leave(self._rows())
            except Unavailable as error:
                log.info("could not leave the cluster in order: %s", error)

    def _rows(self) -> list[MemberRow]:
        now = self._clock.now()
        return [
            MemberRow(role=role, host=self.host, address=address, started_at=self._started_at, heartbeat_at=now)
            for role, address in self._own.items()
        ]

    async def _run(self) -> None:
        while True:
            await self._clock.sleep(self._interval)
            try:
                await self._store.beat(self._rows())
                rows = await self._store.list()
            except Unavailable as error:
                log.warning("no heartbeat: %s", error)
                continue
            self._take(rows, counts=True)
            self._publish()
            for address in {seen.row.address for seen in self._seen.values() if seen.alive and seen.misses}:
                self._look_soon(address)

    # --- judging

    def _take(self, rows: list[MemberRow], *, counts: bool) -> None:
        """What a read brought. `counts`: an unchanged heartbeat is a missed one."""
        known, self._seen = self._seen, {}
        oldest = self._clock.now() - self._interval * self._misses * 2
        for row in rows:
            key = (row.role, row.host)
            seen = known.get(key)
            if seen is None:
                seen = _Seen(row, alive=row.heartbeat_at >= oldest)
            elif seen.row.heartbeat_at != row.heartbeat_at:
                seen.row, seen.misses, seen.alive = row, 0, True
            elif counts:
                seen.misses += 1
                seen.alive = seen.alive and seen.misses < self._misses
            self._seen[key] = seen
        self._bury_predecessors()

    def _bury_predecessors(self) -> None:
        """Of several members of a role at one address only the last to start can be there."""
        newest: dict[Key, _Seen] = {}
        for seen in self._seen.values():
            place = (seen.row.role, seen.row.address)
            rival = newest.setdefault(place, seen)
            if seen is rival or not seen.row.address:
                continue
            if self._outlives(seen.row, rival.row):
                newest[place], rival = seen, rival
                rival.alive = False
            else:
                seen.alive = False

    def _outlives(self, row: MemberRow, rival: MemberRow) -> bool:
        if self.host in (row.host, rival.host):
            return row.host == self.host
        return row.started_at > rival.started_at

    def _publish(self) -> None:
        living: dict[str, list[Member]] = {role: [] for role in self._rings if role not in self._fixed}
        for role, address in self._own.items():
            if role not in self._fixed:
                living.setdefault(role, []).append(Member(role=role, host=self.host, address=address))
        for (role, host), seen in self._seen.items():
            if seen.alive and host != self.host and role not in self._fixed:
                living.setdefault(role, []).append(Member(role=role, host=host, address=seen.row.address))
        changed = [role for role, members in living.items() if self._set(role, members)]
        if changed:
            self._tell()

    async def refresh(self) -> None:
        if not self._loop.is_running:
            return
        try:
            rows = await self._store.list()
        except Unavailable as error:
            log.info("could not look up the members: %s", error)
            return
        self._take(rows, counts=False)
        self._publish()

    # --- looking whether somebody is there

    def suspect(self, member: Member) -> None:
        if member.host != self.host:
            self._look_soon(member.address)

    def _others(self) -> list[Member]:
        return [
            Member(role=role, host=host, address=seen.row.address)
            for (role, host), seen in self._seen.items()
            if seen.alive and host != self.host
        ]

    def _look_soon(self, address: str) -> None:
        now = self._clock.monotonic()
        if not address or address in self._probing or now - self._looked.get(address, -LOOK_EVERY_S) < LOOK_EVERY_S:
            return
        self._looked[address] = now
        task = asyncio.get_running_loop().create_task(self._look_and_publish(address), name=f"look at {address}")
        self._probing[address] = task
        task.add_done_callback(lambda _: self._probing.pop(address, None))

    async def _look_and_publish(self, address: str) -> None:
        await self._look(address)
        self._publish()

    async def _look(self, address: str) -> None:
        if not address or not await self._probe(address):
            return
        for seen in self._seen.values():
            if seen.row.address == address and seen.row.host != self.host:
                seen.alive = False
