"""What a start is refused for, in the words of the official server 1.32.0, and what is filled in."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import (
    Callback,
    Link,
    Memo,
    Payload,
    Payloads,
    Priority,
    RetryPolicy,
    SearchAttributes,
    WorkflowType,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    SignalWithStartWorkflowExecutionRequest,
    StartWorkflowExecutionRequest,
)

from common.callback_addresses import CallbackAddress
from frontend.config import FrontendConfig
from tests.behaviours.harness import Refusal

from .conftest import Setup, serving

TOO_LARGE = b"x" * (2 * 1024 * 1024 + 1)
CENTURY_S = 3_153_600_000
REUSE_TERMINATE, REUSE_REJECT = 4, 3
CONFLICT_FAIL, CONFLICT_USE_EXISTING, CONFLICT_TERMINATE = 1, 2, 3


def start(**fields: Any) -> StartWorkflowExecutionRequest:
    whole: dict[str, Any] = {
        "namespace": "default",
        "workflow_id": "w",
        "workflow_type": WorkflowType(name="T"),
        "task_queue": TaskQueue(name="q"),
    }
    return StartWorkflowExecutionRequest(**{k: v for k, v in (whole | fields).items() if v is not None})


def signal_with_start(**fields: Any) -> SignalWithStartWorkflowExecutionRequest:
    whole: dict[str, Any] = {
        "namespace": "default",
        "workflow_id": "w",
        "workflow_type": WorkflowType(name="T"),
        "task_queue": TaskQueue(name="q"),
        "signal_name": "s",
    }
    return SignalWithStartWorkflowExecutionRequest(**{k: v for k, v in (whole | fields).items() if v is not None})


def attributes(**values: Any) -> SearchAttributes:
    return SearchAttributes(
        indexed_fields={
            name: Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value).encode())
            for name, value in values.items()
        }
    )


# What is wrong → what the official server says, each alone in an otherwise sound request.
START_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"workflow_id": ""}, "WorkflowId is not set on request."),
    ({"workflow_id": "x" * 1001}, "WorkflowId exceeds maximum allowed length (1001/1000)"),
    ({"workflow_id": "é" * 501}, "WorkflowId exceeds maximum allowed length (1002/1000)"),
    (
        {"retry_policy": RetryPolicy(backoff_coefficient=0.5)},
        "BackoffCoefficient cannot be less than 1 on retry policy.",
    ),
    (
        {"retry_policy": RetryPolicy(initial_interval=Duration(seconds=-1))},
        "invalid InitialInterval set on retry policy: negative duration",
    ),
    (
        {"retry_policy": RetryPolicy(initial_interval=Duration(seconds=1, nanos=-1))},
        "invalid InitialInterval set on retry policy: duration has seconds and nanos with different signs",
    ),
    (
        {"retry_policy": RetryPolicy(maximum_interval=Duration(seconds=-5))},
        "invalid MaximumInterval set on retry policy: negative duration",
    ),
    (
        {"retry_policy": RetryPolicy(initial_interval=Duration(seconds=10), maximum_interval=Duration(seconds=5))},
        "MaximumInterval cannot be less than InitialInterval on retry policy.",
    ),
    ({"retry_policy": RetryPolicy(maximum_attempts=-1)}, "MaximumAttempts cannot be negative on retry policy."),
    (
        {"retry_policy": RetryPolicy(non_retryable_error_types=["TemporalTimeout:Foo"])},
        "Invalid timeout type value: Foo.",
    ),
    (
        {"cron_schedule": "* * * * *", "workflow_start_delay": Duration()},
        "CronSchedule and WorkflowStartDelay may not be used together.",
    ),
    (
        {"workflow_start_delay": Duration(seconds=-1)},
        "An invalid WorkflowStartDelaySeconds is set on request. cause: negative duration",
    ),
    ({"cron_schedule": "x"}, "invalid CronSchedule."),
    (
        {"cron_schedule": "0 0 30 2 *"},
        "invalid CronSchedule, no time can be found to satisfy the schedule",
    ),
    ({"workflow_type": None}, "WorkflowType is not set on request."),
    ({"workflow_type": WorkflowType()}, "WorkflowType is not set on request."),
    ({"workflow_type": WorkflowType(name="t" * 1001)}, "WorkflowType length exceeds limit."),
    ({"task_queue": None}, "taskQueue is not set"),
    ({"task_queue": TaskQueue()}, "missing task queue name"),
    ({"task_queue": TaskQueue(name="q" * 1001)}, "taskQueue length exceeds limit"),
    ({"task_queue": TaskQueue(name="/_sys/x")}, "task queue name cannot start with reserved prefix /_sys/"),
    (
        {"task_queue": TaskQueue(name="temporal-sys-per-ns-tq")},
        "cannot use internal per-namespace task queue:temporal-sys-per-ns-tq",
    ),
    (
        {"workflow_execution_timeout": Duration(seconds=-1)},
        "An invalid WorkflowExecutionTimeoutSeconds is set on request. cause: negative duration",
    ),
    (
        {"workflow_run_timeout": Duration(nanos=-1)},
        "An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration",
    ),
    (
        {"workflow_task_timeout": Duration(seconds=1, nanos=-1)},
        "An invalid WorkflowTaskTimeoutSeconds is set on request. "
        "cause: duration has seconds and nanos with different signs",
    ),
    ({"request_id": "r" * 1001}, "RequestId length exceeds limit."),
    (
        {"workflow_id_reuse_policy": REUSE_TERMINATE, "workflow_id_conflict_policy": CONFLICT_FAIL},
        "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together with a "
        "WorkflowIDConflictPolicy",
    ),
    (
        {"workflow_id_reuse_policy": REUSE_REJECT, "workflow_id_conflict_policy": CONFLICT_TERMINATE},
        "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with "
        "WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING",
    ),
    (
        {"on_conflict_options": {"attach_completion_callbacks": True}},
        "attaching request ID is required for attaching completion callbacks",
    ),
    (
        {"search_attributes": attributes(Nope=1)},
        "Namespace default has no mapping defined for search attribute Nope",
    ),
    ({"priority": Priority(priority_key=-1)}, "priority key can't be negative"),
    ({"priority": Priority(fairness_key="x" * 65)}, "fairness key length exceeds limit"),
    ({"priority": Priority(fairness_weight=-1)}, "must be greater than zero"),
    (
        {"completion_callbacks": [Callback(nexus=Callback.Nexus(url="http://x/"))]},
        "invalid url: url does not match any configured callback address: http://x/",
    ),
    ({"links": [Link()]}, "unsupported link variant"),
    ({"links": [Link(batch_job={})]}, "batch job link must not have an empty job ID"),
    (
        {"links": [Link(batch_job={"job_id": "j"})] * 11},
        "cannot attach more than 10 links per request, got 11",
    ),
    ({"input": Payloads(payloads=[Payload(data=TOO_LARGE)])}, "Blob data size exceeds limit."),
    ({"memo": Memo(fields={"a": Payload(data=TOO_LARGE)})}, "Memo size exceeds limit."),
]


@pytest.mark.parametrize("fields, message", START_FAULTS, ids=[message[:60] for _, message in START_FAULTS])
async def test_a_start_with_one_fault_is_refused_in_upstreams_words(
    setup: Setup, fields: dict[str, Any], message: str
) -> None:
    assert await setup.refused(start(**fields)) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)
    assert not setup.history.requests


SIGNAL_WITH_START_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"cron_schedule": "x"}, "invalid CronSchedule."),
    ({"workflow_id": ""}, "WorkflowId is not set on request."),
    ({"signal_name": ""}, "signal not set"),
    ({"signal_name": "s" * 1001}, "signal name exceeds maximum allowed length (1001/1000)"),
    ({"workflow_type": None}, "workflow type not set"),
    (
        {"workflow_type": WorkflowType(name="t" * 1001)},
        "workflow type name exceeds maximum allowed length (1001/1000)",
    ),
    ({"task_queue": None}, "taskQueue is not set"),
    ({"request_id": "r" * 1001}, "Request ID exceeds maximum allowed length (1001/1000)"),
    (
        {"workflow_run_timeout": Duration(seconds=-1)},
        "An invalid WorkflowRunTimeoutSeconds is set on request. cause: negative duration",
    ),
    ({"retry_policy": RetryPolicy(maximum_attempts=-1)}, "MaximumAttempts cannot be negative on retry policy."),
    (
        {"workflow_id_conflict_policy": CONFLICT_FAIL},
        "Invalid WorkflowIDConflictPolicy: WORKFLOW_ID_CONFLICT_POLICY_FAIL is not supported for this operation.",
    ),
    (
        {"search_attributes": attributes(WorkflowId="x")},
        "WorkflowId attribute can't be set in SearchAttributes",
    ),
    ({"signal_input": Payloads(payloads=[Payload(data=TOO_LARGE)])}, "Blob data size exceeds limit."),
]


@pytest.mark.parametrize(
    "fields, message", SIGNAL_WITH_START_FAULTS, ids=[message[:60] for _, message in SIGNAL_WITH_START_FAULTS]
)
async def test_a_signal_with_start_with_one_fault_is_refused_in_upstreams_words(
    setup: Setup, fields: dict[str, Any], message: str
) -> None:
    assert await setup.refused(signal_with_start(**fields)) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


async def test_an_unknown_callback_is_not_implemented(setup: Setup) -> None:
    refused = await setup.refused(start(completion_callbacks=[Callback()]))
    assert refused == Refusal(grpc.StatusCode.UNIMPLEMENTED, "unknown callback variant: <nil>")


async def test_callbacks_to_allowed_addresses_are_taken_with_the_names_of_their_headers_in_lower_case() -> None:
    config = FrontendConfig(callback_addresses=(CallbackAddress.parse("http://x"),), callback_header_limit=8)
    async with serving(Setup(config=config)) as setup:
        await setup.call(start(completion_callbacks=[callback("http://x/", {"Token": "abc"})]))
        assert setup.history.last().completion_callbacks == [callback("http://x/", {"token": "abc"})]
        refused = await setup.refused(start(completion_callbacks=[callback("http://x/", {"Token": "abcd"})]))
        message = "invalid header: header size longer than max allowed size of 8"
        assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def callback(url: str, header: dict[str, str]) -> Callback:
    return Callback(nexus=Callback.Nexus(url=url, header=header))


@pytest.mark.parametrize("size", [256, 999, 1000])
@pytest.mark.parametrize("letter", ["x", "é"])
async def test_names_of_up_to_a_thousand_bytes_are_taken(setup: Setup, size: int, letter: str) -> None:
    name = letter * (size // len(letter.encode()))
    await setup.call(
        start(
            workflow_id=name,
            workflow_type=WorkflowType(name=name),
            task_queue=TaskQueue(name=name),
            request_id=name,
        )
    )
    assert setup.history.last().workflow_id == name


async def test_defaults_of_a_start(setup: Setup) -> None:
    await setup.call(start())
    seen = setup.history.last()
    assert UUID(seen.request_id)
    assert seen.task_queue.kind == 1
    assert seen.workflow_task_timeout == Duration(seconds=10)
    assert not seen.HasField("workflow_run_timeout")
    assert (seen.workflow_id_reuse_policy, seen.workflow_id_conflict_policy) == (1, CONFLICT_FAIL)


async def test_the_legacy_policy_alone_becomes_todays(setup: Setup) -> None:
    await setup.call(start(workflow_id_reuse_policy=REUSE_TERMINATE))
    seen = setup.history.last()
    assert (seen.workflow_id_reuse_policy, seen.workflow_id_conflict_policy) == (1, CONFLICT_TERMINATE)


async def test_signal_with_start_uses_a_running_workflow_by_default(setup: Setup) -> None:
    await setup.call(signal_with_start())
    assert setup.history.last().workflow_id_conflict_policy == CONFLICT_USE_EXISTING


async def test_defaults_of_a_retry_policy(setup: Setup) -> None:
    await setup.call(start(retry_policy=RetryPolicy(initial_interval=Duration(seconds=2))))
    policy = setup.history.last().retry_policy
    assert policy.maximum_interval == Duration(seconds=200)
    assert policy.backoff_coefficient == 2.0


@pytest.mark.parametrize(
    "timeouts, task, run",
    [
        ({"workflow_task_timeout": Duration(seconds=500)}, Duration(seconds=120), Duration()),
        ({"workflow_run_timeout": Duration(seconds=3)}, Duration(seconds=3), Duration(seconds=3)),
        ({"workflow_execution_timeout": Duration(seconds=7)}, Duration(seconds=7), Duration(seconds=7)),
        (
            {"workflow_execution_timeout": Duration(seconds=20), "workflow_run_timeout": Duration(seconds=30)},
            Duration(seconds=10),
            Duration(seconds=20),
        ),
        (
            {"workflow_run_timeout": Duration(seconds=CENTURY_S * 2)},
            Duration(seconds=10),
            Duration(seconds=CENTURY_S),
        ),
    ],
)
async def test_timeouts_are_put_within_each_other(
    setup: Setup, timeouts: dict[str, Duration], task: Duration, run: Duration
) -> None:
    await setup.call(start(**timeouts))
    seen = setup.history.last()
    assert (seen.workflow_task_timeout, seen.workflow_run_timeout) == (task, run)
