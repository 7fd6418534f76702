"""Drainage: which versions of worker deployments no open run is pinned to any more.

A version that is no longer current or ramping drains. Each row of `worker_deployments` says when there is something to do for
it (an index): after a time of grace, as the read model lags, then every few minutes, the open runs pinned to each draining
version are counted. A row whose queues do not follow it yet, since the process died in between, is seen to as well.
Source: upstream's drainage workflow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from common.clock import Clock, alarm
from common.contracts.matching import MatchingClient
from common.contracts.visibility import VisibilityClient
from common.errors import TemporalError
from common.service import RestartPolicy, Service, TaskLoop
from matching.config import MatchingConfig
from matching.deployments.records import DeploymentRecord, due_at, is_draining
from matching.deployments.store import DeploymentStore

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=30)
"""Between two looks for rows that are due: one read by an index that is nearly always empty."""
BATCH = 100


def always() -> bool:
    return True


class DrainageLoop(Service):
    def __init__(
        self,
        *,
        store: DeploymentStore,
        matching: MatchingClient,
        visibility: VisibilityClient,
        clock: Clock,
        config: MatchingConfig,
        runs: Callable[[], bool] = always,
    ) -> None:
        """`runs` says whether this process is to look now: one of several is enough."""
        super().__init__(name="drainage")
        self._store = store
        self._matching = matching
        self._visibility = visibility
        self._clock = clock
        self._config = config
        self._runs = runs
        self._loop = TaskLoop(name=self.name, run=self._run, restart=RestartPolicy(), clock=clock)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _run(self) -> None:
        while True:
            await alarm(self._clock, self._clock.now() + EVERY)
            if self._runs():
                await self.look()

    async def look(self) -> None:
        """One pass over what is due; what can't be reached now is left to the next one."""
        try:
            for record in await self._store.due(until=self._clock.now(), limit=BATCH):
                await self._look_at(record)
        except TemporalError as error:
            log.info("drainage is looked at later: %s", error)

    async def _look_at(self, record: DeploymentRecord) -> None:
        now, config = self._clock.now(), self._config
        has_open = {
            build_id: await self._has_open(record, build_id)
            for build_id, version in record.versions.items()
            if is_draining(version)
            and due_at(version, grace=config.drainage_grace, refresh=config.drainage_refresh) <= now
        }
        await self._matching.note_drainage(namespace=record.namespace, deployment=record.name, has_open=has_open)

    async def _has_open(self, record: DeploymentRecord, build_id: str) -> bool:
        version = f"{record.name}:{build_id}".replace("'", "''")
        query = (
            f"TemporalWorkerDeploymentVersion = '{version}' AND TemporalWorkflowVersioningBehavior = 'Pinned' "
            "AND ExecutionStatus = 'Running'"
        )
        found = await self._visibility.count_workflow_executions(
            namespace=record.namespace, query=query, custom_attributes={}
        )
        return found.count > 0
