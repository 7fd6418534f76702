"""Deadlines that the state holds: the four timeouts of an activity, and how they are found and told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from temporalio.api.enums.v1 import RetryState, TimeoutType

from history.transitions.timeouts import OUT_OF_TIME, fire_deadlines
from tests.history.commands import retry_policy, schedule_activity
from tests.history.harness import payloads
from tests.history.test_activities import beat, by_id, complete
from tests.history.worker_host import WorkerHost

ONCE = retry_policy(attempts=1)


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def test_start_to_close(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=5, retry=ONCE))
    host.advance(60)  # waiting for a worker takes as long as it takes
    host.started_activity()
    host.advance(5)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.message == "activity StartToClose timeout"
    assert timed_out.failure.source == "Server"
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    assert timed_out.retry_state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
    assert host.types()[-3:] == ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_TIMED_OUT", "WORKFLOW_TASK_SCHEDULED"]


def test_start_to_close_is_retried(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=5, retry=retry_policy(initial=3)))
    host.started_activity()
    host.advance(5)
    item = host.activity()
    assert (item.attempt, item.retry_at) == (2, host.now + timedelta(seconds=3))
    assert item.last_failure is not None
    assert item.last_failure.message == "activity StartToClose timeout"
    host.advance(3)
    assert host.dispatched("activityTask")[-1].attempt == 2


def test_schedule_to_start_is_never_retried(host: WorkerHost) -> None:
    host.turn(schedule_activity(schedule_to_start=5))
    host.advance(5)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.message == "activity ScheduleToStart timeout"
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
    assert timed_out.retry_state == RetryState.RETRY_STATE_TIMEOUT
    assert timed_out.started_event_id == 0
    assert "ACTIVITY_TASK_STARTED" not in host.types()


def test_schedule_to_close(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=0, schedule_to_close=5))
    host.started_activity()
    host.advance(5)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.message == OUT_OF_TIME
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE


def test_a_timeout_without_time_for_another_attempt_is_schedule_to_close(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=4, schedule_to_close=5, retry=retry_policy(initial=2)))
    host.started_activity()
    host.advance(4)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.message == OUT_OF_TIME
    assert timed_out.retry_state == RetryState.RETRY_STATE_TIMEOUT


def test_a_heartbeat_timeout_counts_from_the_last_beat_and_gives_its_details(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=60, heartbeat=1, retry=ONCE))
    token = host.started_activity()
    host.advance(0.9)
    beat(host, token, payloads("there"))
    host.advance(0.9)
    assert "ACTIVITY_TASK_TIMED_OUT" not in host.types()
    host.advance(0.1)
    timed_out = host.attributes("activity_task_timed_out")
    assert timed_out.failure.message == "activity Heartbeat timeout"
    assert timed_out.failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    assert timed_out.failure.timeout_failure_info.last_heartbeat_details == payloads("there")


def test_the_heartbeat_clock_runs_from_the_start(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=60, heartbeat=1, retry=ONCE))
    host.advance(30)
    token = host.started_activity()
    host.advance(0.5)
    complete(host, token)


def test_a_paused_queue_wait_does_not_time_out(host: WorkerHost) -> None:
    host.turn(schedule_activity(schedule_to_start=5))
    host.change(lambda draft: draft.activities.__setitem__(5, replace(draft.activities[5], paused_at=host.now)))
    host.advance(60)
    assert host.state.activities


def test_an_early_or_repeated_look_changes_nothing_but_the_deadline(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=5, retry=ONCE))
    host.started_activity()
    deadline = host.info.deadline_at
    for _ in range(2):
        host.run(lambda work: fire_deadlines(work, host.info.run_id))
    assert host.info.deadline_at == deadline == host.now + timedelta(seconds=5)
    complete(host, by_id())
    host.turn()
    assert host.info.deadline_at is None


def test_an_activitys_timeout_while_a_task_is_started_waits_for_it(host: WorkerHost) -> None:
    host.turn(schedule_activity(start_to_close=3, retry=ONCE), force_create_new_workflow_task=True)
    host.started_activity()
    task = host.take()
    host.advance(3)
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"
    host.respond(task)
    assert host.types()[-4:] == [
        "WORKFLOW_TASK_COMPLETED",
        "ACTIVITY_TASK_STARTED",
        "ACTIVITY_TASK_TIMED_OUT",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    assert host.attributes("activity_task_timed_out").started_event_id == len(host.history) - 2


@given(
    st.lists(
        st.tuples(st.integers(1, 20), st.integers(0, 20), st.integers(0, 20), st.booleans()), min_size=1, max_size=6
    )
)
def test_a_deadline_is_never_late(activities: list[tuple[int, int, int, bool]]) -> None:
    """Whatever is pending, the stored deadline is no later than the earliest timeout, and all fire at their time."""
    host = WorkerHost()
    host.begin()
    host.turn(
        *(
            schedule_activity(
                f"a{number}", start_to_close=close, schedule_to_start=start, heartbeat=heartbeat, retry=ONCE
            )
            for number, (close, start, heartbeat, _) in enumerate(activities)
        )
    )
    expected = {}
    for number, (close, start, heartbeat, begins) in enumerate(activities):
        if begins:
            host.started_activity(f"a{number}")
            expected[f"a{number}"] = min(close, heartbeat or close)
        elif start:
            expected[f"a{number}"] = start
    begun = host.now
    for elapsed in range(1, 21):
        host.advance(1)
        left = {item.activity_id for item in host.state.activities.values()}
        for activity_id, due in expected.items():
            assert (activity_id in left) is (due > elapsed), (activity_id, due, elapsed)
    assert host.now == begun + timedelta(seconds=20)
