"""The namespace of a request comes first: set, short enough, known, that of the token, in a state that allows the call."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import grpc
import pytest
from temporalio.api.enums.v1 import NamespaceState
from temporalio.api.errordetails.v1 import NamespaceInvalidStateFailure, NamespaceNotFoundFailure
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import QueryToken, TaskToken, encode_token
from common.errors import Unavailable
from frontend.methods import NamespaceRule, all_methods
from history.namespaces import DEPRECATED
from tests.behaviours.harness import Refusal, detail_of, error_of

from .conftest import Setup

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = Refusal(grpc.StatusCode.NOT_FOUND, "Namespace nope is not found.", "NamespaceNotFoundFailure")
TOKEN = encode_token(TaskToken(namespace="default", workflow_id="w", run_id="r", scheduled_event_id=5))
QUERY_TOKEN = encode_token(QueryToken(namespace="default", task_queue="q", query_id="1"))

NAMED = [m.request_type for m in all_methods() if m.rule is NamespaceRule.NAMED]
OF_TASK = [m.request_type for m in all_methods() if m.rule in (NamespaceRule.OF_TASK, NamespaceRule.OF_QUERY)]


def by_name(kinds: list[Any]) -> Any:
    return pytest.mark.parametrize("kind", kinds, ids=[kind.__name__.removesuffix("Request") for kind in kinds])


@by_name(NAMED)
async def test_a_method_that_needs_a_namespace(setup: Setup, kind: Any) -> None:
    assert await setup.refused(kind()) == Refusal(INVALID, "Namespace is empty.")
    assert await setup.refused(kind(namespace="nope")) == NOT_FOUND
    assert await setup.refused(kind(namespace="é" * 501)) == Refusal(INVALID, "Namespace length exceeds limit.")


@by_name(OF_TASK)
async def test_a_method_that_needs_a_task_token(setup: Setup, kind: Any) -> None:
    assert await setup.refused(kind()) == Refusal(INVALID, "Task token not set on request.")
    assert await setup.refused(kind(namespace="default")) == Refusal(INVALID, "Task token not set on request.")
    assert await setup.refused(kind(namespace="nope")) == NOT_FOUND
    assert await setup.refused(kind(namespace="n" * 1001)) == Refusal(INVALID, "Namespace length exceeds limit.")
    for damaged in (b"garbage", b"{}", b"\xff\x00", TOKEN[:-1], TOKEN + b"x"):
        assert await setup.refused(kind(task_token=damaged)) == Refusal(INVALID, "Error deserializing task token.")


async def test_a_token_of_another_namespace(setup: Setup) -> None:
    request = ws.RespondWorkflowTaskCompletedRequest(namespace="temporal-system", task_token=TOKEN)
    assert await setup.refused(request) == Refusal(
        INVALID, "Operation requested with a token from a different namespace."
    )


async def test_a_token_of_a_namespace_that_is_gone(setup: Setup) -> None:
    token = encode_token(TaskToken(namespace="nope", workflow_id="w", run_id="r", scheduled_event_id=5))
    assert await setup.refused(ws.RespondActivityTaskCompletedRequest(task_token=token)) == NOT_FOUND


async def test_the_token_tells_the_namespace(setup: Setup) -> None:
    await setup.call(ws.RespondActivityTaskCompletedRequest(task_token=TOKEN))
    assert setup.history.last().namespace == "default"
    await setup.call(ws.RespondQueryTaskCompletedRequest(task_token=QUERY_TOKEN))
    assert setup.matching.last().namespace == "default"


async def test_a_task_token_is_no_query_that_waits(setup: Setup) -> None:
    assert await setup.refused(ws.RespondQueryTaskCompletedRequest(task_token=TOKEN)) == Refusal(
        grpc.StatusCode.NOT_FOUND, "query task not found, or already expired", "NotFoundFailure"
    )


async def test_a_deprecated_namespace_starts_nothing_new(setup: Setup) -> None:
    await setup.call(ws.DeprecateNamespaceRequest(namespace="default"))
    for kind in (ws.StartWorkflowExecutionRequest, ws.SignalWithStartWorkflowExecutionRequest):
        error = await error_of(setup.call(kind(namespace="default")))
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert error.details() == "Namespace has invalid state: Deprecated. Must be one of Registered."
        assert detail_of(error, NamespaceInvalidStateFailure) == NamespaceInvalidStateFailure(
            namespace="default",
            state=NamespaceState.NAMESPACE_STATE_DEPRECATED,
            allowed_states=[NamespaceState.NAMESPACE_STATE_REGISTERED],
        )
    await setup.call(ws.ListWorkflowExecutionsRequest(namespace="default"))


async def test_the_details_name_the_namespace(setup: Setup) -> None:
    error = await error_of(setup.call(ws.DescribeNamespaceRequest(namespace="nope")))
    assert detail_of(error, NamespaceNotFoundFailure).namespace == "nope"


async def test_another_process_deprecates_a_namespace(setup: Setup) -> None:
    await setup.call(ws.ListWorkflowExecutionsRequest(namespace="default"))
    setup.store.records["default"].state = DEPRECATED
    setup.clock.advance(timedelta(seconds=10))
    error = await error_of(setup.call(ws.StartWorkflowExecutionRequest(namespace="default")))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_namespace_that_cannot_be_read(setup: Setup) -> None:
    setup.store.error = Unavailable("the database is away")
    assert await setup.refused(ws.ListWorkflowExecutionsRequest(namespace="other")) == Refusal(
        grpc.StatusCode.UNAVAILABLE, "the database is away"
    )
    setup.store.error = None
    assert await setup.refused(ws.ListWorkflowExecutionsRequest(namespace="nope")) == NOT_FOUND
