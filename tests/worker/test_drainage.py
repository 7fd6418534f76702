"""Versions of worker deployments are drained once no open run is pinned to them, by the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from common.contracts.visibility import CountResult
from common.errors import Unavailable
from matching.config import MatchingConfig
from matching.deployments.records import DRAINED, DRAINING, DeploymentRecord, VersionRecord
from matching.deployments.sync import queue_change
from matching.records import UserData
from matching.service import MatchingService
from tests.matching.fakes import NAMESPACE, QUEUE, World, settled
from tests.matching.test_versions import DEP, begin, set_current
from worker.drainage import EVERY, DrainageLoop

CONFIG = MatchingConfig()


class OpenRuns:
    """Counts what is said to be open."""

    def __init__(self) -> None:
        self.count = 1
        self.queries: list[str] = []
        self.is_away = False

    async def count_workflow_executions(
        self, *, namespace: str, query: str, custom_attributes: Mapping[str, str]
    ) -> CountResult:
        if self.is_away:
            raise Unavailable("the database is away")
        self.queries.append(query)
        return CountResult(count=self.count, groups=[])


class Drain:
    def __init__(self, world: World, service: MatchingService) -> None:
        self.world = world
        self.service = service
        self.runs = OpenRuns()
        deployments: Any = world.deployments
        visibility: Any = self.runs
        self.loop = DrainageLoop(
            store=deployments, matching=service, visibility=visibility, clock=world.clock, config=CONFIG
        )

    async def version(self) -> Any:
        record = await self.service.deployments.load(namespace=NAMESPACE, name=DEP)
        return record.versions["v1"]


@pytest.fixture
def world() -> World:
    return World()


async def draining(world: World) -> Drain:
    service = await world.service()
    await begin(service, "v1")
    await set_current(service, "v1")
    await set_current(service, "")
    return Drain(world, service)


async def test_a_version_drains_until_its_runs_have_closed(world: World) -> None:
    drain = await draining(world)
    await drain.loop.look()
    assert not drain.runs.queries  # the read model may lag
    world.clock.advance(CONFIG.drainage_grace)
    await drain.loop.look()
    version = await drain.version()
    assert (version.status, version.drainage_checked_at) == (DRAINING, world.clock.now())
    assert drain.runs.queries == [
        "TemporalWorkerDeploymentVersion = 'dep:v1' AND TemporalWorkflowVersioningBehavior = 'Pinned' "
        "AND ExecutionStatus = 'Running'"
    ]
    await drain.loop.look()
    assert len(drain.runs.queries) == 1  # not yet again
    drain.runs.count = 0
    world.clock.advance(CONFIG.drainage_refresh)
    await drain.loop.look()
    assert (await drain.version()).status == DRAINED
    world.clock.advance(CONFIG.drainage_refresh * 9)
    await drain.loop.look()
    assert len(drain.runs.queries) == 2
    await world.close()


async def test_the_loop_looks_by_itself_and_survives_a_fault(world: World) -> None:
    drain = await draining(world)
    drain.runs.count, drain.runs.is_away = 0, True
    await drain.loop.start()
    for away in (True, False):
        drain.runs.is_away = away
        for _ in range(20):
            world.clock.advance(EVERY)
            await settled()
    assert (await drain.version()).status == DRAINED
    await drain.loop.stop()
    await world.close()


async def test_a_version_that_becomes_current_again_drains_no_more(world: World) -> None:
    drain = await draining(world)
    await set_current(drain.service, "v1")
    world.clock.advance(CONFIG.drainage_grace)
    await drain.loop.look()
    assert not drain.runs.queries
    await world.close()


async def test_queues_that_do_not_follow_yet_are_seen_to(world: World) -> None:
    drain = await draining(world)
    key = (NAMESPACE, DEP)
    record = await drain.service.deployments.load(namespace=NAMESPACE, name=DEP)
    record.version += 1
    record.versions["v2"] = record.versions.pop("v1")
    await world.deployments.save(record, look_at=world.clock.now(), expected_version=record.version - 1)
    await drain.loop.look()
    assert await drain.service.has_version(namespace=NAMESPACE, task_queue=QUEUE, version=f"{DEP}:v2")
    after: DeploymentRecord = await drain.service.deployments.load(namespace=NAMESPACE, name=DEP)
    assert after.synced_version == after.version
    assert world.deployments.looks[key] != world.clock.now()
    await world.close()


def test_an_older_copy_of_a_deployment_changes_nothing() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    data = UserData(namespace="n", task_queue=QUEUE, updated_at=now)
    record = DeploymentRecord(namespace="n", name=DEP, created_at=now, version=2)
    record.versions["v1"] = VersionRecord(created_at=now, task_queues={QUEUE: ["workflow"]})
    newer = queue_change(record, QUEUE)(data)
    assert list(newer.deployments["workflow"][DEP].versions) == ["v1"]
    record.version, record.versions = 1, {}
    assert queue_change(record, QUEUE)(newer).deployments == newer.deployments
    record.version = 3
    assert queue_change(record, QUEUE)(newer).deployments == {}
