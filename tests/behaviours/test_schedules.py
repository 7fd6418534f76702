"""Schedules as a client sees them: made, listed, triggered, deleted, and when they act around daylight saving."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy
from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest
from temporalio.api.schedule.v1 import Schedule, ScheduleSpec
from temporalio.api.workflowservice.v1 import DescribeScheduleResponse

from .harness import PATIENCE_S, Refusal, Server, error_of, payloads, refusal, seconds, unique

BUFFER_ONE = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE
ALLOW_ALL = Policy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def order(**parts: Any) -> Schedule:
    action = {
        "workflow_id": unique("scheduled"),
        "workflow_type": {"name": "Order"},
        "task_queue": {"name": unique("queue")},
    }
    return Schedule(action={"start_workflow": action}, **parts)  # type: ignore[arg-type]


@asynccontextmanager
async def made(server: Server, schedule: Schedule, **fields: Any) -> AsyncIterator[str]:
    schedule_id = unique("schedule")
    await create(server, schedule_id, schedule, **fields)
    yield schedule_id
    await server.call("DeleteSchedule", schedule_id=schedule_id)


async def create(server: Server, schedule_id: str, schedule: Schedule, **fields: Any) -> Any:
    fields.setdefault("request_id", str(uuid.uuid4()))
    return await server.call("CreateSchedule", schedule_id=schedule_id, schedule=schedule, **fields)


async def described(
    server: Server, schedule_id: str, until: Callable[[DescribeScheduleResponse], bool]
) -> DescribeScheduleResponse:
    """The description, once it is as told."""
    async with asyncio.timeout(PATIENCE_S):
        while not until(found := await server.call("DescribeSchedule", schedule_id=schedule_id)):
            pass
        return found


async def trigger(server: Server, schedule_id: str, *, at: int, policy: Policy.ValueType) -> None:
    moment = Timestamp(seconds=1_800_000_000 + at)
    patch = {"trigger_immediately": {"overlap_policy": policy, "scheduled_time": moment}}
    await server.call("PatchSchedule", schedule_id=schedule_id, patch=patch, request_id=str(uuid.uuid4()))


async def test_b38_a_list_shows_a_new_schedule_whole(server: Server, *, reference_server: bool) -> None:
    spec = {"interval": [{"interval": seconds(7_200)}], "cron_string": ["0 9 * * 1-5 # work"]}
    schedule = order(spec=spec, state={"notes": "a note", "paused": False})
    async with made(server, schedule, memo={"fields": {"team": payloads("blue").payloads[0]}}) as schedule_id:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                page = await server.call("ListSchedules", query=f"ScheduleId = '{schedule_id}'", maximum_page_size=10)
                if page.schedules or not reference_server:
                    break
        [entry] = page.schedules
        assert entry.schedule_id == schedule_id
        assert entry.info.workflow_type.name == "Order"
        assert entry.info.spec.interval[0].interval.seconds == 7_200
        assert entry.info.spec.structured_calendar[0].comment == "work"
        assert entry.info.notes == "a note"
        assert len(entry.info.future_action_times) == 5
        assert entry.memo.fields["team"].data == b'"blue"'
        assert (await server.call("CountSchedules", query=f"ScheduleId = '{schedule_id}'")).count == 1


async def test_b39_the_catchup_window_is_a_year(server: Server) -> None:
    async with made(server, order(spec={"interval": [{"interval": seconds(3_600)}]})) as schedule_id:
        found = await server.call("DescribeSchedule", schedule_id=schedule_id)
        assert found.schedule.policies.catchup_window.seconds == 365 * 86_400
        assert found.schedule.policies.overlap_policy == Policy.SCHEDULE_OVERLAP_POLICY_SKIP
        assert len(found.info.future_action_times) == 10
        assert found.info.HasField("create_time")
        assert not found.info.HasField("update_time")


async def test_b41_one_runs_one_waits_and_a_third_is_dropped(server: Server) -> None:
    async with made(server, order(policies={"overlap_policy": BUFFER_ONE}, state={"paused": True})) as schedule_id:
        for number in range(3):
            await trigger(server, schedule_id, at=number, policy=BUFFER_ONE)
            await described(server, schedule_id, lambda found, n=number: counted(found) == n + 1)  # type: ignore[misc]
        found = await server.call("DescribeSchedule", schedule_id=schedule_id)
        assert (found.info.action_count, found.info.buffer_size, found.info.overlap_skipped) == (1, 1, 1)
        await trigger(server, schedule_id, at=3, policy=ALLOW_ALL)
        found = await described(server, schedule_id, lambda found: found.info.action_count == 2)
        [running] = found.info.running_workflows
        await terminate(server, running)
        found = await described(server, schedule_id, lambda found: found.info.action_count == 3)
        assert [run.workflow_id for run in found.info.running_workflows] != [running.workflow_id]
        for action in found.info.recent_actions[1:]:
            await terminate(server, action.start_workflow_result)


def counted(found: DescribeScheduleResponse) -> int:
    return found.info.action_count + found.info.buffer_size + found.info.overlap_skipped


async def terminate(server: Server, execution: WorkflowExecution) -> None:
    await server.call("TerminateWorkflowExecution", workflow_execution=execution, identity="client")


@pytest.mark.parametrize(
    ("cron", "zone", "day", "days", "expected"),
    [
        ("30 2 * * *", NEW_YORK, "2027-03-13", 3, ["13 07:30", "15 06:30"]),
        ("30 1 * * *", NEW_YORK, "2027-11-07", 1, ["07 05:30", "07 06:30"]),
        ("30 2 * * *", NEW_YORK, "2027-11-07", 1, ["07 07:30"]),
        ("30 2 * * *", BERLIN, "2027-10-31", 1, ["31 01:30"]),
        ("30 1 * * *", BERLIN, "2027-10-30", 2, ["30 23:30"]),
        (
            "*/30 1-3 * * *",
            BERLIN,
            "2027-10-30",
            2,
            "30 00:30,30 01:00,30 01:30,30 23:00,30 23:30,31 00:00,31 01:30,31 02:00,31 02:30,01 00:00".split(","),
        ),
    ],
)
async def test_b43_crons_around_daylight_saving(
    server: Server,
    *,
    cron: str,
    zone: str,
    day: str,
    days: int,
    expected: list[str],
    reference_server: bool,
) -> None:
    spec = ScheduleSpec(cron_string=[cron], timezone_name=zone)
    found = await times(server, spec, day, days)
    if reference_server and (cron, zone) == ("30 1 * * *", BERLIN):
        expected = [*expected, "31 00:30"]  # which is 02:30 there
    assert found == expected


@pytest.mark.parametrize("zone", ["", NEW_YORK, "Asia/Kolkata"])
async def test_b43_intervals_know_no_zone(server: Server, zone: str) -> None:
    spec = ScheduleSpec(interval=[{"interval": seconds(86_400)}], timezone_name=zone)  # type: ignore[list-item]
    assert await times(server, spec, "2027-03-13", 3) == ["14 00:00", "15 00:00", "16 00:00"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ScheduleSpec(timezone_name="Mars/Crater"), "unknown time zone Mars/Crater"),
        (ScheduleSpec(cron_string=["TZ=UTC 1 * * * *"], timezone_name=BERLIN), "conflicting timezone names"),
        (ScheduleSpec(cron_string=["nope"]), "CronString does not have 5-7 fields"),
    ],
)
async def test_b43_specs_that_mean_nothing(server: Server, spec: ScheduleSpec, message: str) -> None:
    answer = await refusal(create(server, unique("schedule"), order(spec=spec)))
    assert answer == Refusal(INVALID, f"Invalid schedule spec: {message}", "")


async def times(server: Server, spec: ScheduleSpec, day: str, days: int) -> list[str]:
    begin = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
    async with made(server, order(spec=spec, state={"paused": True})) as schedule_id:
        answer = await server.call(
            "ListScheduleMatchingTimes",
            schedule_id=schedule_id,
            start_time=Timestamp(seconds=begin),
            end_time=Timestamp(seconds=begin + days * 86_400),
        )
    return [f"{time.ToDatetime():%d %H:%M}" for time in answer.start_time]


async def test_b44_a_deleted_schedule_is_gone_and_its_id_can_be_used_again(
    server: Server, *, reference_server: bool
) -> None:
    schedule_id = unique("schedule")
    schedule = order(spec={"interval": [{"interval": seconds(3_600)}]})
    await create(server, schedule_id, schedule)
    error = await error_of(create(server, schedule_id, schedule))
    assert error.code() == grpc.StatusCode.ALREADY_EXISTS
    assert error.details() == f'schedule "{schedule_id}" is already registered'
    await server.call("DeleteSchedule", schedule_id=schedule_id)
    if not reference_server:  # there it takes a moment
        assert not (await server.call("ListSchedules", query=f"ScheduleId = '{schedule_id}'")).schedules
    for method in ("DeleteSchedule", "DescribeSchedule"):
        error = await error_of(server.call(method, schedule_id=schedule_id))
        assert error.code() == grpc.StatusCode.NOT_FOUND
        assert reference_server or error.details() == "schedule not found"
    await create(server, schedule_id, schedule)
    assert (await server.call("DescribeSchedule", schedule_id=schedule_id)).info.action_count == 0
    await server.call("DeleteSchedule", schedule_id=schedule_id)


async def test_a_schedule_of_a_deleted_namespace_is_not_its_successors(
    server: Server, *, reference_server: bool
) -> None:
    name = unique("short-lived")
    day = seconds(86_400)
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=day)
    inside = server.within(name)
    await create(inside, "left-behind", order(spec={"interval": [{"interval": seconds(1)}]}))
    await server.operator_service.DeleteNamespace(DeleteNamespaceRequest(namespace=name), timeout=PATIENCE_S)
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=day)
    if not reference_server:  # it lists the old one's for some seconds more
        assert not (await inside.call("ListSchedules")).schedules


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"workflow_id": "w"}, "WorkflowType is not set on request."),
        ({"workflow_id": "w", "workflow_type": {"name": "t"}}, "taskQueue is not set"),
        (
            {
                "workflow_id": "w",
                "workflow_type": {"name": "t"},
                "task_queue": {"name": "q"},
                "cron_schedule": "* * * * *",
            },
            "Scheduled workflow must not contain CronSchedule",
        ),
        (
            {
                "workflow_id": "w",
                "workflow_type": {"name": "t"},
                "task_queue": {"name": "q"},
                "workflow_id_reuse_policy": 3,
            },
            "Scheduled workflow must not contain WorkflowIDReusePolicy",
        ),
    ],
)
async def test_actions_that_could_not_start(server: Server, action: dict[str, Any], message: str) -> None:
    schedule = Schedule(action={"start_workflow": action})  # type: ignore[arg-type]
    assert await refusal(create(server, unique("schedule"), schedule)) == Refusal(INVALID, message, "")
    update = server.call("UpdateSchedule", schedule_id="any", schedule=schedule)
    assert await refusal(update) == Refusal(INVALID, message, "")


async def test_requests_that_say_too_little_or_too_much(server: Server) -> None:
    missing = await refusal(create(server, unique("schedule"), order(), request_id=""))
    assert missing == Refusal(INVALID, "RequestId is not set on request.", "")
    no_patch = await refusal(server.call("PatchSchedule", schedule_id="any"))
    assert no_patch == Refusal(INVALID, "Patch is not set on request.", "")
    notes = await refusal(server.call("PatchSchedule", schedule_id="any", patch={"pause": "x" * 1_001}))
    assert notes == Refusal(INVALID, "Schedule notes exceeds limit.", "")
    nothing = await refusal(server.call("UpdateSchedule", schedule_id="any"))
    assert nothing == Refusal(INVALID, "Only StartWorkflow action is supported for schedules", "")
    reserved = await refusal(server.call("ListSchedules", query="WorkflowId = 'x'"))
    assert reserved.message == 'invalid query filter for schedules: cannot filter on "WorkflowId"'
