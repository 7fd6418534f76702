"""Calls as such: errors rendered, calls repeated when an owner has moved, bytes that are no request."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.errordetails import v1 as details
from temporalio.api.failure.v1 import Failure, MultiOperationExecutionAborted
from temporalio.api.workflowservice import v1 as ws

from common import errors
from frontend.calls import call
from tests.behaviours.harness import Refusal, detail_of, error_of, status_of

from .conftest import Setup, passing_time

SIGNAL = ws.SignalWorkflowExecutionRequest(
    namespace="default", workflow_execution=WorkflowExecution(workflow_id="w"), signal_name="s"
)
Code = grpc.StatusCode

RENDERED: list[tuple[errors.TemporalError, Code, Any]] = [
    (errors.InvalidArgument("m"), Code.INVALID_ARGUMENT, None),
    (errors.NotFound("m"), Code.NOT_FOUND, details.NotFoundFailure()),
    (errors.FailedPrecondition("m"), Code.FAILED_PRECONDITION, None),
    (errors.Internal("m"), Code.INTERNAL, None),
    (errors.DeadlineExceeded("m"), Code.DEADLINE_EXCEEDED, None),
    (errors.Canceled("m"), Code.CANCELLED, None),
    (errors.Aborted("m"), Code.ABORTED, None),
    (errors.AlreadyExists("m"), Code.ALREADY_EXISTS, None),
    (errors.OutOfRange("m"), Code.OUT_OF_RANGE, None),
    (errors.Unimplemented("m"), Code.UNIMPLEMENTED, None),
    (
        errors.PermissionDenied("m", reason="r"),
        Code.PERMISSION_DENIED,
        details.PermissionDeniedFailure(reason="r"),
    ),
    (errors.WorkflowNotReady("m"), Code.FAILED_PRECONDITION, details.WorkflowNotReadyFailure()),
    (
        errors.QueryFailed("m", failure=Failure(message="f")),
        Code.INVALID_ARGUMENT,
        details.QueryFailedFailure(failure=Failure(message="f")),
    ),
    (
        errors.CancellationAlreadyRequested("m"),
        Code.ALREADY_EXISTS,
        details.CancellationAlreadyRequestedFailure(),
    ),
    (errors.PersistenceError(table="t", key="k", reason="r"), Code.INTERNAL, None),
    (errors.OutcomeUnknown("m"), Code.UNAVAILABLE, None),
]


@pytest.mark.parametrize("error, code, detail", RENDERED, ids=[type(e).__name__ for e, _, _ in RENDERED])
async def test_an_error_is_rendered_as_it_declares(
    setup: Setup, error: errors.TemporalError, code: Code, detail: Any
) -> None:
    setup.history.answer("signal_workflow_execution", error)
    seen = await error_of(setup.call(SIGNAL))
    assert (seen.code(), seen.details()) == (code, error.message)
    if detail is None:
        assert not status_of(seen).details
    else:
        assert detail_of(seen, type(detail)) == detail
        assert (status_of(seen).code, status_of(seen).message) == (code.value[0], error.message)


async def test_an_already_started_workflow_names_its_run(setup: Setup) -> None:
    started = errors.WorkflowExecutionAlreadyStarted("m", start_request_id="q", run_id="r")
    setup.history.answer("signal_workflow_execution", started)
    detail = detail_of(await error_of(setup.call(SIGNAL)), details.WorkflowExecutionAlreadyStartedFailure)
    assert (detail.start_request_id, detail.run_id) == ("q", "r")


async def test_an_exhausted_resource_is_named_in_details_and_headers(setup: Setup) -> None:
    exhausted = errors.ResourceExhausted(
        "m",
        cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
        scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
    )
    setup.history.answer("signal_workflow_execution", exhausted)
    error = await error_of(setup.call(SIGNAL))
    detail = detail_of(error, details.ResourceExhaustedFailure)
    assert (detail.cause, detail.scope) == (exhausted.cause, exhausted.scope)
    headers = dict(error.initial_metadata())
    assert headers["x-resource-exhausted-cause"] == "ConcurrentLimit"
    assert headers["x-resource-exhausted-scope"] == "Namespace"


@pytest.mark.parametrize("letter, wire_bytes", [("x", 1), ("é", 6), ("%", 3)])
async def test_a_long_message_is_cut(setup: Setup, letter: str, wire_bytes: int) -> None:
    setup.history.answer("signal_workflow_execution", errors.InvalidArgument(letter * 5000))
    message = (await setup.refused(SIGNAL)).message
    assert message == letter * ((4000 - len("... <truncated>")) // wire_bytes) + "... <truncated>"


async def test_each_operation_of_several_has_its_own_status(setup: Setup) -> None:
    failed = errors.MultiOperationFailed(
        "inner",
        errors=[
            errors.Aborted("Operation was aborted."),
            errors.WorkflowExecutionAlreadyStarted("running", start_request_id="q", run_id="r"),
        ],
    )
    setup.history.answer("execute_multi_operation", failed)
    error = await error_of(setup.call(start_and_update()))
    assert (error.code(), error.details()) == (Code.ALREADY_EXISTS, "Update-with-Start could not be executed.")
    first, second = detail_of(error, details.MultiOperationExecutionFailure).statuses
    assert (first.code, first.message) == (Code.ABORTED.value[0], "Operation was aborted.")
    assert first.details[0].Is(MultiOperationExecutionAborted.DESCRIPTOR)
    assert (second.code, second.message) == (Code.ALREADY_EXISTS.value[0], "running")
    assert second.details[0].Is(details.WorkflowExecutionAlreadyStartedFailure.DESCRIPTOR)


async def test_operations_are_checked_together(setup: Setup) -> None:
    request = start_and_update()
    request.operations[1].update_workflow.workflow_execution.workflow_id = "other"
    error = await error_of(setup.call(request))
    assert (error.code(), error.details()) == (Code.INVALID_ARGUMENT, "Update-with-Start could not be executed.")
    statuses = detail_of(error, details.MultiOperationExecutionFailure).statuses
    assert [status.message for status in statuses] == [
        "Operation was aborted.",
        "WorkflowId is not consistent with previous operation(s).",
    ]
    assert not setup.history.requests


async def test_an_unforeseen_error_is_logged_and_not_shown(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    setup.history.answer("signal_workflow_execution", ZeroDivisionError("secret"))
    refused = await setup.refused(SIGNAL)
    assert refused.code is Code.INTERNAL
    assert refused.message.startswith("something went wrong, please retry (")
    assert "secret" not in refused.message
    assert "SignalWorkflowExecution failed" in caplog.text
    assert "ZeroDivisionError: secret" in caplog.text


@pytest.mark.parametrize(
    "moved",
    [errors.ShardOwnershipLost(shard_id=1), errors.QueueOwnershipLost(physical_queue="q")],
    ids=["shard", "queue"],
)
async def test_a_call_is_repeated_until_the_new_owner_answers(setup: Setup, moved: errors.Unavailable) -> None:
    answers = iter([moved, moved, None])

    def answer(_: Any) -> ws.SignalWorkflowExecutionResponse:
        error = next(answers)
        if error is not None:
            raise error
        return ws.SignalWorkflowExecutionResponse()

    setup.history.answer("signal_workflow_execution", answer)
    await passing_time(setup, setup.call(SIGNAL))
    assert len(setup.history.asked("signal_workflow_execution")) == 3


async def test_a_shard_that_stays_away(setup: Setup) -> None:
    setup.history.answer("signal_workflow_execution", errors.ShardOwnershipLost(shard_id=1))
    refused = await passing_time(setup, setup.refused(SIGNAL))
    assert refused == Refusal(Code.UNAVAILABLE, "shard unavailable, please backoff and retry")
    assert len(setup.history.asked("signal_workflow_execution")) == 1 + setup.config.ownership_retries


async def test_a_database_that_is_away_is_tried_once_more(setup: Setup) -> None:
    setup.history.answer("signal_workflow_execution", errors.Unavailable("the database is away"))
    refused = await passing_time(setup, setup.refused(SIGNAL))
    assert refused == Refusal(Code.UNAVAILABLE, "the database is away")
    assert len(setup.history.asked("signal_workflow_execution")) == 2


async def test_what_may_have_been_applied_is_not_repeated(setup: Setup) -> None:
    setup.history.answer("signal_workflow_execution", errors.OutcomeUnknown("perhaps"))
    assert await setup.refused(SIGNAL) == Refusal(Code.UNAVAILABLE, "perhaps")
    assert len(setup.history.asked("signal_workflow_execution")) == 1


async def test_a_client_that_goes_away_cancels_its_call(setup: Setup) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    setup.history.answer("signal_workflow_execution", wait)
    calling = asyncio.ensure_future(setup.call(SIGNAL))
    await begun.wait()
    calling.cancel()
    await asyncio.wait_for(cancelled.wait(), 5)


async def test_a_call_in_this_process_is_checked_as_one_from_outside(setup: Setup) -> None:
    frontend = setup.server.frontend
    assert await call(frontend, "SignalWorkflowExecution", SIGNAL) == ws.SignalWorkflowExecutionResponse()
    with pytest.raises(errors.NamespaceNotFound):
        await call(frontend, "SignalWorkflowExecution", ws.SignalWorkflowExecutionRequest(namespace="nope"))


@pytest.mark.parametrize(
    "path, message",
    [
        (
            "/temporal.api.workflowservice.v1.WorkflowService/Bogus",
            "unknown method Bogus for service temporal.api.workflowservice.v1.WorkflowService",
        ),
        ("/no.such.Service/Bogus", "unknown service no.such.Service"),
        (
            "/temporal.api.operatorservice.v1.OperatorService/ListNothing",
            "unknown method ListNothing for service temporal.api.operatorservice.v1.OperatorService",
        ),
    ],
)
async def test_what_is_not_there(setup: Setup, path: str, message: str) -> None:
    error = await error_of(setup.channel.unary_unary(path)(b"", timeout=5))
    assert Refusal.of(error) == Refusal(Code.UNIMPLEMENTED, message)


async def test_a_method_that_the_other_role_does_not_have(setup: Setup) -> None:
    assert await setup.refused(ws.ListWorkersRequest(namespace="default")) == Refusal(
        Code.UNIMPLEMENTED, "unknown method ListWorkers for service temporal.api.workflowservice.v1.WorkflowService"
    )


async def test_bytes_that_are_no_message(setup: Setup) -> None:
    path = "/temporal.api.workflowservice.v1.WorkflowService/SignalWorkflowExecution"
    error = await error_of(setup.channel.unary_unary(path)(b"\xff\xff\xff", timeout=5))
    assert error.code() is Code.INTERNAL
    assert error.details().startswith("grpc: error unmarshalling request")


async def test_a_message_over_the_limit(setup: Setup) -> None:
    request = ws.SignalWorkflowExecutionRequest(
        input=Payloads(payloads=[Payload(data=b"x" * (4 * 1024 * 1024))]), namespace="default"
    )
    refused = await setup.refused(request)
    assert refused.code is Code.RESOURCE_EXHAUSTED
    assert refused.message == f"grpc: received message larger than max ({request.ByteSize()} vs. 4194304)"
    assert refused.detail == ""


async def test_garbage_on_the_port_harms_nobody(setup: Setup) -> None:
    host, _, port = setup.address.rpartition(":")
    for garbage in (b"\x00" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 500):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(garbage)
        await writer.drain()
        writer.write_eof()
        await asyncio.wait_for(reader.read(), 5)
        writer.close()
    await setup.call(SIGNAL)


def start_and_update() -> ws.ExecuteMultiOperationRequest:
    operation = ws.ExecuteMultiOperationRequest.Operation
    return ws.ExecuteMultiOperationRequest(
        namespace="default",
        operations=[
            operation(start_workflow={"workflow_id": "w", "workflow_type": {"name": "T"}, "task_queue": {"name": "q"}}),
            operation(
                update_workflow={
                    "workflow_execution": {"workflow_id": "w"},
                    "request": {"meta": {"update_id": "u"}, "input": {"name": "n"}},
                }
            ),
        ],
    )
