"""Who is a member, judged by changing heartbeats; and where keys are placed."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from common.clock import ManualClock
from common.errors import Unavailable
from common.membership import LiveMembership, Member, Membership, Ring
from common.membership.probe import refuses
from common.membership.store import MemberRow
from tests.ports import free_port

INTERVAL = timedelta(seconds=2)


def members(*hosts: str) -> list[Member]:
    return [Member(role="history", host=host, address=f"{host}:1") for host in hosts]


KEYS = [f"key {i}" for i in range(2_000)]


def test_keys_are_spread_evenly_and_the_same_way_everywhere() -> None:
    here, there = Ring(members("a", "b", "c")), Ring(members("c", "a", "b"))
    owners = {key: here.owner(key) for key in KEYS}
    assert owners == {key: there.owner(key) for key in KEYS}
    counts = Counter(owner.host for owner in owners.values() if owner is not None)
    assert counts.keys() == {"a", "b", "c"}
    assert min(counts.values()) > len(KEYS) / 3 * 0.8


def test_only_the_keys_of_a_member_that_left_move() -> None:
    before, after = Ring(members("a", "b", "c")), Ring(members("a", "b"))
    moved = [key for key in KEYS if before.owner(key) != after.owner(key)]
    assert moved
    assert {before.owner(key) for key in moved} == {before.by_host("c")}


def test_keys_known_beforehand_are_shared_out_evenly() -> None:
    shards = [f"shard {i}" for i in range(1, 5)]
    for hosts in (("a",), ("a", "b"), ("history-1", "history-2"), ("a", "b", "c"), ("a", "b", "c", "d", "e")):
        ring = Ring(members(*hosts), shared=shards)
        counts = Counter(owner.host for key in shards if (owner := ring.owner(key)) is not None)
        assert max(counts.values()) == -(-len(shards) // len(hosts))
        assert ring.owner("another key") == Ring(members(*hosts)).owner("another key")


def test_things_under_one_key_are_spread_over_as_many_members_as_can_be() -> None:
    ring = Ring(members("a", "b", "c"))
    for number in range(50):
        key = f"key {number}"
        owners = [ring.owner(key, rank=rank) for rank in range(7)]
        assert owners[0] == ring.owner(key)
        assert len(set(owners[:3])) == 3
        assert owners[3:6] == owners[:3]
        assert owners[6] == owners[0]


def test_only_ranks_below_a_member_that_left_move_up() -> None:
    before, after = Ring(members("a", "b", "c", "d")), Ring(members("a", "b", "c"))
    for number in range(50):
        ranking = [before.owner(f"key {number}", rank=rank) for rank in range(4)]
        left = [member for member in ranking if member is None or member.host != "d"]
        assert [after.owner(f"key {number}", rank=rank) for rank in range(3)] == left


def test_without_members_nobody_owns_anything() -> None:
    assert Ring().owner("key") is None
    assert Ring().owner("key", rank=3) is None


async def test_fixed_lists_stay() -> None:
    membership = Membership(host="a", fixed={"history": members("a", "b")})
    await membership.start()
    assert [m.host for m in membership.ring("history").members] == ["a", "b"]
    assert membership.ring("matching").members == ()
    membership.suspect(members("b")[0])
    await membership.stop()
    assert len(membership.ring("history").members) == 2


class Table:
    """The heartbeat table in memory, for any number of processes; `down` is an outage."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], MemberRow] = {}
        self.down = False
        self.reads = 0
        self._read = asyncio.Event()

    def _check(self) -> None:
        if self.down:
            raise Unavailable("the database is away")

    async def beat(self, rows: list[MemberRow]) -> None:
        self._check()
        self.rows.update({(row.role, row.host): row for row in rows})

    async def leave(self, rows: list[MemberRow]) -> None:
        self._check()
        for row in rows:
            self.rows.pop((row.role, row.host), None)

    async def forget(self, *, before: object) -> None:
        self.rows = {key: row for key, row in self.rows.items() if row.heartbeat_at >= before}  # type: ignore[operator]

    async def list(self) -> list[MemberRow]:
        self._check()
        return list(self.rows.values())


class Cluster:
    """Several processes on one table and one clock. `refusing` are the addresses at which nobody listens."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.table = Table()
        self.refusing: set[str] = set()
        self.started: list[LiveMembership] = []
        self._ports = itertools.count(1)

    async def join(self, host: str, *, address: str = "") -> LiveMembership:
        address = address or f"{host}:{next(self._ports)}"
        membership = LiveMembership(
            host=host,
            store=self.table,  # type: ignore[arg-type]
            clock=self.clock,
            own=lambda: {"history": address},
            interval=INTERVAL,
            probe=self._probe,
        )
        await membership.start()
        self.started.append(membership)
        return membership

    async def _probe(self, address: str) -> bool:
        return address in self.refusing

    async def kill(self, membership: LiveMembership, *, listens: bool) -> None:
        """It beats no more; its machine refuses connections unless it merely `listens` on, as a stopped process does."""
        await membership._loop.stop()
        self.started.remove(membership)
        if not listens:
            self.refusing.add(self.address(membership))

    def address(self, membership: LiveMembership) -> str:
        return membership._own["history"]

    async def pass_interval(self) -> None:
        """Every process beats and reads once, and what it does thereupon is done."""
        self.clock.advance(INTERVAL)
        await settle()

    async def stop(self) -> None:
        for membership in self.started:
            await membership.stop()


async def settle() -> None:
    """Let everything run that can without the clock."""
    loop = asyncio.get_running_loop()
    for _ in range(30):
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster()
    yield cluster
    await cluster.stop()


def hosts(membership: Membership) -> list[str]:
    return [member.host for member in membership.ring("history").members]


async def test_members_see_each_other_and_those_that_leave(cluster: Cluster) -> None:
    a = await cluster.join("a")
    b = await cluster.join("b")
    changes: list[list[str]] = []
    a.subscribe(lambda: changes.append(hosts(a)))
    assert (hosts(a), hosts(b)) == (["a"], ["a", "b"])
    await cluster.pass_interval()
    assert hosts(a) == ["a", "b"]
    await b.stop()
    await cluster.pass_interval()
    assert hosts(a) == ["a"]
    assert changes == [["a", "b"], ["a"]]


async def test_a_killed_member_is_gone_after_one_missed_heartbeat(cluster: Cluster) -> None:
    a, b = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_interval()
    await cluster.kill(b, listens=False)
    await cluster.pass_interval()
    assert hosts(a) == ["a"]


async def test_a_suspected_member_is_looked_at_at_once(cluster: Cluster) -> None:
    a, b = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_interval()
    member = a.ring("history").by_host("b")
    assert member is not None
    a.suspect(member)
    await settle()
    assert hosts(a) == ["a", "b"]
    await cluster.kill(b, listens=False)
    cluster.clock.advance(timedelta(milliseconds=250))
    a.suspect(member)
    await settle()
    assert hosts(a) == ["a"]


async def test_a_stopped_member_is_gone_after_four_reads_and_comes_back(cluster: Cluster) -> None:
    a, b = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_interval()
    await cluster.kill(b, listens=True)
    for _ in range(3):
        await cluster.pass_interval()
        assert hosts(a) == ["a", "b"]
    await cluster.pass_interval()
    assert hosts(a) == ["a"]
    await b._loop.start()
    cluster.started.append(b)
    await cluster.pass_interval()
    await cluster.pass_interval()
    assert hosts(a) == ["a", "b"]


async def test_an_outage_of_the_database_counts_against_nobody(cluster: Cluster) -> None:
    a, b = await cluster.join("a"), await cluster.join("b")
    await cluster.pass_interval()
    cluster.table.down = True
    for _ in range(10):
        await cluster.pass_interval()
    cluster.table.down = False
    await cluster.pass_interval()
    await cluster.pass_interval()
    assert (hosts(a), hosts(b)) == (["a", "b"], ["a", "b"])


async def test_a_new_process_does_not_wait_for_its_dead_predecessors(cluster: Cluster) -> None:
    old = await cluster.join("old", address="here:1")
    gone = await cluster.join("gone")
    await cluster.kill(old, listens=True)
    await cluster.kill(gone, listens=False)
    new = await cluster.join("new", address="here:1")
    assert hosts(new) == ["new"]


async def test_others_take_the_last_to_start_at_an_address(cluster: Cluster) -> None:
    watcher = await cluster.join("watcher")
    old = await cluster.join("old", address="here:1")
    await cluster.pass_interval()
    await cluster.kill(old, listens=True)
    cluster.clock.advance(timedelta(milliseconds=1))
    await cluster.join("new", address="here:1")
    await cluster.pass_interval()
    assert hosts(watcher) == ["new", "watcher"]


async def test_rows_nobody_renewed_for_long_are_forgotten(cluster: Cluster) -> None:
    old = await cluster.join("old")
    await cluster.kill(old, listens=True)
    cluster.clock.advance(timedelta(hours=2))
    new = await cluster.join("new")
    assert hosts(new) == ["new"]
    assert [host for _, host in cluster.table.rows] == ["new"]


async def test_start_says_when_there_is_no_database(cluster: Cluster) -> None:
    cluster.table.down = True
    with pytest.raises(Unavailable):
        await cluster.join("a")


async def test_a_probe_tells_a_listener_from_nobody() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), host="127.0.0.1", port=0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    assert not await refuses(address)
    server.close()
    await server.wait_closed()
    assert await refuses(address)
    assert await refuses(f"127.0.0.1:{free_port()}")
