"""The registry: what is in memory, what is read, and changes that meet."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest

from common.clock import ManualClock
from common.errors import InvalidArgument, NamespaceAlreadyExists, NamespaceNotFound, Unavailable
from history.namespaces import DEPRECATED, NamespaceRegistry
from history.records import NamespaceRecord

from .fakes import MemoryNamespaceStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> MemoryNamespaceStore:
    return MemoryNamespaceStore()


@pytest.fixture
async def registry(store: MemoryNamespaceStore, clock: ManualClock) -> NamespaceRegistry:
    made = NamespaceRegistry(store=store, clock=clock)
    await made.start()
    store.reads = 0
    return made


def record(name: str, clock: ManualClock) -> NamespaceRecord:
    return NamespaceRecord(name=name, namespace_id=f"id-{name}", created_at=clock.now())


async def test_the_namespaces_that_every_cluster_has(registry: NamespaceRegistry) -> None:
    assert [r.name for r in await registry.list()] == ["default", "temporal-system"]
    assert (await registry.get("default")).retention == timedelta(days=1)


async def test_starting_again_keeps_what_is_there(registry: NamespaceRegistry, store: MemoryNamespaceStore) -> None:
    before = store.records["default"]
    await registry.deprecate("default")
    await registry.start()
    after = await registry.get("default")
    assert (after.namespace_id, after.state) == (before.namespace_id, DEPRECATED)


async def test_a_lookup_is_answered_from_memory_for_a_while(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    for _ in range(3):
        await registry.get("default")
    assert store.reads == 0
    store.records["default"] = msgspec.structs.replace(
        store.records["default"], description="changed elsewhere", notification_version=1
    )
    clock.advance(timedelta(seconds=9))
    assert (await registry.get("default")).description == ""
    clock.advance(timedelta(seconds=1))
    assert registry.peek("default") is None
    assert registry.last_known("default") is not None
    assert (await registry.get("default")).description == "changed elsewhere"
    assert store.reads == 1


async def test_lookups_at_the_same_time_share_one_read(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    clock.advance(timedelta(minutes=1))
    first, *others = [asyncio.ensure_future(registry.get("default")) for _ in range(5)]
    asyncio.get_running_loop().call_soon(first.cancel)
    assert {r.name for r in await asyncio.gather(*others)} == {"default"}
    assert store.reads == 1


async def test_a_namespace_registered_elsewhere_is_found_at_once(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    with pytest.raises(NamespaceNotFound):
        await registry.get("n")
    await store.create(record("n", clock))
    assert (await registry.get("n")).namespace_id == "id-n"
    assert (await registry.get_by_id("id-n")).name == "n"


async def test_an_id_is_found_in_the_store_and_then_in_memory(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    await store.create(record("n", clock))
    assert (await registry.get_by_id("id-n")).name == "n"
    store.error = Unavailable("away")
    assert (await registry.get_by_id("id-n")).name == "n"
    store.error = None
    with pytest.raises(NamespaceNotFound, match="Namespace id-x is not found"):
        await registry.get_by_id("id-x")


async def test_two_registrations_of_a_name(registry: NamespaceRegistry, clock: ManualClock) -> None:
    await registry.create(record("n", clock))
    with pytest.raises(NamespaceAlreadyExists, match='Namespace "n" already exists'):
        await registry.create(record("n", clock))


async def test_a_change_is_seen_at_once_and_counted(registry: NamespaceRegistry, store: MemoryNamespaceStore) -> None:
    changed = await registry.update("default", lambda r: msgspec.structs.replace(r, description="d"))
    assert changed.notification_version == 1
    assert (await registry.get("default")).description == "d"
    assert store.records["default"] == changed
    assert await registry.update("default", lambda r: r) == changed


async def test_a_change_that_meets_another_is_made_on_top_of_it(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    other = NamespaceRegistry(store=store, clock=clock)
    await asyncio.gather(
        registry.update("default", lambda r: msgspec.structs.replace(r, description="d")),
        other.update("default", lambda r: msgspec.structs.replace(r, owner_email="e")),
    )
    stored = store.records["default"]
    assert (stored.description, stored.owner_email, stored.notification_version) == ("d", "e", 2)


async def test_a_refused_change_changes_nothing(registry: NamespaceRegistry, store: MemoryNamespaceStore) -> None:
    def refuse(_: NamespaceRecord) -> NamespaceRecord:
        raise InvalidArgument("no")

    before = store.records["default"]
    with pytest.raises(InvalidArgument):
        await registry.update("default", refuse)
    assert store.records["default"] == before


async def test_deleted_means_not_found_and_removed_means_free(registry: NamespaceRegistry, clock: ManualClock) -> None:
    await registry.create(record("n", clock))
    await registry.mark_deleted("n")
    for lookup in (registry.get("n"), registry.read("n"), registry.get_by_id("id-n")):
        with pytest.raises(NamespaceNotFound):
            await lookup
    assert await registry.pending_removal("n")
    assert [r.name for r in await registry.list()] == ["default", "temporal-system"]
    assert len(await registry.list(include_deleted=True)) == 3
    with pytest.raises(NamespaceAlreadyExists):
        await registry.create(record("n", clock))
    await registry.remove("n")
    assert not await registry.pending_removal("n")
    await registry.create(record("n", clock))


async def test_a_list_skips_deleted_ones_and_stays_full(registry: NamespaceRegistry, clock: ManualClock) -> None:
    for name in ("a", "b", "c"):
        await registry.create(record(name, clock))
    await registry.mark_deleted("a")
    assert [r.name for r in await registry.list(limit=2)] == ["b", "c"]
    assert [r.name for r in await registry.list(after="c", limit=2)] == ["default", "temporal-system"]


async def test_a_late_read_does_not_undo_a_change(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    old = store.records["default"]
    await registry.deprecate("default")
    store.records["default"] = old
    clock.advance(timedelta(minutes=1))
    await registry.read("default")
    assert registry.last_known("default").state == DEPRECATED  # type: ignore[union-attr]


async def test_a_late_removal_does_not_take_a_new_namespace_away(
    registry: NamespaceRegistry, store: MemoryNamespaceStore, clock: ManualClock
) -> None:
    other = NamespaceRegistry(store=store, clock=clock)
    await registry.create(record("n", clock))
    await registry.mark_deleted("n")
    await asyncio.gather(registry.remove("n"), other.remove("n"))
    await registry.create(record("n", clock))
    await other.remove("n")
    assert (await registry.get("n")).name == "n"


async def test_removals_that_are_pending(registry: NamespaceRegistry, clock: ManualClock) -> None:
    for name in ("a", "b"):
        await registry.create(record(name, clock))
    await registry.mark_deleted("b")
    assert await registry.pending_removals() == ["b"]
