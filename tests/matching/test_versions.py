"""Worker deployment versions at a queue: who gets what while versions come, and routing changes."""

import asyncio
from typing import Any

import pytest
from temporalio.api.enums.v1 import WorkerDeploymentVersionStatus, WorkerVersioningMode
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueResponse, PollWorkflowTaskQueueResponse

from common.contracts.history import RecordWorkflowTaskStarted
from common.contracts.matching import StickyWorkerUnavailable
from common.errors import FailedPrecondition, NotFound, ResourceExhausted
from matching.config import MatchingConfig
from matching.ramps import ramp_threshold
from matching.service import MatchingService

from .fakes import NAMESPACE, QUEUE, World, activity_poll, begin_poll, settled, workflow_poll, ws

DEP = "dep"
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
Poll = asyncio.Task[Any]


def versioned(request: Any, build_id: str, *, deployment: str = DEP) -> Any:
    request.deployment_options.deployment_name = deployment
    request.deployment_options.build_id = build_id
    request.deployment_options.worker_versioning_mode = VERSIONED
    return request


async def begin(service: MatchingService, build_id: str, *, kind: str = "workflow", deployment: str = DEP) -> Poll:
    """A waiting poll of a worker of the version, whose identity is the build id."""
    if kind == "workflow":
        request = versioned(workflow_poll(build_id), build_id, deployment=deployment)
        poll: Poll = asyncio.ensure_future(service.poll_workflow_task_queue(request))
    else:
        request = versioned(activity_poll(build_id), build_id, deployment=deployment)
        poll = asyncio.ensure_future(service.poll_activity_task_queue(request))
    await settled()
    return poll


async def set_current(service: MatchingService, build_id: str, **fields: Any) -> None:
    fields = {"identity": "me", "ignore_missing_task_queues": True, "deployment_name": DEP, **fields}
    await service.set_worker_deployment_current_version(
        ws.SetWorkerDeploymentCurrentVersionRequest(namespace=NAMESPACE, build_id=build_id, **fields)
    )


async def set_ramp(service: MatchingService, build_id: str, percentage: float) -> None:
    await service.set_worker_deployment_ramping_version(
        ws.SetWorkerDeploymentRampingVersionRequest(
            namespace=NAMESPACE,
            deployment_name=DEP,
            build_id=build_id,
            percentage=percentage,
            identity="me",
            ignore_missing_task_queues=True,
        )
    )


async def workflow_of(poll: Poll) -> str:
    response: PollWorkflowTaskQueueResponse | PollActivityTaskQueueResponse = await poll
    return response.task_token.decode()


async def test_tasks_go_to_workers_without_a_version_until_one_is_current(world: World) -> None:
    service = await world.service()
    first, plain = await begin(service, "v1"), await begin_poll(service, "plain")
    await service.add_task(world.task("before"))
    assert await workflow_of(plain) == "before"
    await set_current(service, "v1")
    plain = await begin_poll(service, "plain")
    await service.add_task(world.task("after"))
    assert await workflow_of(first) == "after"
    await set_current(service, "")
    await service.add_task(world.task("back"))
    assert await workflow_of(plain) == "back"


async def test_a_backlog_follows_the_current_version(world: World) -> None:
    service = await world.service()
    one, two = await begin(service, "v1"), await begin(service, "v2")
    await set_current(service, "v1")
    await service.add_task(world.task("a"))
    assert await workflow_of(one) == "a"
    await service.add_task(world.task("b"))  # nobody of v1 polls now
    await service.add_task(world.task("c"))
    await settled()
    assert not two.done()
    await set_current(service, "v2")
    assert await workflow_of(two) == "b"
    assert await workflow_of(await begin(service, "v2")) == "c"


async def test_a_ramp_takes_its_share_of_workflow_ids(world: World) -> None:
    service = await world.service()
    one, two = await begin(service, "v1"), await begin(service, "v2")
    await set_current(service, "v1")
    assert {ramp_threshold(f"50-{number}") <= 50 for number in range(20)} == {True, False}
    for percentage in (0, 50, 100):
        await set_ramp(service, "v2", percentage)
        for name in (f"{percentage}-{number}" for number in range(20)):
            await service.add_task(world.task(name))
            goes_to_v2 = percentage == 100 or (percentage and ramp_threshold(name) <= percentage)
            assert await workflow_of(two if goes_to_v2 else one) == name
            if goes_to_v2:
                two = await begin(service, "v2")
            else:
                one = await begin(service, "v1")


async def test_pinned_tasks_wait_for_their_version_only(world: World) -> None:
    service = await world.service()
    two = await begin(service, "v2")
    await set_current(service, "v2")
    await service.add_task(world.task("pinned", version_directive=f"pinned:{DEP}:v1"))
    await service.add_task(world.task("auto", version_directive=f"auto:{DEP}:v1"))
    assert await workflow_of(two) == "auto"
    assert await workflow_of(await begin(service, "v1")) == "pinned"
    queues = {key.version for key in service.queues.keys()}  # noqa: SIM118  no mapping
    assert queues == {"", f"{DEP}:v1", f"{DEP}:v2"}


async def test_an_activity_whose_queue_does_not_have_the_version_goes_its_own_way(world: World) -> None:
    service = await world.service()
    one = await begin(service, "v1", kind="activity", deployment="other")
    await set_current(service, "v1", deployment_name="other")
    await service.add_task(world.task("w", kind="activity", version_directive=f"pinned:{DEP}:v1"))
    assert await workflow_of(one) == "w"


async def test_what_is_known_of_a_newer_routing_counts(world: World) -> None:
    """Another queue of the deployment has heard of it already, and this one not yet."""
    service = await world.service()
    one, two = await begin(service, "v1"), await begin(service, "v2")
    await set_current(service, "v1")
    await service.add_task(world.task("w", version_directive=f"auto:{DEP}:v2", revision=9))
    assert await workflow_of(two) == "w"
    await service.add_task(world.task("x", version_directive=f"auto:{DEP}:v2", revision=1))
    assert await workflow_of(one) == "x"


async def test_a_run_leaves_its_sticky_worker_when_the_current_version_changes(world: World) -> None:
    service = await world.service()
    await begin(service, "v1")
    await set_current(service, "v1")
    sticky = versioned(workflow_poll("v1", queue="sticky", normal=QUEUE), "v1")
    poll = asyncio.ensure_future(service.poll_workflow_task_queue(sticky))
    await settled()
    task = world.task("w", task_queue="sticky", normal_name=QUEUE, version_directive=f"auto:{DEP}:v1")
    await service.add_task(task)
    assert await workflow_of(poll) == "w"
    await begin(service, "v2")
    await set_current(service, "v2")
    with pytest.raises(StickyWorkerUnavailable):
        await service.add_task(task)


async def test_a_start_tells_history_where_the_workflow_would_go(world: World) -> None:
    service = await world.service()
    asked: list[RecordWorkflowTaskStarted] = []
    record = world.history.record_workflow_task_started

    async def noted(request: RecordWorkflowTaskStarted) -> PollWorkflowTaskQueueResponse:
        asked.append(request)
        return await record(request)

    world.history.record_workflow_task_started = noted  # type: ignore[method-assign]
    one, two = await begin(service, "v1"), await begin(service, "v2")
    await set_current(service, "v2")
    await service.add_task(world.task("pinned", version_directive=f"pinned:{DEP}:v1"))
    await workflow_of(one)
    await service.add_task(world.task("auto"))
    await workflow_of(two)
    assert [(r.version_directive, r.target_version, r.revision) for r in asked] == [
        (f"pinned:{DEP}:v1", f"{DEP}:v2", 1),
        ("auto", f"{DEP}:v2", 1),
    ]


async def test_versions_come_with_polls_and_are_the_same_at_every_host(world: World) -> None:
    service = await world.service()
    for kind in ("workflow", "activity"):
        await begin(service, "v1", kind=kind)
        await begin(service, "v1", kind=kind)
    record = await service.deployments.load(namespace=NAMESPACE, name=DEP)
    assert record.versions["v1"].task_queues == {QUEUE: ["workflow", "activity"]}
    assert record.synced_version == record.version
    other = await world.service("two")
    assert await other.has_version(namespace=NAMESPACE, task_queue=QUEUE, version=f"{DEP}:v1")
    assert not await other.has_version(namespace=NAMESPACE, task_queue=QUEUE, version=f"{DEP}:v2")


async def test_limits_of_versions_and_deployments() -> None:
    world = World(MatchingConfig(deployments_of_namespace=1, versions_of_deployment=1, queues_of_version=1))
    service = await world.service()
    kept = await begin(service, "v1")
    for options in ({"build_id": "v2"}, {"build_id": "v1", "deployment": "other"}):
        with pytest.raises(ResourceExhausted):
            await service.poll_workflow_task_queue(versioned(workflow_poll("x"), **options))
    with pytest.raises(ResourceExhausted):
        await service.poll_workflow_task_queue(versioned(workflow_poll("x", queue="another"), "v1"))
    assert not kept.done()
    await world.close()


async def test_a_version_makes_room_when_nobody_needs_it() -> None:
    world = World(MatchingConfig(versions_of_deployment=1))
    service = await world.service()
    await set_current(service, "old", allow_no_pollers=True)
    await set_current(service, "")
    record = await service.deployments.load(namespace=NAMESPACE, name=DEP)
    with pytest.raises(ResourceExhausted):
        await service.poll_workflow_task_queue(versioned(workflow_poll("x"), "new"))  # old is draining
    await service.note_drainage(namespace=NAMESPACE, deployment=DEP, has_open={"old": False})
    await begin(service, "new")
    record = await service.deployments.load(namespace=NAMESPACE, name=DEP)
    assert list(record.versions) == ["new"]
    await world.close()


async def test_a_drained_version_without_pollers_answers_no_query(world: World) -> None:
    service = await world.service()
    await begin(service, "v1")
    await set_current(service, "v1")
    await begin(service, "v2")
    await set_current(service, "v2")
    await service.note_drainage(namespace=NAMESPACE, deployment=DEP, has_open={"v1": False})
    service.queues.loaded(key_of(f"{DEP}:v1")).pollers.remove("v1")  # type: ignore[union-attr]
    with pytest.raises(FailedPrecondition, match="v1 is drained and has no pollers"):
        await service.query_workflow(world.query(version_directive=f"pinned:{DEP}:v1"))


def key_of(version: str) -> Any:
    from matching.task_queues import TaskQueueKey

    return TaskQueueKey(NAMESPACE, QUEUE, "workflow", version)


async def test_the_description_says_where_tasks_go(world: World) -> None:
    service = await world.service()
    await begin(service, "v1")
    await begin(service, "v2")
    await set_current(service, "v1")
    await set_ramp(service, "v2", 25)
    request = ws.DescribeTaskQueueRequest(namespace=NAMESPACE, report_stats=True)
    request.task_queue.name = QUEUE
    described = await service.describe_task_queue(request)
    info = described.versioning_info
    assert (info.current_deployment_version.build_id, info.current_version) == ("v1", f"{DEP}.v1")
    assert (info.ramping_deployment_version.build_id, info.ramping_version_percentage) == ("v2", 25)
    assert {poller.identity for poller in described.pollers} == {"v1", "v2"}


# --- the deployments themselves


async def describe(service: MatchingService) -> Any:
    answer = await service.describe_worker_deployment(
        ws.DescribeWorkerDeploymentRequest(namespace=NAMESPACE, deployment_name=DEP)
    )
    return answer.worker_deployment_info


async def test_statuses_follow_the_routing(world: World) -> None:
    service = await world.service()
    await begin(service, "v1")
    await begin(service, "v2")

    async def statuses() -> dict[str, str]:
        info = await describe(service)
        prefix = "WORKER_DEPLOYMENT_VERSION_STATUS_"
        return {
            summary.deployment_version.build_id: WorkerDeploymentVersionStatus.Name(summary.status).removeprefix(prefix)
            for summary in info.version_summaries
        }

    assert await statuses() == {"v1": "INACTIVE", "v2": "INACTIVE"}
    await set_current(service, "v1")
    await set_ramp(service, "v2", 10)
    assert await statuses() == {"v1": "CURRENT", "v2": "RAMPING"}
    await set_current(service, "v2")
    assert await statuses() == {"v1": "DRAINING", "v2": "CURRENT"}
    info = await describe(service)
    assert not info.routing_config.ramping_version and info.routing_config.revision_number == 3
    await service.note_drainage(namespace=NAMESPACE, deployment=DEP, has_open={"v1": True})
    assert (await statuses())["v1"] == "DRAINING"
    await service.note_drainage(namespace=NAMESPACE, deployment=DEP, has_open={"v1": False})
    assert (await statuses())["v1"] == "DRAINED"
    assert await service.has_version(namespace=NAMESPACE, task_queue=QUEUE, version=f"{DEP}:v1", reactivate=True)
    assert (await statuses())["v1"] == "DRAINING"


async def test_changes_that_are_refused(world: World) -> None:
    service = await world.service()
    await begin(service, "v1")
    for build_id, error, words in (
        ("v9", NotFound, "build ID 'v9' not found in Worker Deployment 'dep'"),
        ("v1", FailedPrecondition, "conflict token mismatch"),
    ):
        with pytest.raises(error, match=words):
            await set_current(service, build_id, conflict_token=b"0" if build_id == "v1" else b"")
    with pytest.raises(NotFound, match="no Worker Deployment found with name 'never'"):
        await set_current(service, "v1", deployment_name="never")
    await set_current(service, "v1")
    with pytest.raises(FailedPrecondition, match=r"requested ramping version dep\.v1 is already current"):
        await set_ramp(service, "v1", 10)
    manager = ws.SetWorkerDeploymentManagerRequest(namespace=NAMESPACE, deployment_name=DEP, identity="me")
    manager.manager_identity = "somebody"
    await service.set_worker_deployment_manager(manager)
    with pytest.raises(FailedPrecondition, match="ManagerIdentity 'somebody' is set and does not match"):
        await set_current(service, "")


async def test_a_version_is_deleted_once_nothing_needs_it(world: World) -> None:
    service = await world.service()
    request = ws.DeleteWorkerDeploymentVersionRequest(namespace=NAMESPACE, identity="me")
    request.deployment_version.deployment_name, request.deployment_version.build_id = DEP, "v1"
    await begin(service, "v1")
    await set_current(service, "v1")
    for words in ("is current or ramping", "is draining", "has active pollers"):
        with pytest.raises(FailedPrecondition, match=words):
            await service.delete_worker_deployment_version(request)
        if words == "is current or ramping":
            await set_current(service, "")
        else:
            request.skip_drainage = True
    service.queues.loaded(key_of(f"{DEP}:v1")).pollers.remove("v1")  # type: ignore[union-attr]
    deletion = ws.DeleteWorkerDeploymentRequest(namespace=NAMESPACE, deployment_name=DEP)
    with pytest.raises(FailedPrecondition, match="deployment has versions, can't be deleted"):
        await service.delete_worker_deployment(deletion)
    await service.delete_worker_deployment_version(request)
    await service.delete_worker_deployment_version(request)  # of one that is not there: nothing
    assert not await service.has_version(namespace=NAMESPACE, task_queue=QUEUE, version=f"{DEP}:v1")
    await service.delete_worker_deployment(deletion)
    with pytest.raises(NotFound):
        await describe(service)
