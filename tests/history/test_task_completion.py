"""Completions: what follows a task, heartbeats, unhandled commands, limits, the next task in the answer."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import VersioningBehavior, WorkerVersioningMode, WorkflowTaskFailedCause
from temporalio.api.history.v1 import WorkflowExecutionSignaledEventAttributes
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import TaskToken, decode_token
from common.errors import InvalidArgument
from history.commands import BadCommand
from history.config import HistoryConfig
from history.events import add_event
from history.state import Draft
from history.transitions.task_completion import HistoryTooLarge, complete_workflow_task, end_over_limit
from history.transitions.task_start import INLINE_REQUEST_ID
from history.transitions.workflow_tasks import schedule_workflow_task
from tests.history.commands import (
    cancel_timer,
    complete_workflow,
    marker,
    schedule_activity,
    start_timer,
)
from tests.history.worker_host import WorkerHost

Cause = WorkflowTaskFailedCause


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def signal(draft: Draft) -> None:
    add_event(draft, WorkflowExecutionSignaledEventAttributes(signal_name="s"))
    schedule_workflow_task(draft)


def test_events_that_arrived_meanwhile_lead_to_another_task(host: WorkerHost) -> None:
    task = host.take()
    host.change(signal)
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"
    completion = host.respond(task, marker())
    assert completion.task_pending
    assert host.types()[3:] == [
        "WORKFLOW_TASK_COMPLETED",
        "MARKER_RECORDED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert not host.state.buffered


def test_the_next_task_comes_with_the_answer_when_the_worker_asks(host: WorkerHost) -> None:
    task = host.take()
    host.change(signal)
    before = len(host.dispatched("workflowTask"))
    completion = host.respond(task, sticky="sticky", return_new_workflow_task=True)
    assert completion.next_task is not None
    assert len(host.dispatched("workflowTask")) == before
    answer = host.answer(completion.next_task)
    assert [event.event_id for event in answer.history.events] == [4, 5, 6, 7]
    assert host.attributes("workflow_task_started").request_id == INLINE_REQUEST_ID
    host.respond(answer)


def test_nothing_new_means_no_task(host: WorkerHost) -> None:
    completion = host.respond(host.take(), start_timer(), return_new_workflow_task=True)
    assert completion.next_task is None
    assert host.info.workflow_task is None
    assert host.info.deadline_at is None


@pytest.mark.parametrize("commands", [(), (marker(),)])
def test_a_heartbeat_keeps_the_task_alive_for_half_an_hour(host: WorkerHost, commands: tuple[Command, ...]) -> None:
    task = host.take()
    for _ in range(3):
        host.advance(9)
        completion = host.respond(
            task, *commands, sticky="sticky", force_create_new_workflow_task=True, return_new_workflow_task=True
        )
        assert completion.next_task is not None
        task = host.answer(completion.next_task)
    pending = host.info.workflow_task
    assert pending is not None
    if commands:  # a worker that makes progress may go on for ever
        assert pending.original_scheduled_at == host.now
    else:
        assert pending.original_scheduled_at == host.now - timedelta(seconds=27)


def test_a_heartbeat_beyond_its_limit_times_out() -> None:
    host = WorkerHost(config=HistoryConfig(heartbeat_task_limit=timedelta(seconds=20)))
    host.begin()
    task = host.take()
    for _ in range(2):
        host.advance(9)
        completion = host.respond(task, force_create_new_workflow_task=True, return_new_workflow_task=True)
        assert completion.next_task is not None
        task = host.answer(completion.next_task)
    host.advance(9)
    completion = host.respond(task, sticky="sticky", force_create_new_workflow_task=True, return_new_workflow_task=True)
    assert completion.heartbeat_timed_out
    assert completion.next_task is None
    assert "WORKFLOW_TASK_TIMED_OUT" in host.types()
    assert host.info.sticky_queue == ""
    assert host.info.workflow_task is not None  # on the normal queue again


def test_a_closing_command_is_unhandled_when_events_wait(host: WorkerHost) -> None:
    task = host.take()
    host.change(signal)
    with pytest.raises(BadCommand) as raised:
        host.respond(task, complete_workflow())
    assert raised.value.message == "UnhandledCommand"
    assert host.types()[3:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_SCHEDULED"]
    failed = host.attributes("workflow_task_failed")
    assert failed.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
    host.turn(complete_workflow())
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"


def test_canceling_the_timer_that_fired_meanwhile_lets_the_run_close(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5), force_create_new_workflow_task=True)
    task = host.take()
    host.advance(5)
    assert len(host.state.buffered) == 1
    host.respond(task, cancel_timer(), complete_workflow())
    assert host.types()[-2:] == ["TIMER_CANCELED", "WORKFLOW_EXECUTION_COMPLETED"]
    assert "TIMER_FIRED" not in host.types()


def test_a_task_that_keeps_failing_is_left_to_its_timeout(host: WorkerHost) -> None:
    bad = schedule_activity("")
    with pytest.raises(BadCommand):
        host.turn(bad)
    events = len(host.history)
    with pytest.raises(BadCommand):
        host.turn(bad)
    task = host.info.workflow_task
    assert len(host.history) == events
    assert task is not None
    assert (task.attempt, task.started_event_id) == (2, 6)
    host.advance(10)
    assert host.info.workflow_task is not None
    assert host.info.workflow_task.attempt == 3


def test_a_failed_completion_leaves_nothing_of_its_commands(host: WorkerHost) -> None:
    with pytest.raises(BadCommand):
        host.turn(schedule_activity(), start_timer(), schedule_activity(""))
    assert host.types()[-2:] == ["WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_FAILED"]
    assert not host.state.activities
    assert not host.timer_tasks


def test_a_closing_command_must_be_the_last(host: WorkerHost) -> None:
    task = host.take()
    message = (
        "invalid command sequence: [CompleteWorkflowExecution, RecordMarker], "
        "command CompleteWorkflowExecution must be the last command."
    )
    with pytest.raises(InvalidArgument) as raised:
        host.respond(task, complete_workflow(), marker())
    assert raised.value.message == message
    with pytest.raises(InvalidArgument, match="unknown command type: 99"):
        host.respond(task, Command(command_type=99))  # type: ignore[arg-type]
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"  # the task is as it was
    host.respond(task, complete_workflow())


def test_a_history_over_its_limit_ends_the_run() -> None:
    host = WorkerHost(config=HistoryConfig(history_events_limit=10))
    host.begin()
    task = host.take()
    with pytest.raises(HistoryTooLarge) as raised:
        host.respond(task, *(marker(str(number)) for number in range(10)))
    token = decode_token(TaskToken, task.task_token)
    reason = raised.value.reason
    host.run(lambda work: end_over_limit(work, token, reason=reason))
    assert host.types()[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_TERMINATED"]
    assert host.attributes("workflow_execution_terminated").reason == "Workflow history count exceeds limit."


def test_the_completed_event_keeps_what_the_worker_says(host: WorkerHost) -> None:
    task = host.take()
    request = ws.RespondWorkflowTaskCompletedRequest(
        task_token=task.task_token,
        identity="me",
        binary_checksum="sum",
        worker_version_stamp={"build_id": "b1"},
        sdk_metadata={"core_used_flags": [1], "lang_used_flags": [2]},
        metering_metadata={"nonfirst_local_activity_execution_attempts": 3},
        versioning_behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED,
        deployment_options={
            "deployment_name": "d",
            "build_id": "b2",
            "worker_versioning_mode": WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED,
        },
    )
    token = decode_token(TaskToken, task.task_token)
    host.run(lambda work: complete_workflow_task(work, request, token))
    completed = host.attributes("workflow_task_completed")
    assert completed.worker_version.build_id == "b1"
    assert list(completed.sdk_metadata.lang_used_flags) == [2]
    assert completed.metering_metadata.nonfirst_local_activity_execution_attempts == 3
    assert completed.worker_deployment_name == "d"
    assert completed.deployment_version.build_id == "b2"
    assert completed.versioning_behavior == VersioningBehavior.VERSIONING_BEHAVIOR_PINNED
    assert [point.build_id for point in host.info.reset_points] == ["b2"]


def test_a_versioning_behavior_needs_a_versioned_worker(host: WorkerHost) -> None:
    with pytest.raises(InvalidArgument, match="versioning behavior cannot be specified"):
        host.turn(versioning_behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED)


def test_reset_points_are_few_and_one_for_each_build(host: WorkerHost) -> None:
    for number in range(25):
        host.wake()
        host.turn(binary_checksum=f"sum-{number // 2}" if number < 4 else f"sum-{number}")
    sums = [point.binary_checksum for point in host.info.reset_points]
    assert len(sums) == 20
    assert sums[-1] == "sum-24"
    assert len(set(sums)) == 20
