"""The namespaces of the cluster: cached lookups over the NamespaceStore, and every change made to one.

A lookup is answered from memory for `refresh`, then read again by whoever asks next, so that what another process
changed is seen within that time and an idle server reads nothing. An unknown name is always looked up in the store: a
namespace that was registered anywhere works at once.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from temporalio.api.enums.v1 import NamespaceState

from common.clock import Clock
from common.errors import ConditionFailed, InvalidArgument, NamespaceAlreadyExists, NamespaceNotFound
from common.service import Service
from history.records import NamespaceRecord

if TYPE_CHECKING:
    from history.store.base import NamespaceStore

REGISTERED = NamespaceState.NAMESPACE_STATE_REGISTERED
DEPRECATED = NamespaceState.NAMESPACE_STATE_DEPRECATED
DELETED = NamespaceState.NAMESPACE_STATE_DELETED

SYSTEM_NAMESPACE = "temporal-system"
SYSTEM_NAMESPACE_ID = "32049b68-7872-4094-8e63-d0dd59896a83"
"""Upstream's fixed id of it (common/primitives/constants.go)."""
DEFAULT_NAMESPACE = "default"

_CACHED = 10_000
_CHANGE_ATTEMPTS = 10
_PAGE = 1_000

Change = Callable[[NamespaceRecord], NamespaceRecord]


class NamespaceRegistry(Service):
    """All methods raise Unavailable when the store can't be reached. A deleted namespace counts as not found."""

    def __init__(
        self,
        *,
        store: NamespaceStore,
        clock: Clock,
        default_retention: timedelta = timedelta(days=1),
        refresh: timedelta = timedelta(seconds=10),
    ) -> None:
        super().__init__(name="namespaces")
        self._store = store
        self._clock = clock
        self._default_retention = default_retention
        self._refresh = refresh
        # Both least recently read first, at most _CACHED entries: name → (record, when to read it again); id → name.
        self._records: OrderedDict[str, tuple[NamespaceRecord, datetime]] = OrderedDict()
        self._names: OrderedDict[str, str] = OrderedDict()
        self._reads: dict[str, asyncio.Task[NamespaceRecord | None]] = {}

    async def start(self) -> None:
        """Creates the namespaces that every cluster has, `default` and `temporal-system`, unless they exist."""
        now = self._clock.now()
        await self._ensure(
            NamespaceRecord(
                name=DEFAULT_NAMESPACE,
                namespace_id=str(uuid4()),
                retention=self._default_retention,
                created_at=now,
            )
        )
        await self._ensure(
            NamespaceRecord(
                name=SYSTEM_NAMESPACE,
                namespace_id=SYSTEM_NAMESPACE_ID,
                retention=timedelta(days=7),
                description="Temporal internal system namespace",
                owner_email="temporal-core@temporal.io",
                created_at=now,
            )
        )

    async def stop(self) -> None:
        """Nothing runs on."""

    # Lookups

    def peek(self, name: str) -> NamespaceRecord | None:
        """What is in memory and fresh, without waiting; None says nothing about whether the namespace exists."""
        entry = self._records.get(name)
        if entry is None or entry[1] <= self._clock.now():
            return None
        return entry[0]

    def last_known(self, name: str) -> NamespaceRecord | None:
        """What was read last, for callers that can't wait (transitions); what has grown old is read again behind them."""
        entry = self._records.get(name)
        if entry is None:
            return None
        if entry[1] <= self._clock.now():
            self._reading(name).add_done_callback(_outcome_is_seen)
        return entry[0]

    async def get(self, name: str) -> NamespaceRecord:
        """Raises NamespaceNotFound."""
        record = self.peek(name)
        if record is None:
            record = await self._read(name)
        if record is None or record.state == DELETED:
            raise NamespaceNotFound(name)
        return record

    async def get_by_id(self, namespace_id: str) -> NamespaceRecord:
        """Raises NamespaceNotFound naming the id."""
        name = self._names.get(namespace_id)
        if name is not None:
            record = self.peek(name) or await self._read(name)
        else:
            record = await self._store.get_by_id(namespace_id)
            if record is not None:
                self._remember(record)
        if record is None or record.namespace_id != namespace_id or record.state == DELETED:
            raise NamespaceNotFound(namespace_id)
        return record

    async def read(self, name: str) -> NamespaceRecord:
        """As `get`, but from the store."""
        record = await self._read(name)
        if record is None or record.state == DELETED:
            raise NamespaceNotFound(name)
        return record

    async def list(self, *, after: str = "", limit: int = 100, include_deleted: bool = False) -> list[NamespaceRecord]:
        """In order of name, above `after`; fewer than `limit` only at the end."""
        found: list[NamespaceRecord] = []
        while len(found) < limit:
            wanted = limit - len(found)
            page = await self._store.list(after=after, limit=wanted)
            found += [record for record in page if include_deleted or record.state != DELETED]
            if len(page) < wanted:
                break
            after = page[-1].name
        return found

    # Changes

    async def create(self, record: NamespaceRecord) -> None:
        """Raises NamespaceAlreadyExists, also for one whose deletion has not come to its end."""
        if await self._store.get(record.name) is not None:
            raise NamespaceAlreadyExists(f'Namespace "{record.name}" already exists')
        try:
            await self._store.create(record)
        except NamespaceAlreadyExists:
            raise NamespaceAlreadyExists(f'Namespace "{record.name}" already exists') from None
        self._remember(record)

    async def update(self, name: str, change: Change) -> NamespaceRecord:
        """Applies `change` to the stored record, again when another process came first; answers the new record.

        `change` may raise; nothing is changed then. A record that it gives back unchanged is not written.
        Raises NamespaceNotFound.
        """
        for _ in range(_CHANGE_ATTEMPTS):
            before = await self.read(name)
            after = change(before)
            if after == before:
                return before
            after = msgspec.structs.replace(after, notification_version=before.notification_version + 1)
            try:
                await self._store.update(after, expected_version=before.notification_version)
            except ConditionFailed:
                continue
            self._remember(after)
            return after
        raise InvalidArgument(f"Namespace {name} is being changed by others; try again.")

    async def deprecate(self, name: str) -> NamespaceRecord:
        """No new executions; those that run go on. Raises NamespaceNotFound."""
        return await self.update(name, lambda record: msgspec.structs.replace(record, state=DEPRECATED))

    async def mark_deleted(self, name: str) -> NamespaceRecord:
        """From now on the namespace is not found; its name becomes free once `remove` is called."""
        return await self.update(name, lambda record: msgspec.structs.replace(record, state=DELETED))

    async def pending_removal(self, name: str) -> bool:
        """Whether the name belongs to a namespace that was deleted but not yet removed."""
        record = await self._store.get(name)
        return record is not None and record.state == DELETED

    async def remove(self, name: str) -> None:
        """Forgets a deleted namespace for good, once nothing of it is left elsewhere; nothing when it is not deleted.

        Of several that do this at the same time one does it: the name may be given anew the moment it is free, and a
        late removal must not take the new namespace away.
        """
        record = await self._store.get(name)
        if record is None or record.state != DELETED:
            return
        mine = msgspec.structs.replace(record, notification_version=record.notification_version + 1)
        try:
            await self._store.update(mine, expected_version=record.notification_version)
        except ConditionFailed:
            return
        await self._store.delete(name)
        self._forget(name)

    async def pending_removals(self) -> Sequence[str]:
        """Names of namespaces that were deleted but not yet removed."""
        found = []
        after = ""
        while page := await self._store.list(after=after, limit=_PAGE):
            found += [record.name for record in page if record.state == DELETED]
            after = page[-1].name
        return found

    async def _ensure(self, record: NamespaceRecord) -> None:
        if await self._store.get(record.name) is None:
            try:
                await self._store.create(record)
            except NamespaceAlreadyExists:
                pass  # another process of the cluster starts at the same time
        await self._read(record.name)

    # The cache

    async def _read(self, name: str) -> NamespaceRecord | None:
        """From the store; callers that ask for the same name at the same time share one read."""
        # shield: a caller that goes away must not take the answer from the others
        return await asyncio.shield(self._reading(name))

    def _reading(self, name: str) -> asyncio.Task[NamespaceRecord | None]:
        task = self._reads.get(name)
        if task is None:
            task = self._reads[name] = asyncio.create_task(self._read_now(name), name=f"namespace {name}")
            task.add_done_callback(lambda _: self._reads.pop(name, None))
        return task

    async def _read_now(self, name: str) -> NamespaceRecord | None:
        record = await self._store.get(name)
        if record is None:
            self._forget(name)
        else:
            self._remember(record)
        return record

    def _remember(self, record: NamespaceRecord) -> None:
        known = self._records.get(record.name)
        if known is not None and _is_older(record, known[0]):
            return
        self._records[record.name] = (record, self._clock.now() + self._refresh)
        self._records.move_to_end(record.name)
        self._names[record.namespace_id] = record.name
        self._names.move_to_end(record.namespace_id)
        for cache in (self._records, self._names):
            if len(cache) > _CACHED:
                cache.popitem(last=False)

    def _forget(self, name: str) -> None:
        entry = self._records.pop(name, None)
        if entry is not None:
            self._names.pop(entry[0].namespace_id, None)


def _outcome_is_seen(task: asyncio.Task[NamespaceRecord | None]) -> None:
    """Nobody waits for it: a store that is away is no news here, whoever needs the record next is told."""
    if not task.cancelled():
        task.exception()


def _is_older(record: NamespaceRecord, known: NamespaceRecord) -> bool:
    """A read that began before a change of ours must not undo it in memory."""
    return record.namespace_id == known.namespace_id and record.notification_version < known.notification_version
