"""Runs and builds, by the older versioning: assignment, redirects, what tasks they may start, what Matching is told."""

from typing import Any

import pytest
from temporalio.api.common.v1 import ActivityType, WorkerVersionStamp
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest

from common.contracts.history import RecordWorkflowTaskStarted
from common.errors import NotFound, TaskObsolete
from history.transitions.activities import dispatch_again
from history.transitions.build_ids import note_build
from history.transitions.task_start import StartedTask, start_workflow_task
from history.version_directives import of_activity, of_workflow_task
from history.workspace import Workspace
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, seconds


def poll(host: Host, build_id: str, *, directive: str = "", versioned: bool = True) -> StartedTask:
    """A worker of the build gets the pending workflow task; the directive is what History says now."""
    task = host.info.workflow_task
    assert task is not None
    request = RecordWorkflowTaskStarted(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        run_id=host.info.run_id,
        scheduled_event_id=task.scheduled_event_id,
        attempt=task.attempt,
        stamp=task.stamp,
        request_id=f"poll-{build_id}-{len(host.types())}-{task.attempt}",
        poll=PollWorkflowTaskQueueRequest(
            namespace=NAMESPACE, task_queue=TaskQueue(name=task.task_queue), identity="worker"
        ),
        version_directive=directive or of_workflow_task(host.info),
    )
    if build_id:
        request.poll.worker_version_capabilities.build_id = build_id
        request.poll.worker_version_capabilities.use_versioning = versioned
    return host.run(lambda work: start_workflow_task(work, request))


def complete(host: Host, started: StartedTask, build_id: str, *commands: Any) -> None:
    stamp = WorkerVersionStamp(build_id=build_id, use_versioning=True)
    host.complete(started, *commands, worker_version_stamp=stamp)


def activity(name: str = "a", **fields: Any) -> Any:
    return command(
        "schedule_activity_task",
        activity_id=name,
        activity_type=ActivityType(name="Type"),
        task_queue=TaskQueue(name="queue"),
        schedule_to_close_timeout=seconds(60),
        use_workflow_build_id=True,
        **fields,
    )


def build_ids(host: Host) -> bytes:
    return host.info.search_attributes["BuildIds"].data


def test_the_first_start_on_a_versioned_worker_binds_the_run() -> None:
    host = Host()
    host.start()
    assert of_workflow_task(host.info) == "assign"
    started = poll(host, "A")
    assert host.last().worker_version == WorkerVersionStamp(build_id="A", use_versioning=True)
    assert host.last().build_id_redirect_counter == 0
    assert host.info.assigned_build_id == "A"
    assert build_ids(host) == b'["assigned:A","versioned:A"]'
    complete(host, started, "A", activity())
    assert of_workflow_task(host.info) == "build:A"
    [item] = host.state.activities.values()
    assert of_activity(host.info, item) == "build:A"


def test_version_sets_bind_no_run() -> None:
    host = Host()
    host.start()
    started = poll(host, "")
    complete(host, started, "1.0", activity())
    assert not host.info.assigned_build_id
    assert build_ids(host) == b'["versioned:1.0"]'
    assert of_workflow_task(host.info) == "build:1.0"
    [item] = host.state.activities.values()
    assert item.use_compatible_version
    assert of_activity(host.info, item) == "build:1.0"


def test_a_workflow_of_unversioned_workers_stays_unversioned() -> None:
    host = Host()
    host.start()
    started = poll(host, "sha", versioned=False)
    assert host.last().worker_version == WorkerVersionStamp(build_id="sha")
    host.complete(started, activity())
    assert of_workflow_task(host.info) == "auto"
    [item] = host.state.activities.values()
    assert of_activity(host.info, item) == "auto"


def test_an_activity_of_another_queue_is_assigned_there() -> None:
    host = Host()
    host.start()
    complete(host, poll(host, "A"), "A", activity(), _independent())
    own, other = host.state.activities.values()
    assert (of_activity(host.info, own), of_activity(host.info, other)) == ("build:A", "assign")


def _independent() -> Any:
    return command(
        "schedule_activity_task",
        activity_id="other",
        activity_type=ActivityType(name="Type"),
        task_queue=TaskQueue(name="elsewhere"),
        schedule_to_close_timeout=seconds(60),
    )


def signalled(host: Host) -> None:
    """A run bound to A, with another workflow task pending."""
    host.start()
    complete(
        host, poll(host, "A"), "A", activity(), command("start_timer", timer_id="t", start_to_fire_timeout=seconds(1))
    )
    host.advance(1)
    assert host.info.workflow_task is not None


def test_a_redirect_binds_the_run_anew_and_counts() -> None:
    host = Host()
    signalled(host)
    before = len(host.transfer_tasks)
    started = poll(host, "B", directive="build:A")
    assert started.redirected
    assert host.last().build_id_redirect_counter == 1
    assert (host.info.assigned_build_id, host.info.build_redirects) == ("B", 1)
    assert build_ids(host) == b'["assigned:B","versioned:A","versioned:B"]'
    host.run(lambda work: dispatch_again(work.run(host.info.run_id)))
    assert [task.kind for task in host.transfer_tasks[before:]] == ["activityTask"]
    complete(host, started, "B")


@pytest.mark.parametrize(
    ("build_id", "directive", "message"),
    [
        ("B", "build:C", "dispatch build ID is not the workflow's current build ID"),
        ("B", "assign", "dispatch build ID is not the workflow's current build ID"),
        ("", "build:A", "versioned workflow's task cannot be dispatched to unversioned workers"),
    ],
)
def test_a_task_for_a_build_that_the_run_has_left(build_id: str, directive: str, message: str) -> None:
    host = Host()
    signalled(host)
    with pytest.raises(TaskObsolete) as refused:
        poll(host, build_id, directive=directive)
    assert refused.value.message == message
    poll(host, "A")


def test_a_retried_task_on_another_build_has_events_of_its_own() -> None:
    host = Host()
    host.start()
    poll(host, "A")
    host.advance(10)
    assert host.types()[-1] == "WORKFLOW_TASK_TIMED_OUT"
    started = poll(host, "B")
    assert host.types()[-2:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    assert host.last().worker_version.build_id == host.info.assigned_build_id == "B"
    complete(host, started, "B", command("complete_workflow_execution"))


def test_a_retried_task_on_the_same_build_is_transient() -> None:
    host = Host()
    host.start()
    poll(host, "A")
    host.advance(10)
    started = poll(host, "A")
    assert host.types()[-1] == "WORKFLOW_TASK_TIMED_OUT"
    complete(host, started, "A")
    assert host.types()[-3:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED"]


def test_a_build_is_shown_before_a_worker_comes() -> None:
    host = Host()
    host.start()
    task = host.info.workflow_task
    assert task is not None

    def note(work: Workspace) -> None:
        note_build(work, run_id=host.info.run_id, scheduled_event_id=task.scheduled_event_id, build_id="A")

    host.run(note)
    assert host.info.assigned_build_id == "A"
    assert host.visibility[host.info.run_id].search_attributes["BuildIds"].data == build_ids(host)
    complete(host, poll(host, "A"), "A")
    assert host.info.build_redirects == 0
    host.run(note)  # late


def test_a_task_is_completed_by_the_build_that_has_it() -> None:
    host = Host()
    host.start()
    started = poll(host, "A")
    with pytest.raises(NotFound) as refused:
        complete(host, started, "B")
    assert refused.value.message == "this workflow task was dispatched to Build ID A, not B"
    complete(host, started, "A")
