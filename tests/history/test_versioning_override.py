"""Versioning overrides: which are refused, and with which words. As the official server (1.32.0) answered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.deployment.v1 import Deployment, WorkerDeploymentVersion
from temporalio.api.enums.v1 import StartChildWorkflowExecutionFailedCause as Cause
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import PostResetOperation, VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest, UpdateWorkflowExecutionOptionsRequest

from common.errors import FailedPrecondition, InvalidArgument, TemporalError
from history.api.describe_workflow_execution import execution_info
from history.commands import BadCommand
from history.transitions.options import update_options
from history.versioning_override import check_structure, modern_override, named_version
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command
from tests.history.many_hosts import ManyHosts
from tests.history.test_processors import started
from tests.history.test_reset import reset

OLD_PINNED = VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
OLD_UPGRADE = VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
VERSION = WorkerDeploymentVersion(deployment_name="dep", build_id="v9")


def pinned(version: WorkerDeploymentVersion | None = VERSION, behavior: int = 1) -> VersioningOverride:
    made = VersioningOverride.PinnedOverride(version=version)
    made.behavior = behavior  # type: ignore[assignment]
    return VersioningOverride(pinned=made)


def version(name: str, build: str) -> WorkerDeploymentVersion:
    return WorkerDeploymentVersion(deployment_name=name, build_id=build)


def bad_version(text: str) -> str:
    return f'invalid version string "{text}", expected format is "<deployment_name>.<build_id>"'


ACCEPTED = [
    VersioningOverride(auto_upgrade=True),
    VersioningOverride(behavior=OLD_UPGRADE),
    VersioningOverride(behavior=OLD_PINNED, deployment=Deployment(series_name="dep", build_id="v9")),
]
UNKNOWN_VERSION = [
    (pinned(), "dep:v9"),
    (pinned(behavior=7), "dep:v9"),
    (pinned(version("", "")), ":"),
    (pinned(version("dep", "")), "dep:"),
    (pinned(version("", "b")), ":b"),
    (pinned(version("a:b", "c")), "a:b:c"),
    (VersioningOverride(one_time=VersioningOverride.OneTimeOverride(target_deployment_version=VERSION)), "dep:v9"),
    (VersioningOverride(behavior=OLD_PINNED, pinned_version="dep.v9"), "dep:v9"),
    (VersioningOverride(behavior=OLD_UPGRADE, pinned=pinned().pinned), "dep:v9"),
]
MEANINGLESS = [
    (pinned(None), "must provide version if override is pinned."),
    (pinned(None, 0), "must provide version if override is pinned."),
    (pinned(behavior=0), "must specify pinned override behavior if override is pinned."),
    (VersioningOverride(auto_upgrade=False), "auto-upgrade override must be true"),
    (
        VersioningOverride(one_time=VersioningOverride.OneTimeOverride()),
        "must provide target deployment version if override is one-time.",
    ),
    (VersioningOverride(), "override behavior is required"),
    (VersioningOverride(pinned_version="dep.v9"), "override behavior is required"),
    (VersioningOverride(behavior=9), "override behavior 9 not recognized"),  # type: ignore[arg-type]
    (VersioningOverride(behavior=OLD_PINNED, pinned_version="dep:v9"), bad_version("dep:v9")),
    (VersioningOverride(behavior=OLD_PINNED, pinned_version="nodelim"), bad_version("nodelim")),
    (VersioningOverride(behavior=OLD_PINNED, pinned_version=".x"), bad_version(".x")),
    (VersioningOverride(behavior=OLD_PINNED, pinned_version="x."), bad_version("x.")),
    (
        VersioningOverride(behavior=OLD_PINNED),
        "must provide deployment (deprecated) or pinned version if behavior is 'PINNED'",
    ),
    (VersioningOverride(behavior=OLD_PINNED, deployment=Deployment()), "deployment name cannot be empty"),
    (
        VersioningOverride(behavior=OLD_PINNED, deployment=Deployment(series_name="x")),
        "deployment build ID cannot be empty",
    ),
    (
        VersioningOverride(behavior=OLD_PINNED, deployment=Deployment(series_name="a.b", build_id="c")),
        "deployment name cannot contain '.' or ':'",
    ),
    (
        VersioningOverride(behavior=OLD_UPGRADE, pinned_version="dep.v9"),
        "only provide pinned version if behavior is 'PINNED'",
    ),
    (
        VersioningOverride(behavior=OLD_UPGRADE, deployment=Deployment(series_name="a", build_id="b")),
        "only provide deployment if behavior is 'PINNED'",
    ),
]


def not_there(named: str) -> str:
    return f"Pinned version '{named}' is not present in task queue 'queue' of type 'Workflow'"


@pytest.mark.parametrize("override", ACCEPTED)
def test_what_is_accepted(override: VersioningOverride) -> None:
    check_structure(override)
    assert named_version(override) is None


@pytest.mark.parametrize(("override", "named"), UNKNOWN_VERSION)
def test_a_version_that_the_queue_must_have(override: VersioningOverride, named: str) -> None:
    check_structure(override)
    version = named_version(override)
    assert version is not None
    assert f"{version.deployment_name}:{version.build_id}" == named


@pytest.mark.parametrize(("override", "message"), MEANINGLESS)
def test_what_means_nothing(override: VersioningOverride, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_structure(override)
    assert refused.value.message == message


# --- where they are checked


def idle() -> Host:
    host = Host()
    host.start()
    host.do()
    return host


def options(host: Host, override: VersioningOverride | None, *paths: str) -> WorkflowExecutionOptions:
    request = UpdateWorkflowExecutionOptionsRequest(
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID),
        workflow_execution_options=WorkflowExecutionOptions(versioning_override=override),
        update_mask=FieldMask(paths=paths or ("versioning_override",)),
    )
    return host.run(lambda work: update_options(work, request))


def refused(kind: type[TemporalError], call: Callable[[], object]) -> str:
    with pytest.raises(kind) as error:
        call()
    return error.value.message


def test_options_are_checked_whatever_their_mask_names() -> None:
    host = idle()
    assert refused(InvalidArgument, lambda: options(host, VersioningOverride())) == "override behavior is required"
    assert host.info.versioning_override is None


def test_options_may_pin_a_run_to_where_it_is_pinned() -> None:
    host = idle()
    words = "must specify a specific pinned override version because workflow with id wf has behavior {} and is not yet"
    assert words.format("Unspecified") in refused(FailedPrecondition, lambda: options(host, pinned(None)))
    options(host, ACCEPTED[0])
    assert words.format("AutoUpgrade") in refused(FailedPrecondition, lambda: options(host, pinned(None)))
    trusted = ACCEPTED[2]
    assert options(host, trusted).versioning_override == trusted
    assert host.info.versioning_override == modern_override(trusted) == pinned()
    options(host, pinned(None))
    assert host.info.versioning_override == pinned()


def test_a_pinned_run_is_shown_so() -> None:
    host = idle()
    before = host.info.search_attributes
    assert not execution_info(host.info).HasField("versioning_info")
    options(host, ACCEPTED[2])
    shown = {name: value.data for name, value in host.info.search_attributes.items()}
    assert shown == {
        "BuildIds": b'["pinned:dep:v9"]',
        "TemporalWorkerDeployment": b'"dep"',
        "TemporalWorkerDeploymentVersion": b'"dep:v9"',
        "TemporalWorkflowVersioningBehavior": b'"Pinned"',
    }
    options(host, None)
    assert host.info.search_attributes == before
    assert execution_info(host.info).HasField("versioning_info")


def test_a_reset_with_a_meaningless_override_does_nothing() -> None:
    host = idle()
    run_id = host.info.run_id
    change = {"workflow_execution_options": {"versioning_override": {}}, "update_mask": {"paths": ["priority"]}}
    operation = PostResetOperation(update_workflow_options=change)
    words = refused(InvalidArgument, lambda: reset(host, 4, post_reset_operations=[operation]))
    assert words == "override behavior is required"
    assert host.info.run_id == run_id


def test_a_child_with_a_meaningless_override_fails_the_task() -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand, match="override behavior is required"):
        host.do(child(VersioningOverride()))


def child(override: VersioningOverride) -> Command:
    return command(
        "start_child_workflow_execution",
        workflow_id="child",
        workflow_type={"name": "Child"},
        versioning_override=override,
    )


async def test_a_child_pinned_to_an_unknown_version_is_not_started() -> None:
    engine = ManyHosts()
    await started(engine, "parent")
    engine.host("parent").do(child(pinned()))
    await engine.handle(engine.take("parent", "startChild"))
    last = engine.host("parent").events[engine.host("parent").info.run_id][-2]
    cause = Cause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_INVALID_VERSIONING_OVERRIDE
    assert last.start_child_workflow_execution_failed_event_attributes.cause == cause


async def test_a_start_is_checked_before_anything_else_happens() -> None:
    engine = ManyHosts()
    await started(engine, "wf")
    request = StartWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_id="wf", request_id="again", task_queue={"name": "queue"}
    )
    request.versioning_override.CopyFrom(pinned())
    with pytest.raises(FailedPrecondition) as refused:
        await engine.history.start_workflow_execution(request)
    assert refused.value.message == not_there("dep:v9")
