"""Tasks and workers of the older versioning: who gets what while sets and rules change."""

import asyncio

import pytest
from temporalio.api.enums.v1 import DescribeTaskQueueMode
from temporalio.api.workflowservice.v1 import UpdateWorkerBuildIdCompatibilityRequest as SetsRequest
from temporalio.api.workflowservice.v1 import UpdateWorkerVersioningRulesRequest as RulesRequest

from common.contracts.matching import StickyWorkerUnavailable
from common.errors import FailedPrecondition, NewerBuildExists
from matching.config import MatchingConfig
from matching.service import MatchingService

from .fakes import NAMESPACE, QUEUE, World, begin_poll, settled, workflow_poll, ws
from .test_version_sets import compatible, new_set
from .test_versioning_rules import commit, insert, redirect

ASSIGN = "assign"
RELOAD = MatchingConfig().reload_delay


async def change_sets(service: MatchingService, request: SetsRequest) -> None:
    request.namespace, request.task_queue = NAMESPACE, QUEUE
    await service.update_worker_build_id_compatibility(request)


async def change_rules(service: MatchingService, request: RulesRequest) -> ws.UpdateWorkerVersioningRulesResponse:
    asked = ws.GetWorkerVersioningRulesRequest(namespace=NAMESPACE, task_queue=QUEUE)
    request.namespace, request.task_queue = NAMESPACE, QUEUE
    request.conflict_token = (await service.get_worker_versioning_rules(asked)).conflict_token
    return await service.update_worker_versioning_rules(request)


async def begin(
    service: MatchingService, build_id: str, **given: str
) -> asyncio.Task[ws.PollWorkflowTaskQueueResponse]:
    """A waiting poll of a worker of the build, whose identity is the build id."""
    request = workflow_poll(build_id, **given)
    request.worker_version_capabilities.build_id = build_id
    request.worker_version_capabilities.use_versioning = True
    poll = asyncio.ensure_future(service.poll_workflow_task_queue(request))
    await settled()
    return poll


async def workflow_of(poll: asyncio.Task[ws.PollWorkflowTaskQueueResponse]) -> str:
    return (await poll).workflow_execution.workflow_id


async def test_new_workflows_go_to_the_default_set_and_others_to_their_own(world: World) -> None:
    service = await world.service()
    await change_sets(service, new_set("1.0"))
    await change_sets(service, new_set("2.0"))
    first, second = await begin(service, "1.0"), await begin(service, "2.0")
    plain = await begin_poll(service, "plain")
    await service.add_task(world.task("new", version_directive=ASSIGN))
    await service.add_task(world.task("old", version_directive="build:1.0"))
    await service.add_task(world.task("unversioned"))
    assert await workflow_of(second) == "new"
    assert await workflow_of(first) == "old"
    assert await workflow_of(plain) == "unversioned"
    assert not world.store.tasks


async def test_stored_tasks_follow_the_default(world: World) -> None:
    service = await world.service()
    await change_sets(service, new_set("1.0"))
    await service.add_task(world.task("stored", version_directive=ASSIGN))
    await change_sets(service, new_set("2.0"))
    first, second = await begin(service, "1.0"), await begin(service, "2.0")
    assert await workflow_of(second) == "stored"
    await service.stop()
    assert not await workflow_of(first)


async def test_a_worker_of_a_build_that_is_not_its_sets_default_is_refused(world: World) -> None:
    service = await world.service()
    await change_sets(service, new_set("1.0"))
    waiting = await begin(service, "1.0")
    await change_sets(service, compatible("1.1", "1.0"))
    await settled()
    world.clock.advance(RELOAD)
    with pytest.raises(NewerBuildExists) as refused:
        await waiting
    assert refused.value.default_build_id == "1.1"
    with pytest.raises(NewerBuildExists):
        await (await begin(service, "1.0", queue="sticky", normal=QUEUE))
    newer = await begin(service, "1.1")
    await service.add_task(world.task("w", version_directive="build:1.0"))
    assert await workflow_of(newer) == "w"


async def test_a_kept_workflow_leaves_a_worker_whose_build_gets_no_tasks(world: World) -> None:
    service = await world.service()
    await change_sets(service, new_set("1.0"))
    await begin(service, "1.0", queue="sticky", normal=QUEUE)
    sticky = {"task_queue": "sticky", "normal_name": QUEUE, "version_directive": "build:1.0"}
    await service.add_task(world.task("kept", **sticky))
    await change_sets(service, compatible("1.1", "1.0"))
    with pytest.raises(StickyWorkerUnavailable):
        await service.add_task(world.task("left", **sticky))


async def test_rules_assign_builds_and_redirects_lead_on(world: World) -> None:
    service = await world.service()
    await change_rules(service, insert("A"))
    assert await service.add_task(world.task("first", version_directive=ASSIGN)) == "A"
    await change_rules(service, commit("B", force=True))
    assert await service.add_task(world.task("second", version_directive=ASSIGN)) == "B"
    second, first = await begin(service, "B"), await begin(service, "A")
    assert (await workflow_of(first), await workflow_of(second)) == ("first", "second")
    assert await service.add_task(world.task("third", version_directive="build:A")) == ""
    await change_rules(service, redirect("A", "B"))
    assert await workflow_of(await begin(service, "B")) == "third"
    with pytest.raises(NewerBuildExists) as refused:
        await (await begin(service, "A"))
    assert refused.value.default_build_id == "B"


async def test_without_rules_and_sets_a_versioned_worker_gets_nothing(world: World) -> None:
    service = await world.service()
    versioned = await begin(service, "A")
    plain = await begin_poll(service, "plain")
    await service.add_task(world.task("w", version_directive=ASSIGN))
    assert await workflow_of(plain) == "w"
    await service.stop()
    assert not await workflow_of(versioned)


async def test_a_build_is_committed_when_its_workers_poll(world: World) -> None:
    service = await world.service()
    with pytest.raises(FailedPrecondition):
        await change_rules(service, commit("A"))
    poll = await begin(service, "A")
    changed = await change_rules(service, commit("A"))
    assert [rule.rule.target_build_id for rule in changed.assignment_rules] == ["A"]
    asked = ws.DescribeTaskQueueRequest(
        namespace=NAMESPACE,
        api_mode=DescribeTaskQueueMode.DESCRIBE_TASK_QUEUE_MODE_ENHANCED,
        task_queue_types=[1],
        report_pollers=True,
    )
    asked.task_queue.name = QUEUE
    asked.versions.build_ids.append("A")
    described = await service.describe_task_queue(asked)
    assert [poller.identity for poller in described.versions_info["A"].types_info[1].pollers] == ["A"]
    await service.stop()
    await poll


async def test_the_queues_of_a_build(world: World) -> None:
    service = await world.service()
    for number in range(20):
        request = new_set("shared")
        request.namespace, request.task_queue = NAMESPACE, f"queue-{number:02}"
        await service.update_worker_build_id_compatibility(request)
    found = await service.queues_of_build(namespace=NAMESPACE, build_id="shared")
    assert found == [f"queue-{number:02}" for number in range(20)]
    with pytest.raises(
        FailedPrecondition, match="Exceeded max task queues allowed to be mapped to a single build ID: 20"
    ):
        await change_sets(service, new_set("shared"))
