"""A run's worker deployment version: behaviors, transitions, overrides, and what follow-ups take over."""

from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import WorkerDeploymentOptions, WorkerDeploymentVersion
from temporalio.api.enums.v1 import ContinueAsNewVersioningBehavior, VersioningBehavior, WorkerVersioningMode
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.contracts.matching import PlannedVersion
from common.errors import TaskObsolete
from history.api.describe_workflow_execution import execution_info
from history.transitions.activities import start_activity_task
from history.transitions.options import update_options
from history.transitions.task_start import StartedTask, start_workflow_task
from history.transitions.version_changes import activity_may_start
from history.version_directives import of_workflow_task
from history.versioning import revision_of
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command
from tests.history.many_hosts import ManyHosts
from tests.history.test_processors import started

PINNED = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
AUTO_UPGRADE = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
V1, V2 = "dep:v1", "dep:v2"


def options_of(version: str) -> WorkerDeploymentOptions | None:
    if not version:
        return None
    name, build_id = version.split(":")
    return WorkerDeploymentOptions(deployment_name=name, build_id=build_id, worker_versioning_mode=VERSIONED)


def poll(
    host: Host,
    version: str,
    *,
    directive: str | None = None,
    revision: int = 1,
    target: str | None = None,
    name: str = "q",
) -> StartedTask:
    """A worker of the version gets the pending workflow task, as Matching was told of it unless `directive` says otherwise."""
    task = host.info.workflow_task
    assert task is not None
    request = RecordWorkflowTaskStarted(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        run_id=host.info.run_id,
        scheduled_event_id=task.scheduled_event_id,
        attempt=task.attempt,
        stamp=task.stamp,
        request_id=f"{name}-{task.scheduled_event_id}-{task.attempt}",
        poll=ws.PollWorkflowTaskQueueRequest(
            namespace=NAMESPACE,
            task_queue=TaskQueue(name=task.task_queue),
            identity=version,
            deployment_options=options_of(version),
        ),
        version_directive=of_workflow_task(host.info) if directive is None else directive,
        revision=revision,
        target_version=version if target is None else target,
    )
    return host.run(lambda work: start_workflow_task(work, request))


def complete(host: Host, task: StartedTask, *commands: Command, version: str, behavior: int, **fields: Any) -> Any:
    return host.complete(
        task, *commands, deployment_options=options_of(version), versioning_behavior=behavior, **fields
    )


def on(version: str, behavior: int, *commands: Command, **start: Any) -> Host:
    """A run whose first task a worker of the version has completed."""
    host = Host()
    host.start(**start)
    complete(host, poll(host, version), *commands, version=version, behavior=behavior)
    return host


def signal(host: Host) -> None:
    from history.transitions.signals import signal_workflow

    request = ws.SignalWorkflowExecutionRequest(namespace=NAMESPACE, signal_name="s")
    request.workflow_execution.workflow_id = WORKFLOW_ID
    host.run(lambda work: signal_workflow(work, request))


def shown(host: Host) -> dict[str, bytes]:
    return {name: value.data for name, value in host.info.search_attributes.items()}


def test_a_plain_run_knows_nothing_of_versions() -> None:
    host = Host()
    host.start()
    host.do()
    assert host.info.versioning is None and not host.info.worker_deployment
    assert not execution_info(host.info).HasField("versioning_info")


def test_the_first_worker_takes_the_run_to_its_version() -> None:
    host = Host()
    host.start()
    task = poll(host, V1, revision=7)
    info = host.info
    assert info.versioning is not None and (info.versioning.transition, info.versioning.revision) == (V1, 7)
    assert execution_info(info).versioning_info.version_transition.deployment_version.build_id == "v1"
    complete(host, task, version=V1, behavior=PINNED)
    assert host.info.versioning.transition is None
    completed = host.last()
    assert completed.deployment_version == WorkerDeploymentVersion(deployment_name="dep", build_id="v1")
    assert (completed.versioning_behavior, completed.worker_deployment_name) == (PINNED, "dep")
    versioning = execution_info(host.info).versioning_info
    assert (versioning.behavior, versioning.version, versioning.revision_number) == (PINNED, "dep.v1", 7)
    assert shown(host) == {
        "BuildIds": b'["pinned:dep:v1"]',
        "TemporalUsedWorkerDeploymentVersions": b'["dep:v1"]',
        "TemporalWorkerDeployment": b'"dep"',
        "TemporalWorkerDeploymentVersion": b'"dep:v1"',
        "TemporalWorkflowVersioningBehavior": b'"Pinned"',
    }


def test_a_pinned_run_starts_on_no_other_version() -> None:
    host = on(V1, PINNED)
    signal(host)
    assert of_workflow_task(host.info) == f"pinned:{V1}"
    with pytest.raises(TaskObsolete):
        poll(host, V2)
    with pytest.raises(TaskObsolete):
        poll(host, V1, directive=f"auto:{V1}")
    complete(host, poll(host, V1), version=V1, behavior=PINNED)


def test_a_run_that_may_upgrade_goes_on_at_another_version() -> None:
    activity = command(
        "schedule_activity_task", activity_id="a", activity_type={"name": "A"}, task_queue={"name": "queue"},
        start_to_close_timeout={"seconds": 9},
    )  # fmt: skip
    host = on(V1, AUTO_UPGRADE, activity)
    signal(host)
    host.transfer_tasks.clear()
    task = poll(host, V2, revision=2)
    assert of_workflow_task(host.info) == f"auto:{V2}"
    before = next(iter(host.state.activities.values()))
    complete(host, task, version=V2, behavior=AUTO_UPGRADE)
    after = next(iter(host.state.activities.values()))
    assert after.stamp == before.stamp + 1  # handed over again, to the other version's workers
    assert revision_of(host.info) == 2 and of_workflow_task(host.info) == f"auto:{V2}"
    assert shown(host)["TemporalUsedWorkerDeploymentVersions"] == b'["dep:v1","dep:v2"]'
    signal(host)
    complete(host, poll(host, ""), version="", behavior=0)
    assert of_workflow_task(host.info) == "auto" or not execution_info(host.info).versioning_info.behavior
    assert "TemporalWorkerDeploymentVersion" not in shown(host)


def test_a_task_that_was_under_way_does_not_end_a_transition() -> None:
    """It is completed at the old version; another task follows at once, for the new one."""
    host = on(V1, AUTO_UPGRADE)
    signal(host)
    task = poll(host, V1)
    signal(host)
    host.run(lambda work: _transition(work, V2))
    sticky = {"worker_task_queue": {"name": "sticky"}}
    complete(host, task, version=V1, behavior=AUTO_UPGRADE, sticky_attributes=sticky)
    info = host.info
    assert info.versioning is not None and info.versioning.transition == V2
    assert info.workflow_task is not None and not info.sticky_queue
    complete(host, poll(host, V2), version=V2, behavior=AUTO_UPGRADE)
    assert host.info.versioning is not None and host.info.versioning.transition is None


def _transition(work: Any, version: str) -> None:
    from history.transitions.versions import begin_transition

    assert begin_transition(work.run(""), version, revision=5)


def test_an_activity_takes_its_run_along_or_is_of_its_own() -> None:
    schedule = command(
        "schedule_activity_task", activity_id="a", activity_type={"name": "A"}, task_queue={"name": "queue"},
        start_to_close_timeout={"seconds": 9},
    )  # fmt: skip
    host = on(V1, AUTO_UPGRADE, schedule)

    def start(version: str, planned: PlannedVersion) -> Any:
        item = next(iter(host.state.activities.values()))
        request = RecordActivityTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=host.info.run_id,
            scheduled_event_id=item.scheduled_event_id,
            stamp=item.stamp,
            request_id=version,
            poll=ws.PollActivityTaskQueueRequest(namespace=NAMESPACE, deployment_options=options_of(version)),
            version_directive=of_workflow_task(host.info),
            revision=3,
            target_version=version,
        )

        def check(draft: Any) -> bool:
            return activity_may_start(draft, request, version, planned=planned)

        return host.run(lambda work: start_activity_task(work, request, versioned=check))

    assert start(V2, PlannedVersion(V2, 3)) is None  # the workflow goes there, too: first, with a task
    assert host.info.workflow_task is not None and host.info.versioning is not None
    assert host.info.versioning.transition == V2
    with pytest.raises(TaskObsolete):
        start(V2, PlannedVersion(V2, 3))
    complete(host, poll(host, V2, revision=3), version=V2, behavior=AUTO_UPGRADE)
    assert start("other:x", PlannedVersion(V2, 3)) is not None


def update(host: Host, override: VersioningOverride | None) -> None:
    request = ws.UpdateWorkflowExecutionOptionsRequest(
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID),
        workflow_execution_options=WorkflowExecutionOptions(versioning_override=override),
        update_mask=FieldMask(paths=["versioning_override"]),
    )
    host.run(lambda work: update_options(work, request))


def pinned(version: str) -> VersioningOverride:
    override = VersioningOverride()
    override.pinned.behavior = VersioningOverride.PinnedOverrideBehavior.PINNED_OVERRIDE_BEHAVIOR_PINNED
    name, build_id = version.split(":")
    override.pinned.version.CopyFrom(WorkerDeploymentVersion(deployment_name=name, build_id=build_id))
    return override


def test_an_override_moves_what_waits_and_ends_a_transition() -> None:
    host = on(V1, AUTO_UPGRADE)
    signal(host)
    host.run(lambda work: _transition(work, "dep:v3"))
    stamp = host.info.workflow_task.stamp  # type: ignore[union-attr]
    update(host, pinned(V2))
    info = host.info
    assert of_workflow_task(info) == f"pinned:{V2}" and info.versioning is not None
    assert info.versioning.transition is None and info.workflow_task is not None
    assert info.workflow_task.stamp == stamp + 1
    assert shown(host)["BuildIds"] == b'["pinned:dep:v2"]'
    complete(host, poll(host, V2), version=V2, behavior=AUTO_UPGRADE)
    assert of_workflow_task(host.info) == f"pinned:{V2}"
    update(host, None)
    assert of_workflow_task(host.info) == f"auto:{V2}"


def test_a_one_time_override_is_over_with_a_task_there() -> None:
    host = on(V1, PINNED)
    override = VersioningOverride()
    override.one_time.target_deployment_version.CopyFrom(WorkerDeploymentVersion(deployment_name="dep", build_id="v2"))
    update(host, override)
    signal(host)
    assert of_workflow_task(host.info) == f"pinned:{V2}"
    complete(host, poll(host, V2), version=V2, behavior=PINNED)
    assert host.info.versioning_override is None and of_workflow_task(host.info) == f"pinned:{V2}"


def continue_as_new(**attributes: Any) -> Command:
    return command("continue_as_new_workflow_execution", workflow_type={"name": "W"}, **attributes)


USE_RAMPING = ContinueAsNewVersioningBehavior.CONTINUE_AS_NEW_VERSIONING_BEHAVIOR_USE_RAMPING_VERSION


@pytest.mark.parametrize(
    ("behavior", "attributes", "directive"),
    [
        (PINNED, {}, f"pinned:{V1}"),
        (PINNED, {"initial_versioning_behavior": USE_RAMPING}, f"auto:{V1}"),
        (PINNED, {"task_queue": {"name": "another"}}, "assign"),
        (AUTO_UPGRADE, {}, f"auto:{V1}"),
    ],
)
def test_what_a_continued_run_begins_with(behavior: int, attributes: dict[str, Any], directive: str) -> None:
    host = on(V1, behavior)
    first = host.info.run_id
    signal(host)
    complete(host, poll(host, V1), continue_as_new(**attributes), version=V1, behavior=behavior)
    assert host.info.run_id != first
    host.advance(2)
    assert of_workflow_task(host.info) == directive


def test_a_pinned_run_is_told_of_a_newer_version_and_its_successor_is_not() -> None:
    host = on(V1, PINNED)
    signal(host)
    task = poll(host, V1, target=V2, revision=4)
    assert host.last().target_worker_deployment_version_changed
    complete(host, task, continue_as_new(), version=V1, behavior=PINNED)
    started_attributes = host.events[host.info.run_id][0].workflow_execution_started_event_attributes
    assert started_attributes.inherited_pinned_version.build_id == "v1"
    assert started_attributes.declined_target_version_upgrade.revision_number == 4
    host.advance(2)
    complete(host, poll(host, V1, target=V2, revision=4), version=V1, behavior=PINNED)
    signal(host)
    poll(host, V1, target=V2, revision=5)
    assert host.last().target_worker_deployment_version_changed  # that is newer than what was declined


@pytest.mark.parametrize("behavior", [PINNED, AUTO_UPGRADE])
async def test_children_begin_where_their_parent_is(behavior: int) -> None:
    engine = ManyHosts()
    await started(engine, "parent")
    parent = engine.host("parent")

    queues = ("queue", "there", "elsewhere")
    engine.matching.versions = {f"there {V1}"}
    task = poll(parent, V1, revision=3)
    complete(parent, task, *(_child(queue) for queue in queues), version=V1, behavior=behavior)
    for _ in queues:
        await engine.handle(engine.take("parent", "startChild"))
    found = {}
    for queue in queues:
        attributes = engine.host(queue).events[engine.host(queue).info.run_id][0]
        start = attributes.workflow_execution_started_event_attributes
        found[queue] = (
            start.inherited_pinned_version.build_id,
            start.inherited_auto_upgrade_info.source_deployment_version.build_id,
        )
    stays = ("v1", "") if behavior == PINNED else ("", "v1")
    assert found == {"queue": stays, "there": stays, "elsewhere": ("", "")}


def _child(queue: str) -> Command:
    return command(
        "start_child_workflow_execution", workflow_id=queue, workflow_type={"name": "C"}, task_queue={"name": queue}
    )
