"""Worker deployments as rows: each change of one, then of the user data of the queues concerned."""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar

from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.errors import NotFound, TemporalError
from matching.config import MatchingConfig
from matching.deployments import changes
from matching.deployments.changes import Unchanged
from matching.deployments.messages import KIND_TYPES, queues_of
from matching.deployments.records import AUTO_CREATED, DeploymentRecord, is_draining, split_version
from matching.deployments.store import DeploymentConflict, DeploymentStore
from matching.deployments.sync import queue_change
from matching.records import Family
from matching.user_data import Change

log = logging.getLogger(__name__)

T = TypeVar("T")
ATTEMPTS = 10


class Queues(Protocol):
    """What the deployments need of the queues; the Matching service itself."""

    async def update_user_data(self, *, namespace: str, task_queue: str, change: Change) -> Any: ...

    async def describe_task_queue(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse: ...


class DeploymentRows:
    def __init__(self, *, store: DeploymentStore, queues: Queues, clock: Clock, config: MatchingConfig) -> None:
        self.store = store
        self._queues = queues
        self._clock = clock
        self._config = config

    # changing a row

    async def load(self, *, namespace: str, name: str) -> DeploymentRecord:
        record = await self.store.get(namespace=namespace, name=name)
        if record is None:
            raise NotFound(f"no Worker Deployment found with name '{name}'; does your Worker Deployment have pollers?")
        return record

    async def change(
        self,
        *,
        namespace: str,
        name: str,
        change: Callable[[DeploymentRecord], T],
        create: str | None = None,
        before: Callable[[DeploymentRecord], Awaitable[None]] | None = None,
    ) -> tuple[DeploymentRecord, T]:
        """Apply `change` to a copy of the row and write it if nobody came between; then the queues follow. `create`: the
        request id of one that is made if there is none. `before` may look at other things first. Raises NotFound, and what
        the two raise."""
        for attempt in range(ATTEMPTS):
            present = await self.store.get(namespace=namespace, name=name)
            record = copy.deepcopy(present) if present is not None else await self._new(namespace, name, create)
            if before is not None:
                await before(record)
            result = change(record)
            expected = present.version if present is not None else 0
            record.version = expected + 1
            if not record.queues:
                record.synced_version = record.version
            try:
                await self._save(record, expected)
            except DeploymentConflict:
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            return await self.sync(record), result
        raise AssertionError("unreachable")

    async def _new(self, namespace: str, name: str, create: str | None) -> DeploymentRecord:
        if create is None:
            return await self.load(namespace=namespace, name=name)
        limit = self._config.deployments_of_namespace
        if await self.store.count(namespace=namespace) >= limit:
            raise changes.over_limit(f"reached maximum deployments in namespace ({limit})")
        return DeploymentRecord(namespace=namespace, name=name, created_at=self._clock.now(), create_request_id=create)

    async def _save(self, record: DeploymentRecord, expected: int) -> None:
        look_at = record.next_look(grace=self._config.drainage_grace, refresh=self._config.drainage_refresh)
        await self.store.save(record, look_at=look_at, expected_version=expected)

    async def sync(self, record: DeploymentRecord) -> DeploymentRecord:
        """Bring the user data of its queues up to the row, and say so in the row. What fails is left to the worker role."""
        if record.synced_version >= record.version:
            return record
        try:
            for queue in record.queues:
                await self._queues.update_user_data(
                    namespace=record.namespace, task_queue=queue, change=queue_change(record, queue)
                )
            done = copy.deepcopy(record)
            done.version = done.synced_version = record.version + 1
            done.left_queues = []
            await self._save(done, record.version)
        except TemporalError as error:
            log.info("the queues of worker deployment %s follow later: %s", record.name, error)
            return record
        return done

    # what polls bring

    async def register(
        self, *, namespace: str, version: WorkerDeploymentVersion, task_queue: str, kind: Family
    ) -> None:
        """A worker of the version polls the queue. Raises ResourceExhausted."""
        name, build_id = version.deployment_name, version.build_id
        create = f"{AUTO_CREATED}{build_id}-{task_queue}-{kind}"

        def change(record: DeploymentRecord) -> None:
            changes.register_worker(
                record, build_id, task_queue=task_queue, kind=kind, now=self._clock.now(), config=self._config
            )

        async def make_room(record: DeploymentRecord) -> None:
            if build_id not in record.versions:
                await self.make_room(record)

        try:
            await self.change(namespace=namespace, name=name, change=change, create=create, before=make_room)
        except Unchanged:
            # The row knows of it; its queue's user data may not yet.
            await self.sync(_unsynced(await self.load(namespace=namespace, name=name)))

    async def make_room(self, record: DeploymentRecord) -> None:
        """At the limit the oldest version that nobody needs goes. Source: upstream's tryDeleteVersion."""
        if len(record.versions) < self._config.versions_of_deployment:
            return
        for build_id in sorted(record.versions, key=lambda build_id: record.versions[build_id].created_at):
            if changes.removable(record, build_id) and not await self.has_pollers(record, build_id):
                changes.delete_version(record, build_id, identity=None)
                return

    async def has_pollers(self, record: DeploymentRecord, build_id: str) -> bool:
        for queue, kind in queues_of(record.versions[build_id]):
            described = await self.describe_part(record, build_id, queue, kind)
            if described.pollers:
                return True
        return False

    async def describe_part(
        self, record: DeploymentRecord, build_id: str, queue: str, kind: Family
    ) -> ws.DescribeTaskQueueResponse:
        """Pollers and statistics of a version's part of a queue."""
        request = ws.DescribeTaskQueueRequest(namespace=record.namespace, task_queue_type=KIND_TYPES[kind])
        request.task_queue.name = queue
        return await self._queues.describe_task_queue(request, version=f"{record.name}:{build_id}")

    async def reactivate(self, *, namespace: str, version: str) -> None:
        """A run is pinned to the version: one that was drained, or never used, drains anew."""
        named = split_version(version)
        present = await self.store.get(namespace=namespace, name=named.deployment_name)
        if present is None or not changes.may_reactivate(present, named.build_id):
            return

        def change(record: DeploymentRecord) -> None:
            if not changes.may_reactivate(record, named.build_id):
                raise Unchanged
            changes.reactivate(record.versions[named.build_id], now=self._clock.now())

        try:
            await self.change(namespace=namespace, name=named.deployment_name, change=change)
        except (Unchanged, NotFound):
            pass

    async def note_drainage(self, *, namespace: str, name: str, has_open: Mapping[str, bool]) -> None:
        """`has_open`: of some versions, whether runs pinned to them are open."""

        def change(record: DeploymentRecord) -> None:
            now = self._clock.now()
            for build_id, is_open in has_open.items():
                version = record.versions.get(build_id)
                if version is not None and is_draining(version):
                    changes.note_drainage(version, has_open=is_open, now=now)

        try:
            await self.change(namespace=namespace, name=name, change=change)
        except NotFound:
            pass


def _unsynced(record: DeploymentRecord) -> DeploymentRecord:
    record.synced_version = 0
    return record
