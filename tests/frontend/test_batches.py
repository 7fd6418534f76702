"""Batch operations: what is refused, in the official server's words, and what clients see of a batch."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import grpc
import pytest
from temporalio.api.batch import v1 as batch
from temporalio.api.common.v1 import Execution, ResetOptions, WorkflowExecution
from temporalio.api.enums.v1 import BatchOperationState, BatchOperationType, ExecutionType
from temporalio.api.workflowservice import v1 as ws

from .conftest import Setup

NEITHER = "Either activity type must be set, or match all should be set to true"
MISSING = (
    "must provide required parameters: BatchType,Reason,Namespace, AND one of (Query OR Executions OR TargetExecutions)"
)
WORKFLOW = ExecutionType.EXECUTION_TYPE_WORKFLOW


def start(**fields: Any) -> ws.StartBatchOperationRequest:
    """A request to terminate, with fields changed or, for None, left out."""
    whole: dict[str, Any] = {
        "namespace": "default",
        "job_id": "job",
        "visibility_query": "WorkflowId = 'x'",
        "reason": "why",
        "termination_operation": batch.BatchOperationTermination(identity="me"),
        **fields,
    }
    if any(name.endswith("_operation") for name in fields):
        whole.pop("termination_operation")
    return ws.StartBatchOperationRequest(**{name: value for name, value in whole.items() if value is not None})


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"termination_operation": None}, MISSING),
    ({"reason": ""}, MISSING),
    ({"visibility_query": ""}, MISSING),
    ({"job_id": ""}, "JobId is not set on request."),
    (
        {"executions": [WorkflowExecution(workflow_id="x")]},
        "visibility query, executions, and target executions are mutually exclusive",
    ),
    (
        {"visibility_query": "", "target_executions": [Execution(business_id="x")]},
        "target_executions[0] has type Unspecified, but operation "
        "*workflowservice.StartBatchOperationRequest_TerminationOperation requires Workflow",
    ),
    ({"visibility_query": "nonsense ==="}, "invalid visibility query: syntax error at position 38"),
    ({"visibility_query": "()"}, "invalid visibility query: syntax error at position 29"),
    ({"visibility_query": "a ="}, "invalid visibility query: syntax error at position 30"),
    ({"signal_operation": batch.BatchOperationSignal()}, "must provide signal name"),
    ({"reset_operation": batch.BatchOperationReset()}, "unknown batch reset type Unspecified"),
    ({"reset_operation": batch.BatchOperationReset(reset_type=99)}, "unknown batch reset type 99"),  # type: ignore[arg-type]
    ({"reset_operation": batch.BatchOperationReset(options=ResetOptions())}, "batch reset missing target"),
    (
        {"update_workflow_options_operation": batch.BatchOperationUpdateWorkflowExecutionOptions()},
        "must provide UpdateOptions",
    ),
    ({"unpause_activities_operation": batch.BatchOperationUnpauseActivities()}, "activity filter must be set"),
    ({"unpause_activities_operation": batch.BatchOperationUnpauseActivities(type="")}, NEITHER),
    ({"unpause_activities_operation": batch.BatchOperationUnpauseActivities(match_all=False)}, NEITHER),
    ({"reset_activities_operation": batch.BatchOperationResetActivities()}, "must provide ActivityType or MatchAll"),
    (
        {"update_activity_options_operation": batch.BatchOperationUpdateActivityOptions()},
        "Either activity type must be set, or restore original should be set to true",
    ),
    (
        {
            "update_activity_options_operation": batch.BatchOperationUpdateActivityOptions(
                restore_original=True, type=""
            )
        },
        NEITHER,
    ),
    (
        {
            "terminate_activities_operation": batch.BatchOperationTerminateActivities(),
            "visibility_query": "",
            "target_executions": [Execution(type=ExecutionType.EXECUTION_TYPE_WORKFLOW, business_id="w")],
        },
        "target_executions[0] has type Workflow, but operation "
        "*workflowservice.StartBatchOperationRequest_TerminateActivitiesOperation requires Activity",
    ),
    ({"signal_operation": batch.BatchOperationSignal(signal="s" * 1001)}, "SignalName length exceeds limit."),
]


@pytest.mark.parametrize("fields, message", REFUSED)
async def test_refused(setup: Setup, fields: dict[str, Any], message: str) -> None:
    refused = await setup.refused(start(**fields))
    assert (refused.code, refused.message) == (grpc.StatusCode.INVALID_ARGUMENT, message)
    assert setup.batches.records == {}


async def test_a_batch_from_start_to_end(setup: Setup) -> None:
    asked = ws.DescribeBatchOperationRequest(namespace="default", job_id="job")
    await setup.call(start())
    record = setup.batches.records["default", "job"]
    assert (record.operation, record.identity, record.state) == ("termination_operation", "me", "Running")
    record.total, record.completed, record.failed = 7, 4, 1
    running = await setup.call(asked)
    assert running.operation_type == BatchOperationType.BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW
    assert running.state == BatchOperationState.BATCH_OPERATION_STATE_RUNNING
    assert (running.identity, running.reason, running.query) == ("me", "why", "WorkflowId = 'x'")
    assert (running.total_operation_count, running.complete_operation_count, running.failure_operation_count) == (
        7,
        4,
        1,
    )
    assert not running.HasField("close_time")
    record.state, record.closed_at, record.completed = "Completed", setup.clock.now(), 5
    done = await setup.call(asked)
    assert done.state == BatchOperationState.BATCH_OPERATION_STATE_COMPLETED
    assert done.total_operation_count == 6
    assert done.HasField("close_time")


async def test_named_executions_are_shown(setup: Setup) -> None:
    await setup.call(start(visibility_query="", executions=[WorkflowExecution(workflow_id="w", run_id="r")]))
    described = await setup.call(ws.DescribeBatchOperationRequest(namespace="default", job_id="job"))
    assert list(described.executions) == [Execution(type=WORKFLOW, business_id="w", run_id="r")]


async def test_one_at_a_time(setup: Setup) -> None:
    await setup.call(start())
    refused = await setup.refused(start(job_id="another"))
    assert (refused.code, refused.message) == (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "Max concurrent batch operations is reached",
    )
    assert refused.detail == "ResourceExhaustedFailure"


async def test_a_job_id_is_taken_once(setup: Setup) -> None:
    await setup.call(start())
    record = setup.batches.records["default", "job"]
    record.state, record.closed_at = "Completed", setup.clock.now()
    refused = await setup.refused(start())
    assert refused.code == grpc.StatusCode.ALREADY_EXISTS
    assert refused.message == (
        f"Workflow execution already finished. WorkflowId: job, RunId: {record.batch_id}. Workflow Id reuse policy: "
        "reject duplicate workflow Id."
    )
    assert refused.detail == "WorkflowExecutionAlreadyStartedFailure"


async def test_stopping(setup: Setup) -> None:
    stop = ws.StopBatchOperationRequest(namespace="default", job_id="job", reason="enough", identity="me")
    assert (await setup.refused(stop)).message == "workflow not found for ID: job"
    await setup.call(start())
    await setup.call(stop)
    assert setup.batches.records["default", "job"].problem == "stopped (me): enough"
    described = await setup.call(ws.DescribeBatchOperationRequest(namespace="default", job_id="job"))
    assert described.state == BatchOperationState.BATCH_OPERATION_STATE_FAILED
    setup.batches.records["default", "job"].closed_at = setup.clock.now()
    refused = await setup.refused(stop)
    assert (refused.code, refused.message) == (grpc.StatusCode.NOT_FOUND, "workflow execution already completed")


@pytest.mark.parametrize(
    "request_, message",
    [
        (ws.StopBatchOperationRequest(namespace="default", reason="x"), "JobId is not set on request."),
        (ws.StopBatchOperationRequest(namespace="default", job_id="x"), "Reason is not set on request."),
        (ws.DescribeBatchOperationRequest(namespace="default"), "JobId is not set on request."),
        (ws.DescribeBatchOperationRequest(namespace="default", job_id="x"), "workflow not found for ID: x"),
        (ws.ListBatchOperationsRequest(namespace="nowhere"), "Namespace nowhere is not found."),
        (ws.ListBatchOperationsRequest(namespace="default", next_page_token=b"x"), "Invalid NextPageToken."),
    ],
)
async def test_questions_that_are_refused(setup: Setup, request_: Any, message: str) -> None:
    assert (await setup.refused(request_)).message == message


async def test_lists_go_page_by_page(setup: Setup) -> None:
    for number in range(3):
        await setup.call(start(job_id=f"job-{number}"))
        setup.batches.records["default", f"job-{number}"].state = "Completed"
        setup.clock.advance(timedelta(seconds=1))
    first = await setup.call(ws.ListBatchOperationsRequest(namespace="default", page_size=2))
    rest = await setup.call(
        ws.ListBatchOperationsRequest(namespace="default", page_size=2, next_page_token=first.next_page_token)
    )
    assert [[info.job_id for info in page.operation_info] for page in (first, rest)] == [["job-2", "job-1"], ["job-0"]]
    assert rest.next_page_token == b""
    assert first.operation_info[0].operation_type == BatchOperationType.BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW
