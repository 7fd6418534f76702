"""User timers: start, fire, cancel; and rows that come too late."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from common.protos import from_duration
from history.commands import BadCommand
from history.transitions.timers import fire_timer
from tests.history.commands import cancel_timer, complete_workflow, schedule_activity, start_timer
from tests.history.test_activities import by_id, complete, fail
from tests.history.test_retry import application
from tests.history.worker_host import WorkerHost

Cause = WorkflowTaskFailedCause


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def test_a_timer_fires_when_it_is_due(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=0.2))
    host.advance(0.19)
    assert host.types()[-1] == "TIMER_STARTED"
    host.advance(0.01)
    assert host.types()[-2:] == ["TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"]
    fired = host.attributes("timer_fired")
    assert (fired.timer_id, fired.started_event_id) == ("t", 5)
    assert not host.state.timers
    assert not host.timer_tasks


@pytest.mark.parametrize("seconds", [0, None])
def test_a_timer_of_no_time_is_kept_as_given_and_fires(host: WorkerHost, seconds: float | None) -> None:
    host.turn(start_timer(seconds=seconds))
    started = host.attributes("timer_started")
    assert started.HasField("start_to_fire_timeout") is (seconds is not None)
    host.advance(0)
    assert "TIMER_FIRED" in host.types()


def test_a_very_long_timer_is_cut_to_a_hundred_years(host: WorkerHost) -> None:
    command = start_timer()
    command.start_timer_command_attributes.start_to_fire_timeout.CopyFrom(Duration(seconds=200 * 365 * 86_400))
    host.turn(command)
    assert from_duration(host.attributes("timer_started").start_to_fire_timeout) == timedelta(seconds=3_153_600_000)


def mixed_signs() -> Command:
    command = start_timer()
    command.start_timer_command_attributes.start_to_fire_timeout.CopyFrom(Duration(seconds=1, nanos=-1))
    return command


@pytest.mark.parametrize(
    ("command", "cause", "message"),
    [
        (start_timer(""), "BAD_START_TIMER_ATTRIBUTES", "TimerId is not set on StartTimerCommand."),
        (start_timer("é" * 501), "BAD_START_TIMER_ATTRIBUTES", "exceeds length limit."),
        (start_timer(seconds=-1), "BAD_START_TIMER_ATTRIBUTES", "negative duration. TimerId=t"),
        (mixed_signs(), "BAD_START_TIMER_ATTRIBUTES", "seconds and nanos with different signs"),
        (cancel_timer(""), "BAD_CANCEL_TIMER_ATTRIBUTES", "TimerId is not set on CancelTimerCommand."),
        (cancel_timer("none"), "BAD_CANCEL_TIMER_ATTRIBUTES", "TimerID: none"),
    ],
)
def test_a_bad_command_fails_the_task(host: WorkerHost, command: Command, cause: str, message: str) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(command)
    assert message in raised.value.message
    assert Cause.Name(host.attributes("workflow_task_failed").cause) == f"WORKFLOW_TASK_FAILED_CAUSE_{cause}"


def test_a_second_timer_of_the_same_id_fails_the_task(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(start_timer(), start_timer())
    assert raised.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_START_TIMER_DUPLICATE_ID
    assert raised.value.message.endswith("add-timer-started-event, TimerID: t")


def test_a_canceled_timer_never_fires(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5), force_create_new_workflow_task=True)
    host.turn(cancel_timer())
    canceled = host.attributes("timer_canceled")
    assert (canceled.timer_id, canceled.started_event_id, canceled.identity) == ("t", 5, "worker")
    assert not host.timer_tasks
    host.advance(10)
    assert "TIMER_FIRED" not in host.types()


def test_a_closed_runs_timers_are_gone(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5), force_create_new_workflow_task=True)
    (task,) = host.timer_tasks.values()
    host.turn(complete_workflow())
    assert not host.timer_tasks
    host.run(lambda work: fire_timer(work, task))
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"


def test_a_row_that_comes_twice_changes_nothing(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5))
    (task,) = host.timer_tasks.values()
    host.advance(5)
    events = len(host.history)
    host.run(lambda work: fire_timer(work, task))
    assert len(host.history) == events


def test_a_timer_started_again_under_its_id_is_another_timer(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5), force_create_new_workflow_task=True)
    (old,) = host.timer_tasks.values()
    host.turn(cancel_timer(), start_timer(seconds=60))
    host.run(lambda work: fire_timer(work, old))
    assert "TIMER_FIRED" not in host.types()
    assert host.state.timers


def test_a_back_off_whose_activity_is_gone_changes_nothing(host: WorkerHost) -> None:
    host.turn(schedule_activity())
    fail(host, host.started_activity(), application())
    (task,) = host.timer_tasks.values()
    complete(host, by_id())
    tasks = len(host.dispatched("activityTask"))
    host.run(lambda work: fire_timer(work, task))
    assert len(host.dispatched("activityTask")) == tasks


def test_a_timer_may_be_started_under_the_id_of_one_whose_end_the_worker_has_not_seen(host: WorkerHost) -> None:
    host.turn(start_timer(seconds=5))
    host.wake()
    task = host.take()
    host.advance(5)  # its end waits in the buffer
    host.respond(task, start_timer(seconds=60))
    assert host.types()[-3:] == ["TIMER_STARTED", "TIMER_FIRED", "WORKFLOW_TASK_SCHEDULED"]
    assert host.state.timers["t"].started_event_id > host.attributes("timer_fired").started_event_id
