"""The calls about the older build-id versioning of a queue family: sets (`version_sets`) and rules (`versioning_rules`).

Both are part of the family's user data, so they change under its compare-and-set, at the root's host, and are in force at
the other hosts when the call returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec
from temporalio.api.taskqueue.v1 import CompatibleVersionSet
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.contracts.build_ids import BuildIds
from common.contracts.matching import QueueType
from common.errors import FailedPrecondition
from matching.build_id_routing import queue_of_build
from matching.records import UserData
from matching.user_data import Change, UserDataManager
from matching.version_sets import changed_sets, find_build
from matching.versioning_rules import changed_rules, rules_response

QUEUES_OF_BUILD_LIMIT = 20
"""Families that may have the same build in a set. Source: upstream's limit.taskQueuesPerBuildId."""


class BuildIdCalls(ABC):
    """What `MatchingService` answers of it."""

    _user_data: UserDataManager
    _clock: Clock

    @abstractmethod
    async def update_user_data(self, *, namespace: str, task_queue: str, change: Change) -> UserData: ...

    @abstractmethod
    async def has_recent_poller(
        self, *, namespace: str, task_queue: str, kind: QueueType, version: str = ""
    ) -> bool: ...

    async def build_ids(self, *, namespace: str, task_queue: str) -> BuildIds:
        data = await self._user_data.load(namespace=namespace, task_queue=task_queue)
        return data.build_ids or BuildIds()

    async def queues_of_build(self, *, namespace: str, build_id: str) -> list[str]:
        """The families that have the build in a set; reads all user data of the namespace."""
        return await self._user_data.queues_of_build(namespace=namespace, build_id=build_id)

    async def update_worker_build_id_compatibility(
        self, request: ws.UpdateWorkerBuildIdCompatibilityRequest
    ) -> ws.UpdateWorkerBuildIdCompatibilityResponse:
        now = self._clock.now()

        def change(present: UserData) -> UserData:
            return msgspec.structs.replace(
                present, build_ids=changed_sets(present.build_ids or BuildIds(), request, now=now)
            )

        await self._check_queues_of_new_build(request)
        await self.update_user_data(namespace=request.namespace, task_queue=request.task_queue, change=change)
        return ws.UpdateWorkerBuildIdCompatibilityResponse()

    async def _check_queues_of_new_build(self, request: ws.UpdateWorkerBuildIdCompatibilityRequest) -> None:
        build_id = request.add_new_build_id_in_new_default_set or request.add_new_compatible_build_id.new_build_id
        present = await self.build_ids(namespace=request.namespace, task_queue=request.task_queue)
        if not build_id or find_build(present.sets, build_id) is not None:
            return
        queues = await self.queues_of_build(namespace=request.namespace, build_id=build_id)
        if len(queues) >= QUEUES_OF_BUILD_LIMIT:
            # What is wrong with the request itself comes first.
            changed_sets(present, request, now=self._clock.now())
            raise FailedPrecondition(
                f"Exceeded max task queues allowed to be mapped to a single build ID: {QUEUES_OF_BUILD_LIMIT}"
            )

    async def get_worker_build_id_compatibility(
        self, request: ws.GetWorkerBuildIdCompatibilityRequest
    ) -> ws.GetWorkerBuildIdCompatibilityResponse:
        """The sets, the default one last; at most the last `max_sets`."""
        data = await self.build_ids(namespace=request.namespace, task_queue=request.task_queue)
        sets = data.sets[-request.max_sets :] if request.max_sets > 0 else data.sets
        return ws.GetWorkerBuildIdCompatibilityResponse(
            major_version_sets=[
                CompatibleVersionSet(build_ids=[build.id for build in version_set.builds]) for version_set in sets
            ]
        )

    async def update_worker_versioning_rules(
        self, request: ws.UpdateWorkerVersioningRulesRequest
    ) -> ws.UpdateWorkerVersioningRulesResponse:
        """Raises FailedPrecondition for a conflict token that is not the present one's."""
        now = self._clock.now()
        has_recent_poller = await self._has_poller_to_commit(request)

        def change(present: UserData) -> UserData:
            changed = changed_rules(
                present.build_ids or BuildIds(), request, now=now, has_recent_poller=has_recent_poller
            )
            return msgspec.structs.replace(present, build_ids=changed)

        data = await self.update_user_data(namespace=request.namespace, task_queue=request.task_queue, change=change)
        assert data.build_ids is not None
        return rules_response(data.build_ids, ws.UpdateWorkerVersioningRulesResponse)

    async def _has_poller_to_commit(self, request: ws.UpdateWorkerVersioningRulesRequest) -> bool:
        if request.WhichOneof("operation") != "commit_build_id" or request.commit_build_id.force:
            return False
        build_id = request.commit_build_id.target_build_id
        return await self.has_recent_poller(
            namespace=request.namespace,
            task_queue=request.task_queue,
            kind="workflow",
            version=queue_of_build(build_id),
        )

    async def get_worker_versioning_rules(
        self, request: ws.GetWorkerVersioningRulesRequest
    ) -> ws.GetWorkerVersioningRulesResponse:
        data = await self.build_ids(namespace=request.namespace, task_queue=request.task_queue)
        return rules_response(data, ws.GetWorkerVersioningRulesResponse)
