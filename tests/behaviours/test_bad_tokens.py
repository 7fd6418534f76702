"""Task tokens and page tokens that are malformed, stale, or from elsewhere."""

import grpc
import pytest

from .harness import Refusal, Server, activity, application_failure, refusal, seconds, types, unique

WORKFLOW_CALLS = ["RespondWorkflowTaskCompleted", "RespondWorkflowTaskFailed"]
ACTIVITY_CALLS = [
    "RespondActivityTaskCompleted",
    "RespondActivityTaskFailed",
    "RespondActivityTaskCanceled",
    "RecordActivityTaskHeartbeat",
]
CLOSED = "workflow execution already completed"
ACTIVITY_GONE = "invalid activityID or activity already timed out or invoking workflow is completed"


def invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def not_found(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.NOT_FOUND, message, "NotFoundFailure")


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"", "Task token not set on request."),
        (b"garbage", "Error deserializing task token."),
        (b"\xff\xff\xff", "Error deserializing task token."),
        (b"\x0a\x05abc", "Error deserializing task token."),
    ],
    ids=["empty", "words", "ones", "cut short"],
)
@pytest.mark.parametrize("method", [*WORKFLOW_CALLS, *ACTIVITY_CALLS, "RespondQueryTaskCompleted"])
async def test_bad_input_malformed_task_token(server: Server, method: str, token: bytes, words: str) -> None:
    assert await refusal(server.call(method, task_token=token)) == invalid(words)


async def test_bad_input_a_workflow_task_answered_twice(server: Server) -> None:
    run = await server.start()
    task = await server.do(run)
    before = await server.history(run)
    for method in WORKFLOW_CALLS:
        assert await refusal(server.call(method, task_token=task.task_token)) == not_found("Workflow task not found.")
    assert await server.history(run) == before


async def test_bad_input_a_workflow_task_answered_after_its_timeout(server: Server) -> None:
    run = await server.start(workflow_task_timeout=seconds(1))
    late = await server.workflow_task(run.queue)
    again = await server.workflow_task(run.queue)
    assert again.attempt == 2
    for method in WORKFLOW_CALLS:
        assert await refusal(server.call(method, task_token=late.task_token)) == not_found("Workflow task not found.")
    await server.complete_task(again)


async def test_bad_input_an_activity_answered_twice(server: Server) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue))
    task = await server.activity_task(run.queue)
    await server.complete_activity(task, "once")
    before = await server.history(run)
    for method in ACTIVITY_CALLS:
        assert await refusal(server.call(method, task_token=task.task_token)) == not_found(ACTIVITY_GONE)
    assert await server.history(run) == before


async def test_bad_input_an_activity_answered_by_an_earlier_attempt(server: Server) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue, retry_policy={"initial_interval": seconds(0.05)}))
    first = await server.activity_task(run.queue)
    await server.fail_activity(first, failure=application_failure("again"))
    in_back_off = [await refusal(server.call(m, task_token=first.task_token)) for m in ACTIVITY_CALLS]
    second = await server.activity_task(run.queue)
    started = [await refusal(server.call(m, task_token=first.task_token)) for m in ACTIVITY_CALLS]
    assert in_back_off == started == [not_found(ACTIVITY_GONE)] * len(ACTIVITY_CALLS)
    await server.complete_activity(second, "by the second")


async def test_bad_input_an_activity_answered_after_its_workflow_closed(server: Server) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue))
    task = await server.activity_task(run.queue)
    await server.terminate(run)
    for method in ACTIVITY_CALLS:
        assert await refusal(server.call(method, task_token=task.task_token)) == not_found(CLOSED)


async def test_bad_input_a_workflow_task_answered_after_its_workflow_closed(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    await server.terminate(run)
    completed, failed = [await refusal(server.call(m, task_token=task.task_token)) for m in WORKFLOW_CALLS]
    assert completed == not_found("Workflow task not found.")
    assert failed == not_found(CLOSED)


async def test_bad_input_a_token_of_another_kind(server: Server) -> None:
    run = await server.start()
    workflow_task = await server.do(run, activity(run.queue))
    activity_task = await server.activity_task(run.queue)
    for method in ACTIVITY_CALLS:
        assert await refusal(server.call(method, task_token=workflow_task.task_token)) == not_found(ACTIVITY_GONE)
    for method in WORKFLOW_CALLS:
        assert await refusal(server.call(method, task_token=activity_task.task_token)) == not_found(
            "Workflow task not found."
        )
    await server.complete_activity(activity_task, "still mine")
    assert "ACTIVITY_TASK_COMPLETED" in types(await server.history(run))


async def test_bad_input_a_token_of_another_namespace(server: Server) -> None:
    name = unique("ns")
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=seconds(86400))
    elsewhere = server.within(name)
    run = await server.start()
    task = await server.do(run, activity(run.queue))
    activity_task = await server.activity_task(run.queue)
    for method, token in [(m, task.task_token) for m in WORKFLOW_CALLS] + [
        (m, activity_task.task_token) for m in ACTIVITY_CALLS
    ]:
        assert await refusal(elsewhere.call(method, task_token=token)) == invalid(
            "Operation requested with a token from a different namespace."
        )


async def test_bad_input_a_query_answered_twice(server: Server) -> None:
    run = await server.start()
    task = await server.do(run)
    assert await refusal(server.call("RespondQueryTaskCompleted", task_token=task.task_token)) == not_found(
        "query task not found, or already expired"
    )


@pytest.mark.parametrize("token", [b"garbage", b"\xff\xff", b"{}"], ids=["words", "ones", "empty object"])
@pytest.mark.parametrize("method", ["GetWorkflowExecutionHistory", "GetWorkflowExecutionHistoryReverse"])
async def test_bad_input_malformed_history_page_token(server: Server, method: str, token: bytes) -> None:
    run = await server.start()
    refused = await refusal(server.call(method, execution=run.execution, next_page_token=token))
    assert refused == invalid("Invalid NextPageToken.")


async def test_bad_input_history_page_token_of_another_run(server: Server) -> None:
    one, other = await server.start(), await server.start()
    page = await server.call("GetWorkflowExecutionHistory", execution=one.execution, maximum_page_size=1)
    assert page.next_page_token
    refused = await refusal(
        server.call("GetWorkflowExecutionHistory", execution=other.execution, next_page_token=page.next_page_token)
    )
    assert refused == invalid("RunId in the request does not match the NextPageToken.")


@pytest.mark.parametrize("token", [b"garbage", b"\xff\xff"], ids=["words", "ones"])
async def test_bad_input_malformed_list_page_token(server: Server, reference_server: bool, token: bytes) -> None:
    refused = await refusal(server.call("ListWorkflowExecutions", next_page_token=token))
    # The official server answers "something went wrong"; a client's mistake is INVALID_ARGUMENT here.
    assert refused.code == (grpc.StatusCode.UNKNOWN if reference_server else grpc.StatusCode.INVALID_ARGUMENT)
