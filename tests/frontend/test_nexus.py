"""Nexus endpoints and the answers of Nexus workers, as the frontend checks them. The words are the official server's."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import grpc
import pytest
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure, NexusHandlerFailureInfo
from temporalio.api.nexus.v1 import (
    EndpointSpec,
    EndpointTarget,
    HandlerError,
    Response,
    StartOperationResponse,
    UnsuccessfulOperationError,
)
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.operatorservice import v1 as operator_v1
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import NexusTaskToken, encode_token
from tests.behaviours.harness import Refusal

from .conftest import Setup

INVALID = grpc.StatusCode.INVALID_ARGUMENT
FAILED = grpc.StatusCode.FAILED_PRECONDITION
NOT_FOUND = grpc.StatusCode.NOT_FOUND
TOKEN = encode_token(NexusTaskToken(namespace="default", task_queue="q", nexus_task_id="t"))
REGEX = r'endpoint name must match the regex: "^[a-zA-Z][a-zA-Z0-9\\-]*[a-zA-Z0-9]$"'


def spec(
    name: str = "pay", *, url: str = "", namespace: str = "default", queue: str = "q", **more: Any
) -> EndpointSpec:
    if url:
        target = EndpointTarget(external=EndpointTarget.External(url=url))
    else:
        target = EndpointTarget(worker=EndpointTarget.Worker(namespace=namespace, task_queue=queue))
    return EndpointSpec(name=name, target=target, **more)


def create(given: EndpointSpec) -> operator_v1.CreateNexusEndpointRequest:
    return operator_v1.CreateNexusEndpointRequest(spec=given)


async def test_an_endpoint_from_its_creation_to_its_deletion(setup: Setup) -> None:
    made = (await setup.call(create(spec(description=Payload(data=b"d"))))).endpoint
    assert (made.version, made.spec) == (1, spec(description=Payload(data=b"d")))
    assert made.url_prefix == f"/nexus/endpoints/{made.id}/services"
    assert made.HasField("created_time") and not made.HasField("last_modified_time")
    get = operator_v1.GetNexusEndpointRequest(id=made.id)
    assert (await setup.call(get)).endpoint == made
    update = operator_v1.UpdateNexusEndpointRequest(id=made.id, version=1, spec=spec("paid", url="https://a/b"))
    changed = (await setup.call(update)).endpoint
    assert (changed.version, changed.spec.name) == (2, "paid")
    assert changed.HasField("last_modified_time") and not changed.HasField("created_time")
    assert await setup.refused(update) == Refusal(FAILED, "nexus endpoint version mismatch. received: 1 expected 2")
    delete = operator_v1.DeleteNexusEndpointRequest(id=made.id, version=2)
    await setup.call(delete)
    assert (await setup.refused(get)).code == NOT_FOUND
    again = await setup.refused(delete)
    assert again.message == f"error deleting nexus endpoint with ID: {made.id}"


async def test_a_name_is_given_once(setup: Setup) -> None:
    await setup.call(create(spec()))
    refusal = await setup.refused(create(spec()))
    assert refusal.code == grpc.StatusCode.ALREADY_EXISTS
    assert refusal.message == "error creating Nexus endpoint. Endpoint with name pay already registered"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (EndpointSpec(), "endpoint name not set, empty target variant"),
        (spec("9"), REGEX),
        (spec("a" * 201), "endpoint name exceeds length limit of 200"),
        (spec(namespace=""), "target namespace not set"),
        (spec(queue=""), 'invalid target task queue: "taskQueue is not set"'),
        (spec(url="ftp://a"), 'invalid target URL scheme: "ftp", expected http or https'),
        (spec(url="http://" + "a" * 4_096), "target URL length exceeds limit of 4096"),
        (spec(description=Payload(data=b"x" * 20_001)), "description size exceeds limit of 20000"),
        (spec("9", namespace=""), f"{REGEX}, target namespace not set"),
    ],
)
async def test_specs_that_are_refused(setup: Setup, given: EndpointSpec, message: str) -> None:
    refusal = await setup.refused(create(given))
    assert (refusal.code, refusal.message) == (INVALID, message)


async def test_a_target_namespace_must_be_there_and_stays(setup: Setup) -> None:
    refusal = await setup.refused(create(spec(namespace="nowhere")))
    assert refusal.code == FAILED
    assert refusal.message.startswith("could not verify namespace referenced by target exists: ")
    await setup.call(create(spec()))
    refusal = await setup.refused(operator_v1.DeleteNamespaceRequest(namespace="default"))
    assert refusal.code == FAILED
    assert refusal.message == "cannot delete a namespace that is a target of a Nexus endpoint pay"


async def test_ids_that_are_refused(setup: Setup) -> None:
    get = operator_v1.GetNexusEndpointRequest
    assert (await setup.refused(get())).message == "endpoint ID not set"
    assert (await setup.refused(get(id="x"))).message == 'malformed endpoint ID: "invalid UUID length: 1"'
    assert (await setup.refused(get(id=str(uuid4())))).code == NOT_FOUND
    refusal = await setup.refused(operator_v1.DeleteNexusEndpointRequest())
    assert refusal.message == "endpoint ID not set, endpoint version is non-positive"


async def test_pages_and_names(setup: Setup) -> None:
    made = [(await setup.call(create(spec(f"ep-{n}")))).endpoint.id for n in range(5)]
    found: list[str] = []
    token = b""
    while True:
        page = await setup.call(operator_v1.ListNexusEndpointsRequest(page_size=2, next_page_token=token))
        found += [endpoint.id for endpoint in page.endpoints]
        token = page.next_page_token
        if not token:
            break
    assert found == sorted(made)
    named = await setup.call(operator_v1.ListNexusEndpointsRequest(name="ep-3"))
    assert [endpoint.spec.name for endpoint in named.endpoints] == ["ep-3"]
    assert not (await setup.call(operator_v1.ListNexusEndpointsRequest(name="none"))).endpoints
    refusal = await setup.refused(operator_v1.ListNexusEndpointsRequest(page_size=1_001))
    assert (refusal.code, refusal.message) == (INVALID, "page_size exceeds limit of 1000")
    refusal = await setup.refused(operator_v1.ListNexusEndpointsRequest(page_size=-1))
    assert refusal.message == "page_size is negative"


def completed(**fields: Any) -> ws.RespondNexusTaskCompletedRequest:
    response = Response(start_operation=StartOperationResponse(**fields))
    return ws.RespondNexusTaskCompletedRequest(task_token=TOKEN, response=response)


async def test_answers_reach_matching(setup: Setup) -> None:
    setup.matching.answer("respond_nexus_task_completed", None)
    setup.matching.answer("respond_nexus_task_failed", None)
    await setup.call(completed(sync_success=StartOperationResponse.Sync()))
    failure = Failure(nexus_handler_failure_info=NexusHandlerFailureInfo(type="BAD_REQUEST"))
    await setup.call(ws.RespondNexusTaskFailedRequest(task_token=TOKEN, failure=failure))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (completed(async_success=StartOperationResponse.Async()), "missing opration token in response"),
        (
            completed(async_success=StartOperationResponse.Async(operation_token="t" * 4_097)),
            "operation token length exceeds allowed limit (4097/4096)",
        ),
        (
            completed(operation_error=UnsuccessfulOperationError(failure=NexusFailure(details=b"{"))),
            "failure details must be JSON serializable",
        ),
        (ws.RespondNexusTaskFailedRequest(task_token=TOKEN), "request must contain error or failure"),
        (
            ws.RespondNexusTaskFailedRequest(
                task_token=TOKEN, error=HandlerError(failure=NexusFailure(details=b"nojson"))
            ),
            "failure details must be JSON serializable",
        ),
        (
            ws.RespondNexusTaskFailedRequest(task_token=TOKEN, failure=Failure(message="m")),
            "request Failure must contain error or failure with NexusHandlerFailureInfo",
        ),
        (ws.RespondNexusTaskFailedRequest(task_token=b"x"), "Error deserializing task token."),
    ],
)
async def test_answers_that_are_refused(setup: Setup, request_: Any, message: str) -> None:
    refusal = await setup.refused(request_)
    assert (refusal.code, refusal.message) == (INVALID, message)
