"""A queue family's user data: read through, changed under compare-and-set.

A change is a function from the present data to the new; it runs again when another writer came first. No range protects
user data, its own version does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import ConfigMetadata, RateLimitConfig, TaskQueueConfig
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.errors import InvalidArgument
from common.protos import timestamp
from matching.config import MatchingConfig
from matching.records import UserData
from matching.store.base import UserDataConflict, UserDataStore
from matching.version_sets import find_build

Change = Callable[[UserData], UserData]

ATTEMPTS = 10
PAGE = 100


class UserDataManager:
    def __init__(self, *, store: UserDataStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def load(self, *, namespace: str, task_queue: str) -> UserData:
        """Version 0 when nothing was ever set."""
        found = await self._store.load_user_data(namespace=namespace, task_queue=task_queue)
        return found or UserData(namespace=namespace, task_queue=task_queue, updated_at=self._clock.now())

    async def update(self, *, namespace: str, task_queue: str, change: Change) -> UserData:
        """The data as stored. Raises what `change` raises, and UserDataConflict when others always come first."""
        for attempt in range(ATTEMPTS):
            present = await self.load(namespace=namespace, task_queue=task_queue)
            changed = msgspec.structs.replace(
                change(present), version=present.version + 1, updated_at=self._clock.now()
            )
            try:
                await self._store.save_user_data(changed, expected_version=present.version)
            except UserDataConflict:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                return changed
        raise AssertionError("unreachable")

    async def queues_of_build(self, *, namespace: str, build_id: str) -> list[str]:
        """The families that have the build in a version set, by name. Reads all that was ever set in the namespace, page by
        page."""
        found: list[str] = []
        after = ""
        while True:
            page = await self._store.list_user_data(after=(namespace, after), limit=PAGE)
            for data in page:
                if data.namespace != namespace:
                    return found
                if data.build_ids is not None and find_build(data.build_ids.sets, build_id) is not None:
                    found.append(data.task_queue)
            if len(page) < PAGE:
                return found
            after = page[-1].task_queue

    async def forget(self, *, namespace: str) -> None:
        """What was ever set for the queues of a namespace."""
        await self._store.delete_namespace(namespace=namespace)


def check_config(request: ws.UpdateTaskQueueConfigRequest) -> None:
    """Raises InvalidArgument. Source: upstream's frontend."""
    if request.task_queue_type != TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW:
        return
    if request.update_queue_rate_limit.HasField("rate_limit"):
        raise InvalidArgument("Setting rate limit on workflow task queues is not allowed.")
    if request.update_fairness_key_rate_limit_default.HasField("rate_limit"):
        raise InvalidArgument("Setting fairness key rate limit on workflow task queues is not allowed.")


def with_config(
    request: ws.UpdateTaskQueueConfigRequest, *, kind: str, now: datetime, config: MatchingConfig
) -> Change:
    """The change that UpdateTaskQueueConfig makes. Raises InvalidArgument when there would be too many weights."""

    def change(present: UserData) -> UserData:
        settings = TaskQueueConfig()
        settings.CopyFrom(present.configs.get(kind, TaskQueueConfig()))
        if request.HasField("update_queue_rate_limit"):
            settings.queue_rate_limit.CopyFrom(
                _rate_limit(request.update_queue_rate_limit, identity=request.identity, now=now)
            )
        if request.HasField("update_fairness_key_rate_limit_default"):
            settings.fairness_keys_rate_limit_default.CopyFrom(
                _rate_limit(request.update_fairness_key_rate_limit_default, identity=request.identity, now=now)
            )
        _apply_weights(settings, request, limit=config.fairness_weights_limit)
        return msgspec.structs.replace(present, configs=present.configs | {kind: settings})

    return change


def _rate_limit(
    update: ws.UpdateTaskQueueConfigRequest.RateLimitUpdate, *, identity: str, now: datetime
) -> RateLimitConfig:
    metadata = ConfigMetadata(reason=update.reason, update_identity=identity, update_time=timestamp(now))
    return RateLimitConfig(rate_limit=update.rate_limit if update.HasField("rate_limit") else None, metadata=metadata)


def _apply_weights(settings: TaskQueueConfig, request: ws.UpdateTaskQueueConfigRequest, *, limit: int) -> None:
    for key in request.unset_fairness_weight_overrides:
        settings.fairness_weight_overrides.pop(key, None)
    for key, weight in request.set_fairness_weight_overrides.items():
        settings.fairness_weight_overrides[key] = weight
    if len(settings.fairness_weight_overrides) > limit:
        raise InvalidArgument("fairness weight overrides update rejected: exceeding maximum key size")
