"""What becomes of an action while another runs, and what the state of a schedule lets happen."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.failure.v1 import Failure
from temporalio.api.schedule.v1 import BackfillRequest, TriggerImmediatelyRequest

from common.database import Database
from common.errors import FailedPrecondition, NotFound, WorkflowExecutionAlreadyStarted
from common.protos import duration, timestamp
from tests.contract.conftest import database  # noqa: F401  a fixture
from tests.worker.schedules.bench import HOUR, START, Bench, at, hourly

SKIP = Policy.SCHEDULE_OVERLAP_POLICY_SKIP
BUFFER_ONE = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE
BUFFER_ALL = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL
CANCEL_OTHER = Policy.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER
TERMINATE_OTHER = Policy.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER
ALLOW_ALL = Policy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
FAILED = Status.WORKFLOW_EXECUTION_STATUS_FAILED
TIMED_OUT = Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
CANCELED = Status.WORKFLOW_EXECUTION_STATUS_CANCELED


@pytest.fixture(scope="session")
def database_kind() -> str:
    """One kind will do: the store keeps its promises on both."""
    return "sqlite"


@pytest.fixture
def bench(database: Database) -> Bench:  # noqa: F811
    return Bench(database)


def trigger(policy: Policy.ValueType = SKIP) -> TriggerImmediatelyRequest:
    return TriggerImmediatelyRequest(overlap_policy=policy)


async def test_it_starts_a_run_at_each_of_its_times(bench: Bench) -> None:
    await bench.create(hourly())
    await bench.pass_time(HOUR)
    request = bench.history.starts[0]
    assert request.workflow_id == f"w-{at(1)}"
    assert request.identity == "temporal-scheduler-default-s"
    attributes = {name: msgspec.json.decode(p.data) for name, p in request.search_attributes.indexed_fields.items()}
    assert attributes == {"TemporalScheduledById": "s", "TemporalScheduledStartTime": at(1)}
    info = await bench.info()
    assert [run.workflow_id for run in info.running_workflows] == [f"w-{at(1)}"]
    assert info.action_count == 1
    await bench.end()
    info = await bench.info()
    assert not info.running_workflows
    assert info.recent_actions[0].start_workflow_status == Status.WORKFLOW_EXECUTION_STATUS_COMPLETED


async def test_skip(bench: Bench) -> None:
    await bench.create(hourly())
    await bench.pass_time(3 * HOUR)
    assert bench.history.started == [at(1)]
    assert (await bench.info()).overlap_skipped == 2
    await bench.end()
    await bench.pass_time(HOUR)
    assert bench.history.started == [at(1), at(4)]


async def test_b41_buffer_one_keeps_the_first_that_waits(bench: Bench) -> None:
    await bench.create(hourly(BUFFER_ONE))
    await bench.pass_time(3 * HOUR)
    info = await bench.info()
    assert (info.overlap_skipped, info.buffer_size, bench.history.started) == (1, 1, [at(1)])
    await bench.patch(trigger_immediately=trigger(ALLOW_ALL))  # its own policy wins
    await bench.run()
    assert bench.history.started == [at(1), at(3)]
    await bench.end(number=1)
    assert bench.history.started == [at(1), at(3), at(2)]


async def test_buffer_all(bench: Bench) -> None:
    await bench.create(hourly(BUFFER_ALL))
    await bench.pass_time(4 * HOUR)
    assert (await bench.info()).buffer_size == 3
    for number in range(2, 5):
        await bench.end()
        assert bench.history.started[-1] == at(number)


@pytest.mark.parametrize("policy", [CANCEL_OTHER, TERMINATE_OTHER])
async def test_the_other_is_ended(bench: Bench, policy: Policy.ValueType) -> None:
    await bench.create(hourly(policy))
    await bench.pass_time(2 * HOUR)
    [asked] = bench.history.ends
    assert asked.workflow_execution.workflow_id == f"w-{at(1)}"
    assert asked.first_execution_run_id == f"run of w-{at(1)}"
    word = "cancelled" if policy == CANCEL_OTHER else "terminated"
    assert asked.reason == f"{word} by schedule overlap policy"
    assert bench.history.started == [at(1)]
    await bench.end(CANCELED)
    assert bench.history.started == [at(1), at(2)]
    assert len(bench.history.ends) == 1


async def test_allow_all_waits_for_none_and_hears_of_none(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL))
    await bench.pass_time(3 * HOUR)
    assert bench.history.started == [at(1), at(2), at(3)]
    assert not any(request.completion_callbacks for request in bench.history.starts)
    assert not (await bench.info()).running_workflows


async def test_b39_what_passes_while_paused_is_neither_caught_up_with_nor_missed(bench: Bench) -> None:
    record = await bench.create(hourly(ALLOW_ALL))
    assert record.schedule.policies.catchup_window.seconds == 365 * 86_400
    await bench.patch(pause="a rest")
    assert (await bench.now()).next_at is None
    await bench.pass_time(5 * HOUR)
    await bench.patch(unpause="on")
    await bench.run()
    info = await bench.info()
    assert (info.missed_catchup_window, info.action_count) == (0, 0)
    await bench.pass_time(HOUR)
    assert bench.history.started == [at(6)]
    assert (await bench.now()).schedule.state.notes == "on"


async def test_after_the_catchup_window_slots_are_missed(bench: Bench) -> None:
    schedule = hourly(ALLOW_ALL)
    schedule.policies.catchup_window.CopyFrom(duration(2.5 * HOUR))
    await bench.create(schedule)
    bench.clock.advance(5 * HOUR)  # while no worker runs
    await bench.run()
    await bench.run()
    assert bench.history.started == [at(3), at(4), at(5)]
    assert (await bench.info()).missed_catchup_window == 2


async def test_a_failure_pauses(bench: Bench) -> None:
    schedule = hourly()
    schedule.policies.pause_on_failure = True
    await bench.create(schedule)
    await bench.pass_time(HOUR)
    await bench.end(FAILED, failure=Failure(message="no money"))
    state = (await bench.now()).schedule.state
    assert (state.paused, state.notes) == (True, f"paused due to workflow failure: w-{at(1)}: no money")
    await bench.patch(unpause="again")
    await bench.pass_time(HOUR)
    await bench.end(TIMED_OUT)
    assert (await bench.now()).schedule.state.notes == f"paused due to workflow timeout: w-{at(2)}"


async def test_the_next_run_gets_the_last_result_and_failure(bench: Bench) -> None:
    result = Payloads(payloads=[Payload(data=b"1")])
    await bench.create(hourly())
    await bench.pass_time(HOUR)
    await bench.end(result=result)
    await bench.pass_time(HOUR)
    await bench.end(FAILED, failure=Failure(message="oh"))
    await bench.pass_time(HOUR)
    await bench.end(CANCELED)
    await bench.pass_time(HOUR)
    seen = [(r.last_completion_result, r.continued_failure.message) for r in bench.history.starts]
    assert seen == [(Payloads(), ""), (result, ""), (result, "oh"), (result, "oh")]


async def test_limited_actions(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL, limited_actions=True, remaining_actions=2))
    assert len((await bench.info()).future_action_times) == 2
    await bench.pass_time(5 * HOUR)
    assert bench.history.started == [at(1), at(2)]
    assert (await bench.now()).schedule.state.remaining_actions == 0
    await bench.patch(trigger_immediately=trigger(ALLOW_ALL))
    await bench.run()
    assert len(bench.history.started) == 3


async def test_a_schedule_that_has_nothing_more_to_do_is_removed_after_a_week(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL, limited_actions=True, remaining_actions=1))
    await bench.pass_time(timedelta(days=7))
    assert (await bench.now()).action_count == 1
    await bench.pass_time(HOUR)
    with pytest.raises(NotFound):
        await bench.now()


async def test_backfills_include_their_start_and_come_in_lots(bench: Bench) -> None:
    await bench.create(hourly(paused=True))
    begin = START - 30 * HOUR
    span = {"start_time": timestamp(begin), "end_time": timestamp(begin + 24 * HOUR)}
    backfill = BackfillRequest(overlap_policy=ALLOW_ALL, **span)
    await bench.patch(backfill_request=[backfill], request_id="once")
    await bench.patch(backfill_request=[backfill], request_id="once")
    await bench.run()
    assert len(bench.history.started) == 10
    await bench.pass_time(timedelta(seconds=10))
    assert len(bench.history.started) == 25
    assert bench.history.started[0] == f"{begin:%Y-%m-%dT%H:%M:%SZ}"
    after_end = BackfillRequest(start_time=span["end_time"], end_time=span["start_time"])
    await bench.patch(backfill_request=[after_end])
    await bench.run()
    assert not (await bench.now()).backfills


async def test_the_buffer_has_an_end(bench: Bench) -> None:
    schedule = hourly(BUFFER_ALL)
    await bench.create(schedule)
    bench.clock.advance(1_100 * HOUR)
    await bench.run()
    info = await bench.info()
    assert info.buffer_size + info.buffer_dropped == 1_099
    assert info.buffer_size <= 1_000


async def test_an_update_is_compared_with_its_token(bench: Bench) -> None:
    await bench.create(hourly())
    described = await bench.service.describe(namespace="default", schedule_id="s")
    await bench.update(hourly(notes="first"), conflict_token=described.conflict_token, request_id="u")
    await bench.update(hourly(notes="first"), conflict_token=described.conflict_token, request_id="u")  # the same again
    with pytest.raises(FailedPrecondition, match="mismatched conflict token"):
        await bench.update(hourly(notes="second"), conflict_token=described.conflict_token)
    await bench.update(hourly(notes="third"))
    record = await bench.now()
    assert (record.schedule.state.notes, record.conflict_token) == ("third", 3)


async def test_an_update_does_not_bring_back_what_has_passed(bench: Bench) -> None:
    await bench.create(hourly(ALLOW_ALL, paused=True))
    await bench.pass_time(1.5 * HOUR)
    changed = hourly(ALLOW_ALL)
    changed.spec.interval[0].interval.CopyFrom(duration(timedelta(minutes=20)))
    await bench.update(changed)
    await bench.pass_time(0.5 * HOUR)
    assert bench.history.started == [at(1, 40), at(2)]


async def test_an_id_is_taken_until_its_schedule_is_deleted(bench: Bench) -> None:
    made = await bench.create(hourly())
    assert (await bench.create(hourly())).incarnation == made.incarnation  # nobody heard that it was made
    await bench.store.change(lambda record: record.request_ids.clear(), namespace="default", schedule_id="s")
    with pytest.raises(WorkflowExecutionAlreadyStarted, match='schedule "s" is already registered'):
        await bench.create(hourly())
    await bench.pass_time(HOUR)
    await bench.service.delete(namespace="default", schedule_id="s")
    await bench.create(hourly(notes="anew"))
    await bench.end(number=1)  # of the earlier one's run: this one's has not been started
    assert (await bench.now()).schedule.state.notes == "anew"


async def test_the_original_id_may_be_kept(bench: Bench) -> None:
    schedule = hourly()
    schedule.policies.keep_original_workflow_id = True
    await bench.create(schedule)
    await bench.pass_time(HOUR)
    assert bench.history.starts[0].workflow_id == "w"
