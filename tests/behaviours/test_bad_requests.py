"""Requests that name nothing, or the wrong thing: each is refused in upstream's words, and nothing else happens."""

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure

from .harness import Refusal, Run, Server, detail_of, error_of, refusal, seconds, types, unique

Call = Callable[[Server, Run], Any]

ON_AN_EXECUTION: dict[str, Call] = {
    "describe": lambda s, run: s.describe(run),
    "history": lambda s, run: s.call("GetWorkflowExecutionHistory", execution=run.execution),
    "wait": lambda s, run: s.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True),
    "reverse": lambda s, run: s.call("GetWorkflowExecutionHistoryReverse", execution=run.execution),
    "signal": lambda s, run: s.signal(run),
    "query": lambda s, run: s.query(run),
    "terminate": lambda s, run: s.terminate(run),
    "cancel": lambda s, run: s.cancel(run),
}
BY_ID = [
    "RespondActivityTaskCompletedById",
    "RespondActivityTaskFailedById",
    "RespondActivityTaskCanceledById",
    "RecordActivityTaskHeartbeatById",
]


def by_id(method: str) -> Call:
    return lambda s, run: s.call(method, workflow_id=run.workflow_id, run_id=run.run_id, activity_id="a")


EVERY_CALL = ON_AN_EXECUTION | {method: by_id(method) for method in BY_ID}
IN_A_NAMESPACE: dict[str, Call] = ON_AN_EXECUTION | {
    "start": lambda s, _: s.start(),
    "poll workflow": lambda s, _: s.poll_workflow("q", deadline_s=5),
    "poll activity": lambda s, _: s.poll_activity("q", deadline_s=5),
    "list": lambda s, _: s.call("ListWorkflowExecutions"),
    "count": lambda s, _: s.call("CountWorkflowExecutions"),
    "describe namespace": lambda s, _: s.call("DescribeNamespace"),
}
NOWHERE = Run("nowhere", "", "q")


def invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


def not_found(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.NOT_FOUND, message, "NotFoundFailure")


@pytest.mark.parametrize("what", IN_A_NAMESPACE)
async def test_bad_input_unknown_namespace(server: Server, what: str) -> None:
    name = unique("no-such-namespace")
    error = await error_of(IN_A_NAMESPACE[what](server.within(name), NOWHERE))
    assert Refusal.of(error) == Refusal(
        grpc.StatusCode.NOT_FOUND, f"Namespace {name} is not found.", "NamespaceNotFoundFailure"
    )
    assert detail_of(error, NamespaceNotFoundFailure).namespace == name


@pytest.mark.parametrize("what", IN_A_NAMESPACE)
async def test_bad_input_empty_namespace(server: Server, what: str) -> None:
    words = "Namespace not set on request." if what == "describe namespace" else "Namespace is empty."
    assert await refusal(IN_A_NAMESPACE[what](server.within(""), NOWHERE)) == invalid(words)


@pytest.mark.parametrize("what", EVERY_CALL)
async def test_bad_input_unknown_workflow(server: Server, what: str) -> None:
    workflow_id = unique("never")
    refused = await refusal(EVERY_CALL[what](server, Run(workflow_id, "", "q")))
    assert refused == not_found(f"workflow not found for ID: {workflow_id}")


@pytest.mark.parametrize("what", EVERY_CALL)
async def test_bad_input_unknown_run(server: Server, what: str) -> None:
    workflow_id, run_id = unique("never"), str(uuid.uuid4())
    refused = await refusal(EVERY_CALL[what](server, Run(workflow_id, run_id, "q")))
    assert refused == not_found(f'workflow execution not found for workflow ID "{workflow_id}" and run ID "{run_id}"')


@pytest.mark.parametrize("what", EVERY_CALL)
async def test_bad_input_unknown_run_of_a_known_workflow(server: Server, what: str) -> None:
    run, run_id = await server.start(), str(uuid.uuid4())
    refused = await refusal(EVERY_CALL[what](server, Run(run.workflow_id, run_id, "q")))
    assert refused == not_found(
        f'workflow execution not found for workflow ID "{run.workflow_id}" and run ID "{run_id}"'
    )


@pytest.mark.parametrize("what", EVERY_CALL)
async def test_bad_input_malformed_run_id(server: Server, what: str) -> None:
    words = "RunId is not valid UUID." if what in BY_ID else "Invalid RunId."
    assert await refusal(EVERY_CALL[what](server, Run("any", "not-a-uuid", "q"))) == invalid(words)


@pytest.mark.parametrize("what", ON_AN_EXECUTION)
async def test_bad_input_empty_workflow_id(server: Server, what: str) -> None:
    refused = await refusal(ON_AN_EXECUTION[what](server, Run("", "", "q")))
    assert refused == invalid("WorkflowId is not set on request.")


MISSING: dict[str, tuple[Call, str]] = {
    "start without id": (lambda s, _: s.start(workflow_id=""), "WorkflowId is not set on request."),
    "start without type": (lambda s, _: s.start(workflow_type={"name": ""}), "WorkflowType is not set on request."),
    "start without queue": (
        lambda s, _: s.call("StartWorkflowExecution", workflow_id="w", workflow_type={"name": "T"}),
        "taskQueue is not set",
    ),
    "start on a reserved queue": (
        lambda s, _: s.start(queue="/_sys/q/1"),
        "task queue name cannot start with reserved prefix /_sys/",
    ),
    "signal without name": (lambda s, run: s.signal(run, ""), "SignalName is not set on request."),
    "signal without execution": (
        lambda s, _: s.call("SignalWorkflowExecution", signal_name="go"),
        "Execution is not set on request.",
    ),
    "query without name": (lambda s, run: s.query(run, ""), "QueryType is not set on request."),
    "query without query": (
        lambda s, run: s.call("QueryWorkflow", execution=run.execution),
        "WorkflowQuery is not set on request.",
    ),
    "history without execution": (
        lambda s, _: s.call("GetWorkflowExecutionHistory"),
        "Execution is not set on request.",
    ),
    "workflow poll without queue": (
        lambda s, _: s.call("PollWorkflowTaskQueue", deadline_s=5),
        "taskQueue is not set",
    ),
    "activity poll without queue": (
        lambda s, _: s.call("PollActivityTaskQueue", deadline_s=5),
        "taskQueue is not set",
    ),
    "workflow poll with a nameless queue": (lambda s, _: s.poll_workflow("", deadline_s=5), "missing task queue name"),
    "activity by id without id": (
        lambda s, run: s.call("RespondActivityTaskCompletedById", workflow_id=run.workflow_id, run_id=run.run_id),
        "ActivityId is not set on request.",
    ),
    "negative first interval": (
        lambda s, _: s.start(retry_policy={"initial_interval": seconds(-1)}),
        "invalid InitialInterval set on retry policy: negative duration",
    ),
    "coefficient under one": (
        lambda s, _: s.start(retry_policy={"backoff_coefficient": 0.5}),
        "BackoffCoefficient cannot be less than 1 on retry policy.",
    ),
    "negative attempts": (
        lambda s, _: s.start(retry_policy={"maximum_attempts": -1}),
        "MaximumAttempts cannot be negative on retry policy.",
    ),
    "maximum under first interval": (
        lambda s, _: s.start(retry_policy={"initial_interval": seconds(5), "maximum_interval": seconds(2)}),
        "MaximumInterval cannot be less than InitialInterval on retry policy.",
    ),
}


@pytest.mark.parametrize("what", MISSING)
async def test_bad_input_incomplete_request(server: Server, what: str) -> None:
    make, words = MISSING[what]
    run = await server.start()
    before = await server.history(run)
    assert await refusal(make(server, run)) == invalid(words)
    assert await server.history(run) == before


async def test_bad_input_unknown_activity_of_a_known_workflow(server: Server) -> None:
    run = await server.start()
    for method in BY_ID:
        assert await refusal(by_id(method)(server, run)) == not_found(
            "cannot find pending activity with ActivityID a, check workflow execution history for more details"
        )


async def test_bad_input_unknown_first_run_id(server: Server) -> None:
    run = await server.start()
    refused = await refusal(server.terminate(run, first_execution_run_id="not-a-run"))
    assert refused == not_found("workflow execution not found")


async def test_bad_input_unregistered_search_attribute_on_start(server: Server) -> None:
    refused = await refusal(server.start(search_attributes={"indexed_fields": {"Nope": {"data": b'"x"'}}}))
    assert refused == invalid("Namespace default has no mapping defined for search attribute Nope")


@pytest.mark.parametrize("poll", [Server.poll_workflow, Server.poll_activity], ids=["workflow", "activity"])
async def test_bad_input_a_poll_that_leaves_no_time(server: Server, poll: Callable[..., Any]) -> None:
    refused = await refusal(poll(server, unique("queue"), deadline_s=1))
    assert refused == Refusal(grpc.StatusCode.FAILED_PRECONDITION, "Context timeout is too short.")


@pytest.mark.parametrize(
    ("name", "retention_s", "words"),
    [
        ("", 86400, "Namespace not set on request."),
        ("x" * 1001, 86400, "Namespace length exceeds limit."),
        (None, None, "A valid retention period is not set on request."),
        (None, -1, "A valid retention period is not set on request."),
        (None, 60, "A valid retention period is not set on request."),
    ],
    ids=["no name", "long name", "no retention", "negative retention", "short retention"],
)
async def test_bad_input_registering_a_namespace(
    server: Server, name: str | None, retention_s: float | None, words: str
) -> None:
    retention = None if retention_s is None else seconds(retention_s)
    refused = await refusal(
        server.call(
            "RegisterNamespace",
            namespace=unique("ns") if name is None else name,
            workflow_execution_retention_period=retention,
        )
    )
    assert refused == invalid(words)


async def test_bad_input_negative_page_sizes_are_the_default(server: Server) -> None:
    run = await server.start()
    assert types(await server.history(run))
    answer = await server.call("GetWorkflowExecutionHistory", execution=run.execution, maximum_page_size=-1)
    assert types(answer.history.events) == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    await server.call("ListWorkflowExecutions", page_size=-1)


async def test_bad_input_a_cancelled_call_leaves_the_server_serving(server: Server) -> None:
    poll = asyncio.create_task(server.poll_workflow(queue := unique("queue")))
    run = await server.start()
    poll.cancel()
    await asyncio.gather(poll, return_exceptions=True)
    later = await server.start(queue=queue)
    await server.finish(later)
    await server.finish(run)
