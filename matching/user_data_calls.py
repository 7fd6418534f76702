"""The calls that read and change a queue family's user data, in force at every host that has a queue of the family."""

from __future__ import annotations

import logging

from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.errors import InvalidArgument, TemporalError
from matching.config import MatchingConfig
from matching.describe import KINDS
from matching.names import parse_partition
from matching.other_hosts import OtherHosts
from matching.placement import Placement
from matching.records import UserData
from matching.task_queues import TaskQueues
from matching.user_data import Change, UserDataManager, check_config, with_config

log = logging.getLogger(__name__)


class UserDataCalls:
    """What `MatchingService` answers of it."""

    queues: TaskQueues
    others: OtherHosts
    _user_data: UserDataManager
    _placement: Placement
    _clock: Clock
    _config: MatchingConfig

    async def update_task_queue_config(
        self, request: ws.UpdateTaskQueueConfigRequest
    ) -> ws.UpdateTaskQueueConfigResponse:
        """Rate limits and fairness weights of one kind of a queue. In force at once, at the other hosts too; at one that
        can't be reached for now after `config.user_data_refresh`."""
        check_config(request)
        name, _ = parse_partition(request.task_queue)
        if (kind := KINDS.get(request.task_queue_type)) is None:
            raise InvalidArgument("Task queue type is not set on request.")
        change = with_config(request, kind=kind, now=self._clock.now(), config=self._config)
        data = await self.update_user_data(namespace=request.namespace, task_queue=name, change=change)
        return ws.UpdateTaskQueueConfigResponse(config=data.configs[kind])

    async def update_user_data(self, *, namespace: str, task_queue: str, change: Change) -> UserData:
        """Change a family's user data under compare-and-set; its loaded queues take it over at once, wherever they are."""
        data = await self._user_data.update(namespace=namespace, task_queue=task_queue, change=change)
        self._take_user_data(data)
        await self.others.refresh_user_data(namespace=namespace, family=task_queue)
        return data

    def _take_user_data(self, data: UserData) -> None:
        for queue in self.queues:
            if queue.namespace == data.namespace and queue.family == data.task_queue:
                queue.take_user_data(data)

    async def refresh_user_data(self, *, namespace: str, task_queue: str) -> None:
        name, _ = parse_partition(task_queue)
        self._take_user_data(await self._user_data.load(namespace=namespace, task_queue=name))

    async def _refresh_regularly(self) -> None:
        """Whoever changed user data may not have known all hosts, or not have reached them."""
        while True:
            await self._clock.sleep(self._config.user_data_refresh)
            if not self._placement.is_shared:
                continue
            for namespace, family in {(queue.namespace, queue.family) for queue in self.queues}:
                try:
                    await self.refresh_user_data(namespace=namespace, task_queue=family)
                except TemporalError as error:
                    log.info("the user data of %s could not be looked at: %s", family, error)
