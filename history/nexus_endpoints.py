"""The Nexus endpoints of the cluster: cached lookups over the NexusEndpointStore, and every change made to one.

As with namespaces (`history.namespaces`), a lookup is answered from memory for `refresh` and then read again, so that what
another process changed is seen within that time; a name that is not known is always looked up in the store.
Source of the rules and their words: upstream's service/matching/nexus_endpoint_client.go.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
from temporalio.api.nexus.v1 import EndpointSpec

from common.clock import Clock
from common.errors import AlreadyExists, ConditionFailed, FailedPrecondition, NotFound
from history.records import NexusEndpointRecord

if TYPE_CHECKING:
    from history.store.base import NexusEndpointStore

_CACHED = 10_000
_PAGE = 1_000


class NexusEndpoints:
    """All methods raise Unavailable when the store can't be reached."""

    def __init__(self, *, store: NexusEndpointStore, clock: Clock, refresh: timedelta = timedelta(seconds=10)) -> None:
        self._store = store
        self._clock = clock
        self._refresh = refresh
        self._by_name: OrderedDict[str, tuple[NexusEndpointRecord, datetime]] = OrderedDict()
        """Name → (record, when to read it again); the least recently read first."""
        self._by_id: dict[str, NexusEndpointRecord] = {}

    # Lookups

    async def by_name(self, name: str) -> NexusEndpointRecord:
        """Raises NotFound."""
        known = self._by_name.get(name)
        if known is not None and self._clock.now() < known[1]:
            return known[0]
        record = await self._store.get_by_name(name)
        if record is None:
            if known is not None:
                self._forget(known[0])
            raise NotFound(f'could not find Nexus endpoint by name: "{name}"')
        self._remember(record)
        return record

    async def by_id(self, endpoint_id: str) -> NexusEndpointRecord:
        """Raises NotFound."""
        known = self._by_id.get(endpoint_id)
        if known is not None:
            _, until = self._by_name[known.spec.name]
            if self._clock.now() < until:
                return known
        return await self.read(endpoint_id)

    async def read(self, endpoint_id: str) -> NexusEndpointRecord:
        """As `by_id`, but from the store."""
        record = await self._store.get(endpoint_id)
        known = self._by_id.get(endpoint_id)
        if known is not None and (record is None or record.spec.name != known.spec.name):
            self._forget(known)
        if record is None:
            raise NotFound(f'could not find Nexus endpoint by ID: "{endpoint_id}"')
        self._remember(record)
        return record

    async def list(self, *, first: str, limit: int) -> list[NexusEndpointRecord]:
        """In order of id, from `first` on, from the store."""
        return await self._store.list(first=first, limit=limit)

    async def find(self, name: str) -> NexusEndpointRecord | None:
        """The endpoint of that name, from the store."""
        return await self._store.get_by_name(name)

    async def targeting(self, namespace: str) -> NexusEndpointRecord | None:
        """Any endpoint whose calls go to that namespace."""
        first = ""
        while page := await self._store.list(first=first, limit=_PAGE):
            for record in page:
                if record.spec.target.worker.namespace == namespace:
                    return record
            first = page[-1].endpoint_id + "\0"
        return None

    # Changes

    async def create(self, spec: EndpointSpec) -> NexusEndpointRecord:
        """Raises AlreadyExists for a name that is taken."""
        record = NexusEndpointRecord(endpoint_id=str(uuid4()), spec=spec, created_at=self._clock.now())
        if await self._store.get_by_name(spec.name) is not None:
            raise _taken("creating", spec.name)
        try:
            await self._store.create(record)
        except ConditionFailed:
            raise _taken("creating", spec.name) from None
        self._remember(record)
        return record

    async def update(self, endpoint_id: str, *, version: int, spec: EndpointSpec) -> NexusEndpointRecord:
        """Raises NotFound, FailedPrecondition when `version` is not the present one, AlreadyExists for a name of another."""
        before = await self._store.get(endpoint_id)
        if before is None:
            raise NotFound(f"error updating Nexus endpoint. endpoint ID {endpoint_id} not found")
        if before.version != version:
            raise _mismatch(version, before.version)
        other = await self._store.get_by_name(spec.name)
        if other is not None and other.endpoint_id != endpoint_id:
            raise _taken("updating", spec.name)
        after = msgspec.structs.replace(before, version=version + 1, spec=spec, modified_at=self._clock.now())
        try:
            await self._store.update(after, expected_version=version)
        except ConditionFailed:
            raise _mismatch(version, version + 1) from None
        self._forget(before)
        self._remember(after)
        return after

    async def delete(self, endpoint_id: str) -> None:
        """Raises NotFound."""
        record = await self._store.get(endpoint_id)
        if record is None:
            raise NotFound(f"error deleting nexus endpoint with ID: {endpoint_id}")
        await self._store.delete(endpoint_id)
        self._forget(record)

    # The cache

    def _remember(self, record: NexusEndpointRecord) -> None:
        name = record.spec.name
        before = self._by_name.get(name)
        if before is not None and before[0].endpoint_id != record.endpoint_id:
            self._forget(before[0])
        self._by_name[name] = (record, self._clock.now() + self._refresh)
        self._by_name.move_to_end(name)
        self._by_id[record.endpoint_id] = record
        if len(self._by_name) > _CACHED:
            _, (oldest, _) = next(iter(self._by_name.items()))
            self._forget(oldest)

    def _forget(self, record: NexusEndpointRecord) -> None:
        self._by_name.pop(record.spec.name, None)
        self._by_id.pop(record.endpoint_id, None)


def _taken(doing: str, name: str) -> AlreadyExists:
    return AlreadyExists(f"error {doing} Nexus endpoint. Endpoint with name {name} already registered")


def _mismatch(received: int, expected: int) -> FailedPrecondition:
    return FailedPrecondition(f"nexus endpoint version mismatch. received: {received} expected {expected}")
