"""Payloads over the limit of 2 MiB, and messages over gRPC's."""

import grpc
import pytest
from temporalio.api.enums.v1 import RetryState

from .harness import (
    Refusal,
    Run,
    Server,
    activity,
    application_failure,
    attributes,
    command,
    payloads,
    refusal,
    types,
    unique,
    until,
)

BLOB_LIMIT = 2 * 1024 * 1024
OVER = payloads("x" * (BLOB_LIMIT + 10))
TOO_BIG = Refusal(grpc.StatusCode.INVALID_ARGUMENT, "Blob data size exceeds limit.")


async def test_bad_input_start_with_a_payload_over_the_limit(server: Server) -> None:
    workflow_id = unique("wf")
    assert await refusal(server.start(workflow_id=workflow_id, input=OVER)) == TOO_BIG
    assert (await refusal(server.describe(Run(workflow_id, "", "")))).code == grpc.StatusCode.NOT_FOUND


async def test_bad_input_start_with_a_memo_over_the_limit(server: Server) -> None:
    refused = await refusal(server.start(memo={"fields": {"m": OVER.payloads[0]}}))
    assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, "Memo size exceeds limit.")


async def test_bad_input_signal_and_query_with_a_payload_over_the_limit(server: Server) -> None:
    run = await server.start()
    assert await refusal(server.signal(run, input=OVER)) == TOO_BIG
    query = {"query_type": "q", "query_args": OVER}
    assert await refusal(server.call("QueryWorkflow", execution=run.execution, query=query)) == TOO_BIG
    assert types(await server.history(run)) == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]


async def test_bad_input_signal_with_start_with_a_payload_over_the_limit(server: Server) -> None:
    refused = await refusal(
        server.call(
            "SignalWithStartWorkflowExecution",
            workflow_id=unique("wf"),
            workflow_type={"name": "Any"},
            task_queue={"name": "q"},
            signal_name="go",
            signal_input=OVER,
        )
    )
    assert refused == TOO_BIG


async def test_bad_input_a_payload_just_under_the_limit(server: Server) -> None:
    big = payloads("x" * (BLOB_LIMIT - 1000))
    run = await server.start(input=big)
    task = await server.workflow_task(run.queue)
    assert attributes(task.history.events[0]).input == big
    await server.complete_task(task, command("complete_workflow_execution", result=big))
    assert attributes(await server.closed(run)).result == big


async def test_bad_input_a_message_over_grpcs_limit(server: Server) -> None:
    refused = await refusal(server.start(input=payloads("x" * (5 * 1024 * 1024))))
    assert refused.code == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in refused.message
    await server.start()


async def test_bad_input_a_workflow_result_over_the_limit_ends_the_run(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    refused = await refusal(server.complete_task(task, command("complete_workflow_execution", result=OVER)))
    assert refused.code == grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message.endswith("CompleteWorkflowExecutionCommandAttributes.Result exceeds size limit.")
    events = await server.history(run)
    assert types(events)[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_TERMINATED"]
    assert attributes(events[-1]).reason == refused.message


async def test_bad_input_an_activity_input_over_the_limit_ends_the_run(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    refused = await refusal(server.complete_task(task, activity(run.queue, input=OVER)))
    assert refused.code == grpc.StatusCode.INVALID_ARGUMENT
    assert refused.message == (
        "BadScheduleActivityAttributes: ScheduleActivityTaskCommandAttributes.Input exceeds size limit."
    )
    assert types(await server.history(run))[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_TERMINATED"]


@pytest.mark.parametrize(
    ("method", "fields", "words"),
    [
        ("RespondActivityTaskCompleted", {"result": OVER}, "Complete result exceeds size limit."),
        ("RecordActivityTaskHeartbeat", {"details": OVER}, "Heartbeat details exceed size limit."),
        (
            "RespondActivityTaskFailed",
            {"failure": application_failure("x" * BLOB_LIMIT)},
            "Failure exceeds size limit.",
        ),
    ],
    ids=["result", "details", "failure"],
)
async def test_bad_input_an_activity_answer_over_the_limit_fails_the_activity(
    server: Server, method: str, fields: dict[str, object], words: str
) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue, retry_policy={"maximum_attempts": 1}))
    task = await server.activity_task(run.queue)
    answer = await server.call(method, task_token=task.task_token, **fields)
    if method == "RecordActivityTaskHeartbeat":
        assert answer.cancel_requested
    failed = attributes(until("ACTIVITY_TASK_FAILED", await server.history(run)))
    assert failed.failure.message == words
    if method != "RespondActivityTaskFailed":
        assert failed.failure.server_failure_info.non_retryable
        assert failed.retry_state == RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
