"""Calls about activities without a workflow: what is refused, in the official server's words, and what is filled in."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import (
    ActivityType,
    Link,
    OnConflictOptions,
    Payload,
    Payloads,
    Priority,
    RetryPolicy,
    WorkflowExecution,
    WorkflowType,
)
from temporalio.api.enums.v1 import ActivityExecutionStatus, WorkflowExecutionStatus
from temporalio.api.sdk.v1 import UserMetadata
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as ws

from common.contracts.visibility import ListPage
from common.protos import timestamp
from tests.behaviours.harness import Refusal

from .conftest import Setup

LONG = "x" * 1001
MINUTE = Duration(seconds=60)


def start(**fields: Any) -> ws.StartActivityExecutionRequest:
    """A request that is fine, with fields changed or, for None, left out."""
    whole: dict[str, Any] = {
        "namespace": "default",
        "activity_id": "a",
        "activity_type": ActivityType(name="T"),
        "task_queue": TaskQueue(name="q"),
        "start_to_close_timeout": MINUTE,
        **fields,
    }
    return ws.StartActivityExecutionRequest(**{name: value for name, value in whole.items() if value is not None})


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"start_delay": Duration(seconds=-1)}, "invalid StartDelay: negative duration"),
    ({"task_queue": None}, "taskQueue is not set"),
    ({"task_queue": TaskQueue()}, "missing task queue name"),
    ({"activity_id": ""}, "activityId is not set"),
    ({"activity_type": None}, "activityType is not set"),
    ({"activity_id": LONG}, "activityId exceeds length limit. Length=1001 Limit=1000"),
    ({"activity_type": ActivityType(name=LONG)}, "activityType exceeds length limit. Length=1001 Limit=1000"),
    (
        {"retry_policy": RetryPolicy(backoff_coefficient=0.5)},
        "BackoffCoefficient cannot be less than 1 on retry policy.",
    ),
    ({"priority": Priority(priority_key=-1)}, "invalid priorities: priority key can't be negative"),
    (
        {"start_to_close_timeout": None},
        "a valid StartToCloseTimeout or ScheduleToCloseTimeout must be set on the activity. ActivityId=a ActivityType=T",
    ),
    ({"heartbeat_timeout": Duration(seconds=-1)}, "invalid HeartbeatTimeout: negative duration"),
    ({"request_id": LONG}, "request ID exceeds length limit. Length=1001 Limit=1000"),
    ({"identity": LONG}, "identity exceeds length limit. Length=1001 Limit=1000"),
    ({"input": Payloads(payloads=[Payload(data=b"x" * (2 * 1024 * 1024))])}, "input exceeds length limit"),
    (
        {"user_metadata": UserMetadata(summary=Payload(data=b"x" * 400))},
        "user_metadata.summary exceeds size limit. Length=403 Limit=400",
    ),
    ({"links": [Link()]}, "unsupported link variant"),
    (
        {"on_conflict_options": OnConflictOptions(attach_completion_callbacks=True)},
        "on_conflict_options: attach_completion_callbacks requires attach_request_id to be set",
    ),
    (
        {"on_conflict_options": OnConflictOptions(attach_request_id=True)},
        "on_conflict_options: attach_request_id requires at least one completion callback or link",
    ),
]


@pytest.mark.parametrize("fields, message", FAULTS, ids=[message[:50] for _, message in FAULTS])
async def test_a_start_with_one_fault(setup: Setup, fields: dict[str, Any], message: str) -> None:
    assert await setup.refused(start(**fields)) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)
    assert not setup.history.requests


async def test_defaults_of_a_start(setup: Setup) -> None:
    await setup.call(start(start_to_close_timeout=None, schedule_to_close_timeout=MINUTE, heartbeat_timeout=MINUTE))
    seen = setup.history.last()
    assert seen.request_id
    assert (seen.id_reuse_policy, seen.id_conflict_policy) == (1, 1)
    assert (seen.start_to_close_timeout, seen.schedule_to_start_timeout) == (MINUTE, MINUTE)
    policy = seen.retry_policy
    assert (policy.initial_interval.seconds, policy.backoff_coefficient, policy.maximum_interval.seconds) == (1, 2, 100)


OTHERS = (
    ws.DescribeActivityExecutionRequest,
    ws.PollActivityExecutionRequest,
    ws.RequestCancelActivityExecutionRequest,
    ws.TerminateActivityExecutionRequest,
    ws.DeleteActivityExecutionRequest,
    ws.PauseActivityExecutionRequest,
    ws.UnpauseActivityExecutionRequest,
    ws.ResetActivityExecutionRequest,
    ws.UpdateActivityExecutionOptionsRequest,
)


@pytest.mark.parametrize("message", OTHERS)
async def test_ids(setup: Setup, message: Any) -> None:
    def refusal(text: str) -> Refusal:
        return Refusal(grpc.StatusCode.INVALID_ARGUMENT, text)

    assert await setup.refused(message(namespace="default")) == refusal("activity ID is required")
    wrong = message(namespace="default", activity_id="a", run_id="x")
    assert await setup.refused(wrong) == refusal("invalid run id: must be a valid UUID")
    long = message(namespace="default", activity_id=LONG)
    assert await setup.refused(long) == refusal("activity ID exceeds length limit. Length=1001 Limit=1000")


async def test_a_long_poll_token_needs_a_run_id(setup: Setup) -> None:
    asked = ws.DescribeActivityExecutionRequest(namespace="default", activity_id="a", long_poll_token=b"t")
    refused = await setup.refused(asked)
    assert refused.message == "run id is required when long poll token is provided"


async def test_changes_of_one_without_a_workflow_pass(setup: Setup) -> None:
    options = ActivityOptions(retry_policy=RetryPolicy(maximum_attempts=3))
    changed = ws.UpdateActivityExecutionOptionsRequest(namespace="default", activity_id="a", activity_options=options)
    changed.update_mask.paths.append("retry_policy")
    await setup.call(changed)
    seen = setup.history.last()
    assert (seen.activity_options.retry_policy.backoff_coefficient, bool(seen.request_id)) == (2, True)
    await setup.call(ws.PauseActivityExecutionRequest(namespace="default", activity_id="a", reason="why"))
    assert setup.history.asked("pause_activity_execution")[0].reason == "why"


async def test_workflow_ids_are_no_keys_of_other_archetypes(setup: Setup) -> None:
    execution = WorkflowExecution(workflow_id="\ufdd0activity\ufdd0a")
    asked = ws.DescribeWorkflowExecutionRequest(namespace="default", execution=execution)
    assert (await setup.refused(asked)).code == grpc.StatusCode.INVALID_ARGUMENT


async def test_lists(setup: Setup) -> None:
    when = timestamp(datetime(2026, 1, 1, tzinfo=UTC))
    info = WorkflowExecutionInfo(
        execution=WorkflowExecution(workflow_id="a", run_id="r"),
        type=WorkflowType(name="T"),
        start_time=when,
        close_time=when,
        status=WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TIMED_OUT,
    )
    setup.visibility.pages = [ListPage(executions=[info], next_page_token=b"more")]
    answer = await setup.call(ws.ListActivityExecutionsRequest(namespace="default", query="ActivityId = 'a'"))
    (listed,) = answer.executions
    assert (listed.activity_id, listed.run_id, listed.activity_type.name) == ("a", "r", "T")
    assert listed.status == ActivityExecutionStatus.ACTIVITY_EXECUTION_STATUS_TIMED_OUT
    assert answer.next_page_token == b"more"
    assert setup.visibility.lists[-1]["archetype"] == "activity"
    await setup.call(ws.CountActivityExecutionsRequest(namespace="default"))
    assert setup.visibility.counts[-1]["archetype"] == "activity"
