"""The calls about worker deployments."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

from temporalio.api.deployment.v1 import RoutingConfig, VersionMetadata, WorkerDeploymentVersion
from temporalio.api.workflowservice import v1 as ws

from common.clock import EPOCH
from common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
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
from matching.deployments.records import AUTO_CREATED, CREATED, DeploymentRecord, older_text
from matching.deployments.rows import ATTEMPTS, DeploymentRows

PAGE = 1_000


class Deployments(DeploymentRows):
    """Each call as the API method of its name."""

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
                namespace=request.namespace, name=version.deployment_name, change=change, before=self.make_room
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
                described = await self.describe_part(record, version.build_id, queue, kind)
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

        def change(record: DeploymentRecord) -> None:
            routing_changes.set_current(record, asked, now=self._clock.now(), config=self._config)

        async def check(record: DeploymentRecord) -> None:
            await self._check_queues(record, asked, asked.build_id, "current")

        record, before = await self._route(request, asked, change=change, check=check)
        return ws.SetWorkerDeploymentCurrentVersionResponse(
            conflict_token=record.conflict_token,
            previous_version=before.current_version,
            previous_deployment_version=current_of(before),
        )

    async def set_ramping(
        self, request: ws.SetWorkerDeploymentRampingVersionRequest
    ) -> ws.SetWorkerDeploymentRampingVersionResponse:
        asked = _asked(request)
        # None ends the ramp: no build id and no percentage.
        to = None if not request.build_id and not request.percentage else request.build_id

        def change(record: DeploymentRecord) -> None:
            routing_changes.set_ramping(
                record, asked, to=to, percentage=request.percentage, now=self._clock.now(), config=self._config
            )

        async def check(record: DeploymentRecord) -> None:
            if to and not routing_changes.is_ramping_to(record.routing, to):
                await self._check_queues(record, asked, to, "ramping")

        record, before = await self._route(request, asked, change=change, check=check)
        return ws.SetWorkerDeploymentRampingVersionResponse(
            conflict_token=record.conflict_token,
            previous_version=before.ramping_version,
            previous_percentage=before.ramping_version_percentage,
            previous_deployment_version=ramping_of(before),
        )

    async def _route(
        self,
        request: ws.SetWorkerDeploymentCurrentVersionRequest | ws.SetWorkerDeploymentRampingVersionRequest,
        asked: routing_changes.Asked,
        *,
        change: Callable[[DeploymentRecord], None],
        check: Callable[[DeploymentRecord], Awaitable[None]],
    ) -> tuple[DeploymentRecord, RoutingConfig]:
        """The changed row, and the routing before. `check` may ask the queues, once `change` is known to be possible."""

        def routed(record: DeploymentRecord) -> RoutingConfig:
            before = record.routing
            change(record)
            return before

        async def possible(record: DeploymentRecord) -> None:
            change(copy.deepcopy(record))
            await check(record)

        namespace, name = request.namespace, request.deployment_name
        try:
            return await self.change(
                namespace=namespace, name=name, change=routed, create=self._create(asked), before=possible
            )
        except Unchanged:
            record = await self.load(namespace=namespace, name=name)
            return record, record.routing

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
            stats = (await self.describe_part(record, now_current, queue, kind)).stats
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
            if await self.has_pollers(record, version.build_id):
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


def _place(token: bytes) -> tuple[datetime, str] | None:
    if not token:
        return None
    try:
        microseconds, name = json.loads(token)
        return EPOCH + timedelta(microseconds=microseconds), str(name)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgument("invalid next page token") from error
