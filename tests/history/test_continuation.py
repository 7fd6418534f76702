"""How runs end and what follows them: completion, failure, retries, cron, time-outs, continue-as-new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import Callback, Link, Memo, Payload, Priority, RetryPolicy
from temporalio.api.enums.v1 import ContinueAsNewInitiator, RetryState, WorkflowExecutionStatus, WorkflowTaskFailedCause
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure

from common.protos import from_timestamp
from history.commands import BadCommand
from history.config import HistoryConfig
from history.records import ParentInfo
from history.transitions.begin import schedule_first_task
from history.transitions.terminate import terminate_run
from tests.history.harness import START, Host, command, payloads, seconds, start_request

Status, Initiator, Cause = WorkflowExecutionStatus, ContinueAsNewInitiator, WorkflowTaskFailedCause
POLICY = RetryPolicy(
    initial_interval=Duration(seconds=2),
    backoff_coefficient=2,
    maximum_interval=Duration(seconds=100),
    maximum_attempts=3,
)
NEXUS = Callback(nexus=Callback.Nexus(url="http://callback.example"))
PAYLOAD = Payload(metadata={"encoding": b"json/plain"}, data=b"1")
PARENT = ParentInfo(namespace="default", namespace_id="ns-id", workflow_id="parent", run_id="p", initiated_event_id=5)


def failing(message: str = "no", **info: Any) -> Any:
    return command(
        "fail_workflow_execution",
        failure=Failure(message=message, application_failure_info=ApplicationFailureInfo(**info)),
    )


def started_of(host: Host, run_id: str = "") -> Any:
    return host.events[run_id or host.info.run_id][0].workflow_execution_started_event_attributes


def test_completing_closes_the_run_with_its_result() -> None:
    host = Host()
    run_id = host.start().run_id
    host.do(command("complete_workflow_execution", result=payloads("out")))
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"
    assert (host.last().result, host.last().workflow_task_completed_event_id) == (payloads("out"), 4)
    info = host.info
    assert (info.status, info.closed_at, info.close_event_id) == (
        Status.WORKFLOW_EXECUTION_STATUS_COMPLETED,
        host.now,
        5,
    )
    assert host.visibility[run_id].close_time == host.now
    assert host.visibility[run_id].state_transition_count == info.state_transition_count
    assert [task.kind for task in host.transfer_tasks] == ["workflowTask"]


def test_a_close_is_told_to_parent_and_callbacks_only_at_the_chains_end() -> None:
    host = Host()
    host.start_with(start_request(completion_callbacks=[NEXUS]), parent=PARENT)
    host.run(lambda work: schedule_first_task(work.run()))
    host.do(command("continue_as_new_workflow_execution"))
    assert "closeExecution" not in [task.kind for task in host.transfer_tasks]
    assert host.info.parent == PARENT
    assert [item.callback for item in host.state.callbacks.values()] == [NEXUS]
    host.advance(1)
    host.do(command("complete_workflow_execution"))
    (close,) = [task for task in host.transfer_tasks if task.kind == "closeExecution"]
    assert (close.run_id, close.event_id) == (host.info.run_id, host.info.close_event_id)


def test_a_failure_is_retried_as_the_policy_says_until_its_attempts_are_used_up() -> None:
    host = Host()
    first = host.start(retry_policy=POLICY, input=payloads("in"), memo=Memo(fields={"m": PAYLOAD})).run_id
    host.advance(1)
    host.do(failing())
    failed = host.last(first)
    second = host.info.run_id
    assert (failed.retry_state, failed.new_execution_run_id) == (RetryState.RETRY_STATE_IN_PROGRESS, second)
    started = started_of(host)
    assert started.attempt == 2
    assert started.initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_RETRY
    assert started.first_workflow_task_backoff == seconds(2)
    assert (started.continued_execution_run_id, started.first_execution_run_id) == (first, first)
    assert started.continued_failure.message == "no"
    assert (started.input, started.memo.fields["m"]) == (payloads("in"), PAYLOAD)
    assert started.original_execution_run_id == second
    host.advance(2)
    host.do(failing())
    assert started_of(host).first_workflow_task_backoff == seconds(4)
    host.advance(4)
    host.do(failing())
    assert host.last().retry_state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED
    assert host.last().new_execution_run_id == ""
    assert len(host.states) == 3


@pytest.mark.parametrize(
    ("policy", "info", "state"),
    [
        (None, {}, RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET),
        (POLICY, {"non_retryable": True}, RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE),
        (RetryPolicy(non_retryable_error_types=["Bad"]), {"type": "Bad"}, RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE),
    ],
)
def test_a_failure_that_is_not_retried_says_why(policy: RetryPolicy | None, info: Any, state: int) -> None:
    host = Host()
    host.start(retry_policy=policy)
    host.do(failing(**info))
    assert host.last().retry_state == state
    assert host.info.status == Status.WORKFLOW_EXECUTION_STATUS_FAILED


def test_no_retry_begins_after_the_executions_deadline() -> None:
    host = Host()
    host.start(retry_policy=POLICY, workflow_execution_timeout=seconds(3))
    host.advance(2)
    host.do(failing())
    assert host.last().retry_state == RetryState.RETRY_STATE_TIMEOUT


def test_a_failure_may_ask_for_its_own_delay() -> None:
    host = Host()
    host.start(retry_policy=POLICY)
    host.do(failing(next_retry_delay=seconds(30)))
    assert started_of(host).first_workflow_task_backoff == seconds(30)


def test_a_cron_run_is_followed_at_the_schedules_next_time_with_its_result() -> None:
    host = Host(now=datetime(2026, 5, 4, 12, 3, 30, tzinfo=UTC))
    first = host.start(cron_schedule="*/5 * * * *").run_id
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    assert started_of(host).initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
    assert host.info.execution_time == datetime(2026, 5, 4, 12, 5, tzinfo=UTC)
    host.advance(90)
    host.advance(60)
    host.do(command("complete_workflow_execution", result=payloads("one")))
    completed = host.last(first)
    assert completed.new_execution_run_id == host.info.run_id
    started = started_of(host)
    assert started.last_completion_result == payloads("one")
    assert started.initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
    assert host.info.execution_time == datetime(2026, 5, 4, 12, 10, tzinfo=UTC)
    host.advance(240)
    # A run that takes longer than a slot skips it, and a failure keeps the last result.
    host.advance(400)
    host.do(failing())
    started = started_of(host)
    assert (started.last_completion_result, started.continued_failure.message) == (payloads("one"), "no")
    assert host.info.execution_time == datetime(2026, 5, 4, 12, 20, tzinfo=UTC)


def test_a_cron_run_is_retried_before_its_schedule_goes_on() -> None:
    host = Host()
    host.start(cron_schedule="@hourly", retry_policy=POLICY)
    host.advance(3_600)
    host.advance(1)
    host.do(failing())
    assert started_of(host).initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_RETRY
    assert started_of(host).attempt == 2


def test_a_terminated_cron_run_is_the_last() -> None:
    host = Host()
    host.start(cron_schedule="@hourly")
    host.run(lambda work: terminate_run(work.run(), reason="stop"))
    assert len(host.states) == 1


def test_a_run_times_out() -> None:
    host = Host()
    run_id = host.start(workflow_run_timeout=seconds(5)).run_id
    host.advance(4.9)
    assert host.info.status == Status.WORKFLOW_EXECUTION_STATUS_RUNNING
    host.advance(0.2)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_TIMED_OUT"
    assert host.last().retry_state == RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET
    assert host.info.closed_at == START + timedelta(seconds=5)
    assert host.visibility[run_id].status == Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT


def test_a_timed_out_run_is_retried_until_the_executions_time_is_up() -> None:
    host = Host()
    first = host.start(
        retry_policy=POLICY, workflow_run_timeout=seconds(5), workflow_execution_timeout=seconds(9)
    ).run_id
    host.advance(5)
    assert host.last(first).retry_state == RetryState.RETRY_STATE_IN_PROGRESS
    second = host.info.run_id
    assert started_of(host).continued_failure.timeout_failure_info.timeout_type
    assert started_of(host).continued_failure.message == "workflow timeout"
    assert host.info.run_expires_at == host.info.execution_expires_at == START + timedelta(seconds=9)
    host.advance(10)
    assert host.info.run_id == second
    assert host.last().retry_state == RetryState.RETRY_STATE_TIMEOUT
    assert host.info.closed_at == START + timedelta(seconds=9)


def test_a_time_out_fails_the_started_task_first() -> None:
    host = Host()
    host.start(workflow_run_timeout=seconds(5))
    host.poll()
    host.advance(5)
    assert host.types()[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_TIMED_OUT"]


def test_continue_as_new_takes_what_the_command_gives_and_else_the_runs_type_queue_and_timeouts() -> None:
    link = Link(workflow=Link.Workflow(namespace="default", workflow_id="other", run_id="r"))
    host = Host()
    first = host.start(
        input=payloads("old"),
        memo=Memo(fields={"m": PAYLOAD}),
        retry_policy=POLICY,
        workflow_run_timeout=seconds(50),
        workflow_execution_timeout=seconds(100),
        workflow_task_timeout=seconds(7),
        priority=Priority(priority_key=1),
        completion_callbacks=[NEXUS],
        links=[link],
    ).run_id
    host.advance(2)
    host.do(command("continue_as_new_workflow_execution", input=payloads("new")))
    old = host.last(first)
    second = host.info.run_id
    assert (old.new_execution_run_id, old.input, old.workflow_type.name) == (second, payloads("new"), "Type")
    assert old.initiator == 0  # as the command says
    assert old.workflow_task_completed_event_id == 4
    new = started_of(host)
    assert (new.input, new.attempt, new.identity) == (payloads("new"), 1, "")
    assert not new.HasField("memo")
    assert not new.HasField("retry_policy")
    assert (new.workflow_run_timeout, new.workflow_task_timeout) == (seconds(50), seconds(7))
    assert new.priority == Priority(priority_key=1)
    assert list(new.completion_callbacks) == [NEXUS]
    assert list(host.events[second][0].links) == [link]
    (point,) = new.prev_auto_reset_points.points
    assert (point.run_id, from_timestamp(point.expire_time)) == (first, host.now + timedelta(days=1))
    info = host.info
    assert (info.first_run_id, info.continued_from_run_id) == (first, first)
    assert info.execution_expires_at == START + timedelta(seconds=100)
    assert info.run_expires_at == START + timedelta(seconds=52)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    assert host.current is not None
    assert (host.current.run_id, host.current.first_run_id) == (second, first)
    assert host.states[first].info.continued_to_run_id == second


def test_continue_as_new_may_change_everything() -> None:
    host = Host()
    host.start(workflow_execution_timeout=seconds(100))
    host.advance(2)
    host.do(
        command(
            "continue_as_new_workflow_execution",
            workflow_type={"name": "Other"},
            task_queue={"name": "elsewhere"},
            workflow_run_timeout=seconds(500),
            workflow_task_timeout=seconds(3),
            backoff_start_interval=seconds(9),
            retry_policy=POLICY,
            memo=Memo(fields={"m": PAYLOAD}),
            cron_schedule="@hourly",
            last_completion_result=payloads("last"),
        )
    )
    info = host.info
    assert (info.workflow_type, info.task_queue, info.cron_schedule) == ("Other", "elsewhere", "@hourly")
    assert (info.run_timeout, info.task_timeout) == (timedelta(seconds=100), timedelta(seconds=3))
    assert (info.retry_policy, info.memo) == (POLICY, {"m": PAYLOAD})
    assert info.execution_time == host.now + timedelta(seconds=9)
    assert started_of(host).last_completion_result == payloads("last")
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]


def test_a_continued_runs_retry_policy_gets_the_servers_defaults() -> None:
    host = Host()
    host.start()
    host.do(command("continue_as_new_workflow_execution", retry_policy={"initial_interval": seconds(2)}))
    assert host.info.retry_policy == RetryPolicy(
        initial_interval=seconds(2), backoff_coefficient=2, maximum_interval=seconds(200)
    )
    assert started_of(host).retry_policy == host.info.retry_policy


def test_a_chain_can_not_spin() -> None:
    host = Host()
    host.start()
    host.advance(0.25)
    host.do(command("continue_as_new_workflow_execution"))
    assert started_of(host).first_workflow_task_backoff == seconds(0.75)
    host.advance(0.75)
    host.advance(5)
    host.do(command("continue_as_new_workflow_execution"))
    assert started_of(host).first_workflow_task_backoff == Duration()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"workflow_run_timeout": seconds(-1)},
            "Invalid WorkflowRunTimeout on ContinueAsNewWorkflowExecutionCommand: negative",
        ),
        (
            {"backoff_start_interval": Duration(seconds=1, nanos=-1)},
            "duration has seconds and nanos with different signs",
        ),
        ({"workflow_type": {"name": "é" * 501}}, "Length=1002 Limit=1000"),
        ({"task_queue": {"name": "q" * 1001}}, "taskQueue length exceeds limit"),
        (
            {"retry_policy": {"backoff_coefficient": 0.5}},
            "invalid WorkflowRetryPolicy on ContinueAsNewWorkflowExecutionCommand: BackoffCoefficient",
        ),
    ],
)
def test_bad_continue_as_new_commands_fail_the_task(attributes: Any, message: str) -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand) as failed:
        host.do(command("continue_as_new_workflow_execution", **attributes))
    assert failed.value.message.startswith("BadContinueAsNewAttributes: ")
    assert message in failed.value.message
    assert host.types()[-1] == "WORKFLOW_TASK_FAILED"


@pytest.mark.parametrize(
    ("kind", "cause"),
    [
        ("complete_workflow_execution", "BadCompleteWorkflowExecutionAttributes: CompleteWorkflowExecutionCommand"),
        ("fail_workflow_execution", "BadFailWorkflowExecutionAttributes: FailWorkflowExecutionCommand"),
        ("cancel_workflow_execution", "BadCancelWorkflowExecutionAttributes: CancelWorkflowExecutionCommand"),
    ],
)
def test_a_closing_command_needs_its_attributes(kind: str, cause: str) -> None:
    host = Host()
    host.start()
    bare = command(kind)
    bare.ClearField(f"{kind}_command_attributes")  # type: ignore[arg-type]
    with pytest.raises(BadCommand) as failed:
        host.do(bare)
    assert failed.value.message.startswith(cause)


def test_a_result_over_the_limit_ends_the_run() -> None:
    host = Host(config=HistoryConfig(blob_limit=100))
    host.start()
    with pytest.raises(BadCommand) as failed:
        host.do(command("complete_workflow_execution", result=payloads("x" * 100)))
    assert failed.value.terminate
    assert host.types()[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_TERMINATED"]


def test_reset_points_of_runs_that_are_gone_are_not_carried_on() -> None:
    host = Host()
    first = host.start().run_id
    host.advance(2)
    host.do(command("continue_as_new_workflow_execution"))
    for _ in range(2):
        host.advance(timedelta(hours=13))
        host.do(command("continue_as_new_workflow_execution"))
    assert first not in [point.run_id for point in host.info.reset_points]
