"""What the other calls are refused for, in the words of upstream's frontend, and what is filled in."""

from __future__ import annotations

from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import Link, Payload, Payloads, Priority, WorkflowExecution
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.update.v1 import Input, Meta, Request, UpdateRef, WaitPolicy
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import QueryToken, TaskToken, encode_token
from tests.behaviours.harness import Refusal

from .conftest import Setup

RUN = WorkflowExecution(workflow_id="w")
LONG = "x" * 1001
TOO_LARGE = Payloads(payloads=[Payload(data=b"x" * (2 * 1024 * 1024 + 1))])
TOKEN = encode_token(TaskToken(namespace="default", workflow_id="w", run_id="r", scheduled_event_id=5))
BAD_LINKS = [Link()]
ADMITTED = 1
ACTIVITY_OPTIONS = partial(ws.UpdateActivityExecutionOptionsRequest, workflow_id="w", activity_id="a")
MASK: dict[str, Any] = {"update_mask": FieldMask(paths=["retry_policy.maximum_attempts"])}


def update(**fields: Any) -> ws.UpdateWorkflowExecutionRequest:
    whole: dict[str, Any] = {
        "namespace": "default",
        "workflow_execution": RUN,
        "request": Request(meta=Meta(update_id="u"), input=Input(name="n")),
    }
    return ws.UpdateWorkflowExecutionRequest(**(whole | fields))


INVALID: list[tuple[Any, str]] = [
    (ws.SignalWorkflowExecutionRequest(), "Execution is not set on request."),
    (ws.SignalWorkflowExecutionRequest(workflow_execution={}), "WorkflowId is not set on request."),
    (
        ws.SignalWorkflowExecutionRequest(workflow_execution={"workflow_id": "w", "run_id": "x"}),
        "Invalid RunId.",
    ),
    (ws.SignalWorkflowExecutionRequest(workflow_execution=RUN), "SignalName is not set on request."),
    (
        ws.SignalWorkflowExecutionRequest(workflow_execution=RUN, signal_name=LONG),
        "SignalName length exceeds limit.",
    ),
    (
        ws.SignalWorkflowExecutionRequest(workflow_execution=RUN, signal_name="s", request_id=LONG),
        "RequestId length exceeds limit.",
    ),
    (
        ws.SignalWorkflowExecutionRequest(workflow_execution=RUN, signal_name="s", links=BAD_LINKS),
        "unsupported link variant",
    ),
    (
        ws.SignalWorkflowExecutionRequest(workflow_execution=RUN, signal_name="s", input=TOO_LARGE),
        "Blob data size exceeds limit.",
    ),
    (ws.RequestCancelWorkflowExecutionRequest(), "Execution is not set on request."),
    (
        ws.RequestCancelWorkflowExecutionRequest(workflow_execution=RUN, links=BAD_LINKS),
        "unsupported link variant",
    ),
    (ws.TerminateWorkflowExecutionRequest(), "Execution is not set on request."),
    (ws.DeleteWorkflowExecutionRequest(), "Execution is not set on request."),
    (ws.DescribeWorkflowExecutionRequest(), "Execution is not set on request."),
    (ws.ResetStickyTaskQueueRequest(), "Execution is not set on request."),
    (ws.GetWorkflowExecutionHistoryRequest(), "Execution is not set on request."),
    (ws.GetWorkflowExecutionHistoryRequest(execution={}), "WorkflowId is not set on request."),
    (ws.GetWorkflowExecutionHistoryReverseRequest(), "Execution is not set on request."),
    (ws.ResetWorkflowExecutionRequest(), "RequestId is not set on request."),
    (ws.ResetWorkflowExecutionRequest(request_id=LONG), "RequestId length exceeds limit."),
    (ws.ResetWorkflowExecutionRequest(request_id="r"), "Execution is not set on request."),
    (ACTIVITY_OPTIONS(restore_original=True, **MASK), "Both UpdateMask and RestoreOriginal are provided"),
    (ACTIVITY_OPTIONS(), "ActivityOptions are not provided"),
    (ACTIVITY_OPTIONS(activity_options={}), "UpdateMask is not provided"),
    (ACTIVITY_OPTIONS(activity_options={}, update_mask={}), "UpdateMask must specify at least one path"),
    (
        ACTIVITY_OPTIONS(activity_options={}, update_mask={"paths": ["no_such"]}),
        'unsupported update_mask path: "no_such"',
    ),
    (ws.QueryWorkflowRequest(), "Execution is not set on request."),
    (ws.QueryWorkflowRequest(execution=RUN), "WorkflowQuery is not set on request."),
    (ws.QueryWorkflowRequest(execution=RUN, query={}), "QueryType is not set on request."),
    (
        ws.QueryWorkflowRequest(execution=RUN, query=WorkflowQuery(query_type="q", query_args=TOO_LARGE)),
        "Blob data size exceeds limit.",
    ),
    (ws.UpdateWorkflowExecutionRequest(), "Execution is not set on request."),
    (update(request=Request()), "Update meta is not set on request."),
    (update(request=Request(meta=Meta(update_id=LONG))), "UpdateId length exceeds limit."),
    (update(request=Request(meta=Meta())), "Update input is not set on request."),
    (update(request=Request(meta=Meta(), input=Input())), "Update name is not set on request."),
    (
        update(request=Request(meta=Meta(), input=Input(name="n"), links=BAD_LINKS)),
        "unsupported link variant",
    ),
    (ws.PollWorkflowExecutionUpdateRequest(), "UpdateRef is not set on request."),
    (ws.RespondActivityTaskCompletedByIdRequest(), "ActivityId is not set on request."),
    (
        ws.RespondActivityTaskCompletedByIdRequest(activity_id="a", identity=LONG),
        "Identity length exceeds limit.",
    ),
    (
        ws.RespondActivityTaskCompletedByIdRequest(activity_id="a", workflow_id="w", run_id="x"),
        "RunId is not valid UUID.",
    ),
    (
        ws.RecordActivityTaskHeartbeatByIdRequest(activity_id="a", workflow_id="w", run_id="x"),
        "RunId is not valid UUID.",
    ),
    (ws.RespondActivityTaskFailedByIdRequest(), "ActivityId is not set on request."),
    (ws.RespondActivityTaskCanceledByIdRequest(), "ActivityId is not set on request."),
    (ws.RecordActivityTaskHeartbeatByIdRequest(), "ActivityId is not set on request."),
    (
        ws.RespondActivityTaskCompletedRequest(task_token=TOKEN, identity=LONG),
        "Identity length exceeds limit.",
    ),
    (
        ws.RespondActivityTaskCanceledRequest(task_token=TOKEN, identity=LONG),
        "Identity length exceeds limit.",
    ),
    (ws.RespondWorkflowTaskFailedRequest(task_token=TOKEN, identity=LONG), "Identity length exceeds limit."),
    (
        ws.RespondWorkflowTaskCompletedRequest(task_token=TOKEN, identity=LONG),
        "Identity length exceeds limit.",
    ),
    (
        ws.RespondWorkflowTaskCompletedRequest(task_token=TOKEN, worker_version_stamp={"build_id": "b" * 256}),
        "Build ID exceeds configured limit.workerBuildIdSize, use a shorter build ID.",
    ),
    (
        ws.RespondActivityTaskFailedRequest(task_token=TOKEN, failure=Failure(message="m")),
        "Failure must have ApplicationFailureInfo.",
    ),
    (
        ws.RespondActivityTaskFailedRequest(
            task_token=TOKEN,
            failure=Failure(
                application_failure_info=ApplicationFailureInfo(next_retry_delay=Duration(seconds=1, nanos=-1))
            ),
        ),
        "NextRetryDelay is not a valid duration: "
        "proto: duration (seconds:1 nanos:-1) has seconds and nanos with different signs",
    ),
    (
        ws.RespondQueryTaskCompletedRequest(
            task_token=encode_token(QueryToken(namespace="default", task_queue="", query_id="q"))
        ),
        "Invalid TaskToken.",
    ),
    (ws.DescribeTaskQueueRequest(), "taskQueue is not set"),
    (
        ws.DescribeTaskQueueRequest(task_queue=TaskQueue(name="q", kind=2), api_mode=1),
        "Enhanced DescribeTaskQueue is not valid for a sticky queue, use api_mode=UNSPECIFIED or a normal queue.",
    ),
    (
        ws.DescribeTaskQueueRequest(task_queue=TaskQueue(name="/_sys/q/1"), api_mode=1),
        "task queue name cannot start with reserved prefix /_sys/",
    ),
    (ws.ListTaskQueuePartitionsRequest(), "taskQueue is not set"),
    (ws.PauseActivityRequest(), "WorkflowId is not set on request."),
    (ws.PauseActivityRequest(execution=RUN), "Either Activity.Id or Activity.Type should be set on request."),
    (ws.UnpauseActivityRequest(), "WorkflowId is not set on request."),
    (ws.ResetActivityRequest(execution=RUN), "Either Activity.Id or Activity.Type should be set on request."),
    (
        ws.UpdateActivityOptionsRequest(
            execution=RUN, id="a", activity_options={"priority": Priority(priority_key=-1)}
        ),
        "priority key can't be negative",
    ),
    (ws.UpdateWorkflowExecutionOptionsRequest(), "WorkflowId is not set on request."),
    (ws.UpdateWorkflowExecutionOptionsRequest(workflow_execution=RUN), "UpdateMask is required"),
    (
        ws.UpdateWorkflowExecutionOptionsRequest(workflow_execution=RUN, update_mask=FieldMask()),
        "WorkflowExecutionOptions is required",
    ),
    (
        ws.UpdateWorkflowExecutionOptionsRequest(
            workflow_execution=RUN,
            update_mask=FieldMask(paths=["nope"]),
            workflow_execution_options=WorkflowExecutionOptions(),
        ),
        'error parsing UpdateMask: proto: invalid path "nope" for message "temporal.api.workflow.v1.WorkflowExecutionOptions"',
    ),
    (ws.PauseWorkflowExecutionRequest(reason=LONG), "reason is too long."),
    (ws.UnpauseWorkflowExecutionRequest(request_id=LONG), "request id is too long."),
    (ws.ExecuteMultiOperationRequest(), "Operations have to be exactly [Start, Update]."),
]


@pytest.mark.parametrize("request_, message", INVALID, ids=[f"{type(r).__name__}: {m[:50]}" for r, m in INVALID])
async def test_a_request_with_one_fault_is_refused_in_upstreams_words(
    setup: Setup, request_: Any, message: str
) -> None:
    request_.namespace = "default"
    assert await setup.refused(request_) == Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)
    assert not setup.history.requests
    assert not setup.matching.requests


async def test_waiting_for_admission_of_an_update_is_not_supported(setup: Setup) -> None:
    assert await setup.refused(update(wait_policy=WaitPolicy(lifecycle_stage=ADMITTED))) == Refusal(
        grpc.StatusCode.PERMISSION_DENIED,
        "UpdateWorkflowExecution issued asynchronously and waiting on update admitted is not supported.",
        "PermissionDeniedFailure",
    )


@pytest.mark.parametrize("run_id", ["01a22de8-c0f5-77d0-8147-87e705e4aacf", "01A22DE8c0f577d0814787e705e4aacf"])
async def test_run_ids_as_upstream_spells_them_are_taken(setup: Setup, run_id: str) -> None:
    execution = WorkflowExecution(workflow_id="w", run_id=run_id)
    await setup.call(ws.DescribeWorkflowExecutionRequest(namespace="default", execution=execution))
    assert setup.history.last().execution == execution


async def test_defaults_of_an_update(setup: Setup) -> None:
    await setup.call(update(request=Request(meta=Meta(), input=Input(name="n"))))
    seen = setup.history.last()
    assert seen.request.meta.update_id
    assert seen.wait_policy.lifecycle_stage == 3


async def test_defaults_of_a_termination(setup: Setup) -> None:
    await setup.call(ws.TerminateWorkflowExecutionRequest(namespace="default", workflow_execution=RUN))
    seen = setup.history.last()
    assert (seen.reason, seen.identity) == ("terminated by user via frontend", "frontend-service")


async def test_defaults_of_a_query(setup: Setup) -> None:
    await setup.call(ws.QueryWorkflowRequest(namespace="default", execution=RUN, query=WorkflowQuery(query_type="q")))
    assert setup.history.last().query_reject_condition == 1


@pytest.mark.parametrize("wanted, size", [(0, 256), (-1, 256), (10, 10), (1000, 256)])
async def test_pages_of_history_are_bounded(setup: Setup, wanted: int, size: int) -> None:
    for kind in (ws.GetWorkflowExecutionHistoryRequest, ws.GetWorkflowExecutionHistoryReverseRequest):
        await setup.call(kind(namespace="default", execution=RUN, maximum_page_size=wanted))
        assert setup.history.last().maximum_page_size == size


async def test_defaults_of_describing_a_task_queue(setup: Setup) -> None:
    await setup.call(ws.DescribeTaskQueueRequest(namespace="default", task_queue=TaskQueue(name="/_sys/q/1")))
    seen = setup.matching.last()
    assert (seen.task_queue.kind, seen.task_queue_type, list(seen.task_queue_types)) == (1, 1, [1, 2])


async def test_polling_an_update_passes(setup: Setup) -> None:
    await setup.call(ws.PollWorkflowExecutionUpdateRequest(namespace="default", update_ref=UpdateRef(update_id="u")))
    assert setup.history.last().update_ref.update_id == "u"
