"""The calls about worker deployments: each a change of one row, then of the user data of the queues concerned."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from temporalio.api.deployment.v1 import VersionMetadata, WorkerDeploymentVersion
from temporalio.api.workflowservice import v1 as ws

from common.clock import EPOCH, Clock
from common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, TemporalError
from matching.config import MatchingConfig
from matching.deployments import changes, routing_changes
from matching.deployments.changes import Unchanged
from matching.deployments.messages import (
    KIND_TYPES,
    current_of,
    deployment_info,
    deployment_summary,
    queues_of,
    ramping_of,
    version_info,
)
from matching.deployments.records import AUTO_CREATED, CREATED, DeploymentRecord, is_draining, older_text, split_version
from matching.deployments.store import DeploymentConflict, DeploymentStore
from matching.deployments.sync import queue_change
from matching.records import Family
from matching.user_data import Change

log = logging.getLogger(__name__)

T = TypeVar("T")
ATTEMPTS = 10
PAGE = 1_000


class Queues(Protocol):
    """What the deployments need of the queues; the Matching service itself."""

    async def update_user_data(self, *, namespace: str, task_queue: str, change: Change) -> Any: ...

    async def describe_task_queue(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse: ...


class Deployments:
    def __init__(self, *, store: DeploymentStore, queues: Queues, clock: Clock, config: MatchingConfig) -> None:
        self.store = store
        self._queues = queues
        self._clock = clock
        self._config = config
        self.changed: Callable[[], None] = _nothing
        """Called when the worker role may have something new to do."""

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
        if look_at is not None:
            self.changed()

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
                await self._make_room(record)

        try:
            await self.change(namespace=namespace, name=name, change=change, create=create, before=make_room)
        except Unchanged:
            # The row knows of it; its queue's user data may not yet.
            await self.sync(_unsynced(await self.load(namespace=namespace, name=name)))

    async def _make_room(self, record: DeploymentRecord) -> None:
        """At the limit the oldest version that nobody needs goes. Source: upstream's tryDeleteVersion."""
        if len(record.versions) < self._config.versions_of_deployment:
            return
        for build_id in sorted(record.versions, key=lambda build_id: record.versions[build_id].created_at):
            if changes.removable(record, build_id) and not await self._has_pollers(record, build_id):
                changes.delete_version(record, build_id, identity=None)
                return

    async def _has_pollers(self, record: DeploymentRecord, build_id: str) -> bool:
        for queue, kind in queues_of(record.versions[build_id]):
            described = await self._describe(record, build_id, queue, kind)
            if described.pollers:
                return True
        return False

    async def _describe(
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

    async def look_at_drainage(self, record: DeploymentRecord, *, has_open: Mapping[str, bool]) -> None:
        """`has_open`: of some versions, whether runs pinned to them are open."""

        def change(record: DeploymentRecord) -> None:
            now = self._clock.now()
            for build_id, is_open in has_open.items():
                version = record.versions.get(build_id)
                if version is not None and is_draining(version):
                    changes.note_drainage(version, has_open=is_open, now=now)

        try:
            await self.change(namespace=record.namespace, name=record.name, change=change)
        except NotFound:
            pass

    # the API's calls

    async def create(self, request: ws.CreateWorkerDeploymentRequest) -> ws.CreateWorkerDeploymentResponse:
        present = await self.store.get(namespace=request.namespace, name=request.deployment_name)
        if present is None:
            present, _ = await self.change(
                namespace=request.namespace,
                name=request.deployment_name,
                change=lambda record: setattr(record, "last_modifier", request.identity),
                create=request.request_id,
            )
        elif present.create_request_id != request.request_id:
            note = " (auto-created from worker polls)" if present.create_request_id.startswith(AUTO_CREATED) else ""
            raise AlreadyExists(f'Worker Deployment with name "{request.deployment_name}" already exists{note}')
        return ws.CreateWorkerDeploymentResponse(conflict_token=present.conflict_token)

    async def create_version(
        self, request: ws.CreateWorkerDeploymentVersionRequest
    ) -> ws.CreateWorkerDeploymentVersionResponse:
        """Raises InvalidArgument for any compute provider: there is none here."""
        version = request.deployment_version

        def change(record: DeploymentRecord) -> None:
            existing = record.versions.get(version.build_id)
            if existing is not None and existing.create_request_id == request.request_id:
                raise Unchanged
            if existing is not None:
                text = older_text(record.name, version.build_id)
                raise AlreadyExists(f'Worker Deployment Version "{text}" already exists')
            for name, group in request.compute_config.scaling_groups.items():
                raise no_provider(name, group.provider.type)
            changes.add_version(
                record,
                version.build_id,
                now=self._clock.now(),
                config=self._config,
                status=CREATED,
                request_id=request.request_id,
            )

        try:
            await self.change(
                namespace=request.namespace, name=version.deployment_name, change=change, before=self._make_room
            )
        except Unchanged:
            pass
        return ws.CreateWorkerDeploymentVersionResponse()

    async def describe(self, request: ws.DescribeWorkerDeploymentRequest) -> ws.DescribeWorkerDeploymentResponse:
        record = await self.load(namespace=request.namespace, name=request.deployment_name)
        return ws.DescribeWorkerDeploymentResponse(
            conflict_token=record.conflict_token, worker_deployment_info=deployment_info(record)
        )

    async def describe_version(
        self, request: ws.DescribeWorkerDeploymentVersionRequest
    ) -> ws.DescribeWorkerDeploymentVersionResponse:
        version = request.deployment_version
        record = await self.store.get(namespace=request.namespace, name=version.deployment_name)
        if record is None or version.build_id not in record.versions:
            raise NotFound("Worker Deployment Version not found")
        answer = ws.DescribeWorkerDeploymentVersionResponse(
            worker_deployment_version_info=version_info(record, version.build_id)
        )
        for queue, kind in queues_of(record.versions[version.build_id]):
            part = answer.version_task_queues.add(name=queue, type=KIND_TYPES[kind])
            if request.report_task_queue_stats:
                described = await self._describe(record, version.build_id, queue, kind)
                part.stats.CopyFrom(described.stats)
                for priority, stats in described.stats_by_priority_key.items():
                    part.stats_by_priority_key[priority].CopyFrom(stats)
        return answer

    async def list(self, request: ws.ListWorkerDeploymentsRequest) -> ws.ListWorkerDeploymentsResponse:
        size = request.page_size if 0 < request.page_size <= PAGE else PAGE
        found = await self.store.page(
            namespace=request.namespace, after=_place(request.next_page_token), limit=size + 1
        )
        token = b""
        if len(found) > size:
            last = found[size - 1]
            microseconds = (last.created_at - EPOCH) // timedelta(microseconds=1)
            token = json.dumps([microseconds, last.name]).encode()
        return ws.ListWorkerDeploymentsResponse(
            worker_deployments=[deployment_summary(record) for record in found[:size]], next_page_token=token
        )

    async def set_current(
        self, request: ws.SetWorkerDeploymentCurrentVersionRequest
    ) -> ws.SetWorkerDeploymentCurrentVersionResponse:
        asked = _asked(request)
        answer = ws.SetWorkerDeploymentCurrentVersionResponse()

        def change(record: DeploymentRecord) -> None:
            _previous_current(answer, record)
            routing_changes.set_current(record, asked, now=self._clock.now(), config=self._config)

        async def check(record: DeploymentRecord) -> None:
            trial = copy.deepcopy(record)
            routing_changes.set_current(trial, asked, now=self._clock.now(), config=self._config)
            await self._check_queues(record, asked, asked.build_id, "current")

        try:
            record, _ = await self.change(
                namespace=request.namespace,
                name=request.deployment_name,
                change=change,
                create=self._create(asked),
                before=check,
            )
        except Unchanged:
            record = await self.load(namespace=request.namespace, name=request.deployment_name)
            _previous_current(answer, record)
        answer.conflict_token = record.conflict_token
        return answer

    async def set_ramping(
        self, request: ws.SetWorkerDeploymentRampingVersionRequest
    ) -> ws.SetWorkerDeploymentRampingVersionResponse:
        asked = _asked(request)
        to = _ramp_target(request)
        answer = ws.SetWorkerDeploymentRampingVersionResponse()
        given = {"to": to, "percentage": request.percentage, "now": self._clock.now(), "config": self._config}

        def change(record: DeploymentRecord) -> None:
            _previous_ramping(answer, record)
            routing_changes.set_ramping(record, asked, **given)  # type: ignore[arg-type]

        async def check(record: DeploymentRecord) -> None:
            trial = copy.deepcopy(record)
            routing_changes.set_ramping(trial, asked, **given)  # type: ignore[arg-type]
            if to and not routing_changes.is_ramping_to(record.routing, to):
                await self._check_queues(record, asked, to, "ramping")

        try:
            record, _ = await self.change(
                namespace=request.namespace,
                name=request.deployment_name,
                change=change,
                create=self._create(asked),
                before=check,
            )
        except Unchanged:
            record = await self.load(namespace=request.namespace, name=request.deployment_name)
            _previous_ramping(answer, record)
        answer.conflict_token = record.conflict_token
        return answer

    @staticmethod
    def _create(asked: routing_changes.Asked) -> str | None:
        """With allow_no_pollers the deployment need not be there."""
        return f"{AUTO_CREATED}{asked.build_id}" if asked.allow_no_pollers else None

    async def _check_queues(
        self, record: DeploymentRecord, asked: routing_changes.Asked, proposed: str, which: str
    ) -> None:
        """Raises FailedPrecondition when tasks of a queue that the proposed version does not poll would become unversioned."""
        now_current = record.routing.current_deployment_version.build_id
        if asked.ignore_missing or not now_current or not proposed or now_current == proposed:
            return
        for queue, kind in routing_changes.missing_queues(record, now_current=now_current, proposed=proposed):
            stats = (await self._describe(record, now_current, queue, kind)).stats
            if stats.tasks_add_rate or stats.approximate_backlog_count:
                raise FailedPrecondition(
                    f"proposed {which} version '{record.name}:{proposed}' is missing active task queues from the current "
                    "version; these would become unversioned if it is set as the "
                    f"{which} version"
                )

    async def set_manager(self, request: ws.SetWorkerDeploymentManagerRequest) -> ws.SetWorkerDeploymentManagerResponse:
        manager = request.identity if request.self else request.manager_identity
        try:
            record, previous = await self.change(
                namespace=request.namespace,
                name=request.deployment_name,
                change=lambda record: changes.set_manager(
                    record, manager=manager, identity=request.identity, token=request.conflict_token
                ),
            )
        except Unchanged:
            record, previous = await self.load(namespace=request.namespace, name=request.deployment_name), manager
        except NotFound as error:
            raise no_workflow(request.deployment_name) from error
        return ws.SetWorkerDeploymentManagerResponse(
            conflict_token=record.conflict_token, previous_manager_identity=previous
        )

    async def set_metadata(
        self, request: ws.UpdateWorkerDeploymentVersionMetadataRequest
    ) -> ws.UpdateWorkerDeploymentVersionMetadataResponse:
        version = request.deployment_version

        def change(record: DeploymentRecord) -> None:
            if version.build_id not in record.versions:
                raise no_version_workflow(version)
            changes.set_metadata(
                record.versions[version.build_id],
                upsert=request.upsert_entries,
                remove=request.remove_entries,
                identity=request.identity,
            )

        if await self.store.get(namespace=request.namespace, name=version.deployment_name) is None:
            raise no_version_workflow(version)
        record, _ = await self.change(namespace=request.namespace, name=version.deployment_name, change=change)
        return ws.UpdateWorkerDeploymentVersionMetadataResponse(
            metadata=VersionMetadata(entries=record.versions[version.build_id].metadata)
        )

    async def set_compute_config(
        self, request: ws.UpdateWorkerDeploymentVersionComputeConfigRequest
    ) -> ws.UpdateWorkerDeploymentVersionComputeConfigResponse:
        """There is nothing to remove, and no provider to add."""
        version = request.deployment_version
        record = await self.store.get(namespace=request.namespace, name=version.deployment_name)
        if record is None or version.build_id not in record.versions:
            raise NotFound(f"build ID '{version.build_id}' not found in Worker Deployment '{version.deployment_name}'")
        for name, update in request.compute_config_scaling_groups.items():
            raise no_provider(name, update.scaling_group.provider.type)
        return ws.UpdateWorkerDeploymentVersionComputeConfigResponse()

    async def delete_version(
        self, request: ws.DeleteWorkerDeploymentVersionRequest
    ) -> ws.DeleteWorkerDeploymentVersionResponse:
        version = request.deployment_version

        async def check(record: DeploymentRecord) -> None:
            changes.check_version_deletable(record, version.build_id, identity=request.identity)
            if not request.skip_drainage:
                changes.check_drained(record, version.build_id)
            if await self._has_pollers(record, version.build_id):
                raise FailedPrecondition(
                    f"version '{record.name}:{version.build_id}' cannot be deleted since it has active pollers"
                )

        if await self.store.get(namespace=request.namespace, name=version.deployment_name) is None:
            raise no_workflow(version.deployment_name)
        try:
            await self.change(
                namespace=request.namespace,
                name=version.deployment_name,
                change=lambda record: changes.delete_version(record, version.build_id, identity=request.identity),
                before=check,
            )
        except Unchanged:
            pass
        return ws.DeleteWorkerDeploymentVersionResponse()

    async def delete(self, request: ws.DeleteWorkerDeploymentRequest) -> ws.DeleteWorkerDeploymentResponse:
        for _ in range(ATTEMPTS):
            record = await self.store.get(namespace=request.namespace, name=request.deployment_name)
            if record is None:
                break
            changes.check_deletable(record)
            if await self.store.delete(await self.sync(record)):
                break
        return ws.DeleteWorkerDeploymentResponse()


def no_workflow(name: str) -> NotFound:
    """Upstream keeps a deployment as a workflow, and so names what is not there."""
    return NotFound(f"workflow not found for ID: temporal-sys-worker-deployment:{name}")


def no_version_workflow(version: WorkerDeploymentVersion) -> NotFound:
    return NotFound(
        f"workflow not found for ID: temporal-sys-worker-deployment-version:{version.deployment_name}:{version.build_id}"
    )


def no_provider(group: str, type_: str) -> InvalidArgument:
    return InvalidArgument(f"{group}: Could not instantiate compute provider with type '{type_}'")


def _asked(request: Any) -> routing_changes.Asked:
    return routing_changes.Asked(
        build_id=request.build_id,
        identity=request.identity,
        token=request.conflict_token,
        ignore_missing=request.ignore_missing_task_queues,
        allow_no_pollers=request.allow_no_pollers,
    )


def _ramp_target(request: ws.SetWorkerDeploymentRampingVersionRequest) -> str | None:
    """None ends the ramp: no build id and no percentage."""
    return None if not request.build_id and not request.percentage else request.build_id


def _previous_current(answer: ws.SetWorkerDeploymentCurrentVersionResponse, record: DeploymentRecord) -> None:
    answer.previous_version = record.routing.current_version
    answer.ClearField("previous_deployment_version")
    if (current := current_of(record.routing)) is not None:
        answer.previous_deployment_version.CopyFrom(current)


def _previous_ramping(answer: ws.SetWorkerDeploymentRampingVersionResponse, record: DeploymentRecord) -> None:
    answer.previous_version = record.routing.ramping_version
    answer.previous_percentage = record.routing.ramping_version_percentage
    answer.ClearField("previous_deployment_version")
    if (ramping := ramping_of(record.routing)) is not None:
        answer.previous_deployment_version.CopyFrom(ramping)


def _place(token: bytes) -> tuple[datetime, str] | None:
    if not token:
        return None
    try:
        microseconds, name = json.loads(token)
        return EPOCH + timedelta(microseconds=microseconds), str(name)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument("invalid next page token") from error


def _unsynced(record: DeploymentRecord) -> DeploymentRecord:
    record.synced_version = 0
    return record


def _nothing() -> None: ...
