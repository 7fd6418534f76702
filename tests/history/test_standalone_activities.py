"""Activities without a workflow, on both databases: what the official server answered is what is expected here."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.common.v1 import Callback, Header, Payload
from temporalio.api.enums.v1 import ActivityExecutionStatus, PendingActivityState, RetryState, TimeoutType
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from common.errors import ActivityExecutionAlreadyStarted, FailedPrecondition, InvalidArgument, NotFound
from common.protos import from_duration
from history.callbacks.completion import completion_request
from tests.history.harness import payloads, seconds, start_request
from tests.history.standalone_bench import NAMESPACE, StandaloneBench, failed, running_bench, until

Status, Pending = ActivityExecutionStatus, PendingActivityState


async def status(bench: StandaloneBench) -> str:
    return Status.Name((await bench.describe()).status).removeprefix("ACTIVITY_EXECUTION_STATUS_")


async def run_state(bench: StandaloneBench) -> str:
    return Pending.Name((await bench.describe()).run_state).removeprefix("PENDING_ACTIVITY_STATE_")


async def test_from_start_to_result(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        started = await bench.start(input=payloads("in"), header=Header(fields={"k": Payload(data=b"v")}))
        assert started.started
        assert started.link.activity.run_id == started.run_id
        task = await bench.poll()
        assert (task.activity_id, task.activity_run_id, task.attempt) == ("a", started.run_id, 1)
        assert not task.workflow_execution.workflow_id
        assert not task.HasField("workflow_type")
        assert (task.input, task.header.fields["k"].data) == (payloads("in"), b"v")
        assert await run_state(bench) == "STARTED"
        await bench.complete(task.task_token, result=payloads("out"))
        assert (await bench.outcome()).result == payloads("out")
        described = await bench.describe()
        assert (described.state_transition_count, described.last_worker_identity) == (3, "worker")
        assert await status(bench) == "COMPLETED"
        with pytest.raises(NotFound, match="activity not found for ID: a"):
            await bench.complete(task.task_token)


async def test_what_was_acknowledged_is_there_after_a_crash(database_url: str) -> None:
    clock = ManualClock()
    async with running_bench(database_url, clock=clock) as bench:
        started = await bench.start(input=payloads("in"), schedule_to_close_timeout=seconds(60))
        task = await bench.poll()
        await bench.beat(task.task_token)
    async with running_bench(database_url, clock=clock, host="host-2") as bench:
        described = await bench.describe()
        assert (described.run_id, described.total_heartbeat_count) == (started.run_id, 1)
        assert (await bench.start()).run_id == started.run_id
        bench.advance(61)
        await until_closed(bench)
        assert await status(bench) == "TIMED_OUT"


async def until_closed(bench: StandaloneBench) -> None:
    state = await bench.state()
    await until(lambda: state.info.closed_at is not None)


async def test_ids(database_url: str) -> None:
    """Of another archetype the same id is another execution; policies are asked as for workflows."""
    async with running_bench(database_url) as bench:
        workflow = start_request()
        workflow.workflow_id = "a"
        await bench.history.start_workflow_execution(workflow)
        first = await bench.start()
        assert not (await bench.start()).started
        with pytest.raises(ActivityExecutionAlreadyStarted) as refused:
            await bench.start(request_id="other")
        assert (refused.value.run_id, refused.value.start_request_id) == (first.run_id, "start-a")
        used = await bench.start(request_id="other", id_conflict_policy=2)
        assert (used.run_id, used.started) == (first.run_id, False)
        await bench.complete((await bench.poll()).task_token)
        for policy in (2, 3):
            with pytest.raises(ActivityExecutionAlreadyStarted):
                await bench.start(request_id="more", id_reuse_policy=policy)
        again = await bench.start(request_id="more")
        assert again.run_id != first.run_id
        await bench.history.terminate_activity_execution(bench.of(ws.TerminateActivityExecutionRequest))
        assert (await bench.start(request_id="third", id_reuse_policy=2)).started
        assert (await bench.lab.engine.read(namespace=NAMESPACE, workflow_id="a")).info.archetype == ""


async def test_failures_are_retried_with_back_off(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start()
        await bench.fail((await bench.poll()).task_token)
        waiting = await bench.describe()
        assert (waiting.attempt, from_duration(waiting.current_retry_interval).total_seconds()) == (2, 1)
        assert waiting.HasField("next_attempt_schedule_time")
        assert waiting.last_failure.message == "no"
        bench.advance(1)
        task = await bench.poll()
        assert task.attempt == 2
        await bench.fail(task.task_token, failed(next_retry_delay=seconds(7)))
        assert from_duration((await bench.describe()).current_retry_interval).total_seconds() == 7
        bench.advance(7)
        await bench.fail((await bench.poll()).task_token, failed(non_retryable=True))
        outcome = await bench.outcome()
        assert outcome.failure.application_failure_info.type == "Mine"
        assert outcome.retry_state == RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE


TIMEOUTS: list[tuple[dict[str, Any], bool, TimeoutType.ValueType]] = [
    ({"schedule_to_start_timeout": seconds(5)}, False, TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START),
    ({"schedule_to_close_timeout": seconds(5)}, True, TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE),
    ({"start_to_close_timeout": seconds(5)}, True, TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE),
    ({"heartbeat_timeout": seconds(5)}, True, TimeoutType.TIMEOUT_TYPE_HEARTBEAT),
]


@pytest.mark.parametrize("fields, begun, kind", TIMEOUTS)
async def test_timeouts(database_url: str, fields: dict[str, Any], begun: bool, kind: TimeoutType.ValueType) -> None:
    async with running_bench(database_url) as bench:
        policy = request_policy(maximum_attempts=1)
        await bench.start(retry_policy=policy, **fields)
        if begun:
            await bench.poll()
        bench.advance(5)
        await until_closed(bench)
        failure = (await bench.outcome()).failure
        assert failure.timeout_failure_info.timeout_type == kind
        assert not failure.source


def request_policy(**fields: Any) -> Any:
    from tests.history.standalone_bench import POLICY

    changed = type(POLICY)()
    changed.CopyFrom(POLICY)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


async def test_cancel_is_heard_with_a_heartbeat(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start()
        token = (await bench.poll()).task_token
        canceled = ws.RespondActivityTaskCanceledRequest(namespace=NAMESPACE, task_token=token, details=payloads("d"))
        with pytest.raises(InvalidArgument, match="without activity being request canceled first"):
            await bench.history.respond_activity_task_canceled(canceled)
        asked = bench.of(ws.RequestCancelActivityExecutionRequest, identity="me", reason="why")
        await bench.history.request_cancel_activity_execution(asked)
        await bench.history.request_cancel_activity_execution(asked)
        with pytest.raises(FailedPrecondition, match="cancellation already requested with request ID r"):
            await bench.history.request_cancel_activity_execution(
                bench.of(ws.RequestCancelActivityExecutionRequest, request_id="r2")
            )
        assert (await bench.beat(token)).cancel_requested
        await bench.history.respond_activity_task_canceled(canceled)
        info = (await bench.outcome()).failure.canceled_failure_info
        assert (info.details, info.identity) == (payloads("d"), "me")
        assert (await bench.describe()).canceled_reason == "why"


async def test_one_that_no_worker_has_is_canceled_at_once(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start(start_delay=seconds(30))
        described = await bench.describe()
        assert described.next_attempt_schedule_time.seconds - described.schedule_time.seconds == 30
        await bench.history.request_cancel_activity_execution(
            bench.of(ws.RequestCancelActivityExecutionRequest, reason="why")
        )
        assert (await bench.outcome()).failure.canceled_failure_info.details == payloads("why")
        with pytest.raises(FailedPrecondition, match="activity is in terminal state Canceled"):
            await bench.history.request_cancel_activity_execution(
                bench.of(ws.RequestCancelActivityExecutionRequest, request_id="r2")
            )
        with pytest.raises(FailedPrecondition, match="invalid transition from Canceled"):
            await bench.history.terminate_activity_execution(bench.of(ws.TerminateActivityExecutionRequest))


async def test_a_delayed_one_begins_when_its_time_has_come(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start(start_delay=seconds(30), schedule_to_close_timeout=seconds(5))
        bench.advance(29)
        assert bench.lab.matching.added == []
        bench.advance(1)
        task = await bench.poll()
        assert task.current_attempt_scheduled_time.seconds - task.scheduled_time.seconds == 30


async def test_terminate_and_delete(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        run_id = (await bench.start()).run_id
        asked = bench.of(ws.TerminateActivityExecutionRequest, reason="why", identity="me")
        await bench.history.terminate_activity_execution(asked)
        await bench.history.terminate_activity_execution(asked)
        with pytest.raises(FailedPrecondition, match="already terminated with request ID r"):
            await bench.history.terminate_activity_execution(
                bench.of(ws.TerminateActivityExecutionRequest, request_id="r2")
            )
        assert (await bench.outcome()).failure.terminated_failure_info.identity == "me"
        open_one = (await bench.start(request_id="s2")).run_id
        for gone in (run_id, open_one):
            await bench.history.delete_activity_execution(
                ws.DeleteActivityExecutionRequest(namespace=NAMESPACE, activity_id="a", run_id=gone)
            )
        with pytest.raises(NotFound, match="activity not found for ID: a"):
            await bench.describe()


async def test_pause_holds_the_next_attempt(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start()
        token = (await bench.poll()).task_token
        await bench.history.pause_activity_execution(bench.of(ws.PauseActivityExecutionRequest))
        assert (await run_state(bench), await status(bench)) == ("PAUSE_REQUESTED", "RUNNING")
        assert (await bench.beat(token)).activity_paused
        await bench.fail(token)
        assert (await run_state(bench), await status(bench)) == ("PAUSED", "PAUSED")
        with pytest.raises(FailedPrecondition, match="activity is in non-pausable state Paused"):
            await bench.history.pause_activity_execution(bench.of(ws.PauseActivityExecutionRequest, request_id="r2"))
        bench.advance(100)
        await bench.history.unpause_activity_execution(bench.of(ws.UnpauseActivityExecutionRequest))
        assert (await bench.poll()).attempt == 2
        with pytest.raises(FailedPrecondition, match="activity is in non-unpausable state Started"):
            await bench.history.unpause_activity_execution(
                bench.of(ws.UnpauseActivityExecutionRequest, request_id="r2")
            )


async def test_a_reset_waits_for_the_attempt_that_runs(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start()
        await bench.fail((await bench.poll()).task_token)
        bench.advance(1)
        second = await bench.poll()
        await bench.history.reset_activity_execution(bench.of(ws.ResetActivityExecutionRequest))
        with pytest.raises(FailedPrecondition, match="pending reset"):
            await bench.history.reset_activity_execution(bench.of(ws.ResetActivityExecutionRequest, request_id="r2"))
        assert (await bench.beat(second.task_token)).activity_reset
        await bench.fail(second.task_token)
        first = await bench.poll()
        assert first.attempt == 1
        with pytest.raises(NotFound):
            await bench.beat(second.task_token)
        await bench.complete(first.task_token)


async def test_a_paused_one_is_reset_and_stays_paused(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start()
        await bench.fail((await bench.poll()).task_token)
        await bench.history.pause_activity_execution(bench.of(ws.PauseActivityExecutionRequest))
        await bench.history.reset_activity_execution(bench.of(ws.ResetActivityExecutionRequest, keep_paused=True))
        assert (await run_state(bench), (await bench.describe()).attempt) == ("PAUSED", 1)
        await bench.history.reset_activity_execution(bench.of(ws.ResetActivityExecutionRequest, request_id="r2"))
        assert (await bench.poll()).attempt == 1


async def test_options(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        await bench.start(start_delay=seconds(30))
        changed = bench.of(ws.UpdateActivityExecutionOptionsRequest)
        changed.activity_options.task_queue.name = "other"
        changed.activity_options.start_delay.seconds = 60
        changed.activity_options.retry_policy.maximum_attempts = 3
        changed.update_mask.paths.extend(["task_queue.name", "startDelay", "retry_policy.maximum_attempts"])
        answer = (await bench.history.update_activity_execution_options(changed)).activity_options
        assert (answer.task_queue.name, answer.start_delay.seconds) == ("other", 60)
        bench.advance(30)
        assert bench.lab.matching.added == []
        restored = bench.of(ws.UpdateActivityExecutionOptionsRequest, restore_original=True, request_id="r2")
        await bench.history.update_activity_execution_options(restored)
        task = await bench.poll()
        assert (await bench.describe()).task_queue == "queue"
        changed.request_id = "r3"
        with pytest.raises(FailedPrecondition, match="the first activity attempt has already been dispatched"):
            await bench.history.update_activity_execution_options(changed)
        await bench.complete(task.task_token)
        restored.request_id = "r4"
        with pytest.raises(FailedPrecondition, match="Cannot update options for activity in state Completed"):
            await bench.history.update_activity_execution_options(restored)


async def test_by_id(database_url: str) -> None:
    """No workflow id means one that has none; it need not be started to be completed."""
    async with running_bench(database_url) as bench:
        await bench.start()
        beat = ws.RecordActivityTaskHeartbeatByIdRequest(namespace=NAMESPACE, activity_id="a")
        with pytest.raises(NotFound, match="activity not found for ID: a"):
            await bench.history.record_activity_task_heartbeat_by_id(beat)
        completed = ws.RespondActivityTaskCompletedByIdRequest(
            namespace=NAMESPACE, activity_id="a", result=payloads("r")
        )
        await bench.history.respond_activity_task_completed_by_id(completed)
        assert (await bench.outcome()).result == payloads("r")
        with pytest.raises(FailedPrecondition, match="invalid transition from Completed"):
            await bench.history.respond_activity_task_completed_by_id(completed)


async def test_a_long_poll_sees_the_next_change(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        run_id = (await bench.start()).run_id
        asked = ws.DescribeActivityExecutionRequest(namespace=NAMESPACE, activity_id="a", run_id=run_id)
        known = await bench.history.describe_activity_execution(asked)
        asked.long_poll_token = known.long_poll_token
        await bench.poll()
        changed = await bench.history.describe_activity_execution(asked)
        assert changed.info.run_state == Pending.PENDING_ACTIVITY_STATE_STARTED
        asked.long_poll_token = b"bad"
        with pytest.raises(InvalidArgument, match="invalid long poll token"):
            await bench.history.describe_activity_execution(asked)


async def test_callbacks_tell_how_it_ended(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        callback = Callback(nexus=Callback.Nexus(url="http://127.0.0.1:1/x"))
        await bench.start(completion_callbacks=[callback])
        await bench.complete((await bench.poll()).task_token, result=payloads("r"))
        state = await bench.state()
        assert state.callbacks[1].state != "standby"
        sent = completion_request(state, state.callbacks[1], None)
        assert (sent.headers["nexus-operation-state"], sent.body) == ("succeeded", b'"r"')
        assert "/activities/a/" in sent.headers["nexus-link"]
        assert (await bench.history.describe_activity_execution(
            ws.DescribeActivityExecutionRequest(namespace=NAMESPACE, activity_id="a")
        )).callbacks[0].trigger.HasField("activity_closed")  # fmt: skip


async def test_its_row_of_the_read_model_is_in_a_division(database_url: str) -> None:
    async with running_bench(database_url) as bench:
        run_id = (await bench.start()).run_id
        await until(lambda: bool(bench.lab.visibility.applied))
        shown = bench.lab.visibility.applied[-1]
        assert (shown.run_id, shown.workflow_id, shown.workflow_type) == (run_id, "a", "Type")
        assert shown.search_attributes["TemporalNamespaceDivision"].data == b'"3332429922"'
