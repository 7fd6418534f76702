"""What workers send that is too large to be recorded: the task fails with the server's own words instead."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import QueryToken, TaskToken, encode_token
from frontend.checks.blobs import cut

from .conftest import Setup

TOKEN = encode_token(TaskToken(namespace="default", workflow_id="w", run_id="r", scheduled_event_id=5))
LARGE = Payloads(payloads=[Payload(data=b"x" * (2 * 1024 * 1024 + 1))])
SMALL = Payloads(payloads=[Payload(data=b"x")])
RUN_ID = "01a22de8-c0f5-77d0-8147-87e705e4aacf"
BY_ID = {"namespace": "default", "workflow_id": "w", "run_id": RUN_ID, "activity_id": "a"}
BY_TOKEN = {"task_token": TOKEN}


def application_failure(**fields: Any) -> Failure:
    failure = Failure(**fields)
    failure.application_failure_info.type = "Boom"
    return failure


def is_server_failure(failure: Failure, message: str) -> bool:
    return failure.message == message and not failure.source and failure.server_failure_info.non_retryable


@pytest.mark.parametrize(
    "request_type, field, message",
    [
        (ws.RespondActivityTaskCompletedRequest, "result", "Complete result exceeds size limit."),
        (ws.RespondActivityTaskCanceledRequest, "details", "Cancel details exceed size limit."),
        (ws.RecordActivityTaskHeartbeatRequest, "details", "Heartbeat details exceed size limit."),
    ],
)
async def test_an_activity_by_token(setup: Setup, request_type: Any, field: str, message: str) -> None:
    answer = await setup.call(request_type(task_token=TOKEN, identity="i", **{field: LARGE}))
    (seen,) = setup.history.asked("respond_activity_task_failed")
    assert is_server_failure(seen.failure, message)
    assert (seen.task_token, seen.identity, seen.namespace) == (TOKEN, "i", "default")
    assert len(setup.history.requests) == 1
    if isinstance(answer, ws.RecordActivityTaskHeartbeatResponse):
        assert answer.cancel_requested


@pytest.mark.parametrize(
    "request_type, field, message",
    [
        (ws.RespondActivityTaskCompletedByIdRequest, "result", "Complete result exceeds size limit."),
        (ws.RespondActivityTaskCanceledByIdRequest, "details", "Cancel details exceed size limit."),
        (ws.RecordActivityTaskHeartbeatByIdRequest, "details", "Heartbeat details exceed size limit."),
    ],
)
async def test_an_activity_by_id(setup: Setup, request_type: Any, field: str, message: str) -> None:
    answer = await setup.call(request_type(**BY_ID, identity="i", **{field: LARGE}))
    (seen,) = setup.history.asked("respond_activity_task_failed_by_id")
    assert is_server_failure(seen.failure, message)
    assert (seen.workflow_id, seen.run_id, seen.activity_id) == ("w", RUN_ID, "a")
    if isinstance(answer, ws.RecordActivityTaskHeartbeatByIdResponse):
        assert answer.cancel_requested


@pytest.mark.parametrize(
    "request_type, where, method",
    [
        (ws.RespondActivityTaskCompletedRequest, BY_TOKEN, "respond_activity_task_completed"),
        (ws.RespondActivityTaskCompletedByIdRequest, BY_ID, "respond_activity_task_completed_by_id"),
        (ws.RespondActivityTaskCanceledRequest, BY_TOKEN, "respond_activity_task_canceled"),
        (ws.RespondActivityTaskCanceledByIdRequest, BY_ID, "respond_activity_task_canceled_by_id"),
        (ws.RecordActivityTaskHeartbeatRequest, BY_TOKEN, "record_activity_task_heartbeat"),
        (ws.RecordActivityTaskHeartbeatByIdRequest, BY_ID, "record_activity_task_heartbeat_by_id"),
    ],
)
async def test_what_is_not_too_large_passes(
    setup: Setup, request_type: Any, where: dict[str, Any], method: str
) -> None:
    field = "result" if "result" in request_type.DESCRIPTOR.fields_by_name else "details"
    await setup.call(request_type(**where, **{field: SMALL}))
    (seen,) = setup.history.asked(method)
    assert getattr(seen, field) == SMALL


@pytest.mark.parametrize(
    "request_type, where, method",
    [
        (ws.RespondActivityTaskFailedRequest, BY_TOKEN, "respond_activity_task_failed"),
        (ws.RespondActivityTaskFailedByIdRequest, BY_ID, "respond_activity_task_failed_by_id"),
    ],
)
async def test_a_failure_and_its_last_heartbeat(
    setup: Setup, request_type: Any, where: dict[str, Any], method: str
) -> None:
    failure = application_failure(message="m", stack_trace="s" * (2 * 1024 * 1024 + 1))
    answer = await setup.call(request_type(**where, failure=failure))
    (seen,) = setup.history.asked(method)
    assert is_server_failure(seen.failure, "Failure exceeds size limit.")
    assert (seen.failure.cause.message, seen.failure.cause.application_failure_info.type) == ("m", "Boom")
    assert 500_000 < seen.failure.cause.ByteSize() <= 512 * 1024
    assert list(answer.failures) == [seen.failure]

    answer = await setup.call(
        request_type(**where, failure=application_failure(message="m"), last_heartbeat_details=LARGE)
    )
    seen = setup.history.last()
    assert not seen.HasField("last_heartbeat_details")
    assert seen.failure.message == "m"
    assert [failure.message for failure in answer.failures] == ["Heartbeat details exceed size limit."]


async def test_a_workflow_task_failure(setup: Setup) -> None:
    failure = application_failure(message="m" * (2 * 1024 * 1024 + 1))
    await setup.call(ws.RespondWorkflowTaskFailedRequest(task_token=TOKEN, failure=failure))
    assert is_server_failure(setup.history.last().failure, "Failure exceeds size limit.")


async def test_a_query_result(setup: Setup) -> None:
    token = encode_token(QueryToken(namespace="default", task_queue="q", query_id="1"))
    await setup.call(ws.RespondQueryTaskCompletedRequest(task_token=token, completed_type=1, query_result=LARGE))
    seen = setup.matching.last()
    assert (seen.completed_type, seen.error_message) == (2, "Blob data size exceeds limit.")
    assert not seen.query_result.payloads
    assert (seen.task_token, seen.namespace) == (token, "default")


def test_a_cut_failure_keeps_its_chain_as_long_as_there_is_room() -> None:
    failure = application_failure(message="a" * 50, cause=application_failure(message="é" * 100))
    short = cut(failure, room=120)
    assert short.message == "a" * 50
    assert 0 < len(short.cause.message) < 100
    assert short.cause.message == "é" * len(short.cause.message)
    assert short.ByteSize() <= 140
