"""The HTTP port of a real server: a workflow's life over the JSON HTTP API, and what a Nexus handler elsewhere would send."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import NexusOperationWaitStage
from temporalio.api.nexus.v1 import EndpointSpec, EndpointTarget, Response, StartOperationResponse
from temporalio.api.operatorservice.v1 import CreateNexusEndpointRequest, ListClustersRequest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws
from temporalio.client import Client

from tests.server_process import LiveServer


def ask(server: LiveServer, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON."""
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(f"http://{server.addresses['http']}{path}", data=data, method=method, headers=named)
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def test_a_workflow_over_http(live_server: LiveServer) -> None:
    place = f"/api/v1/namespaces/default/workflows/http-{uuid.uuid4()}"
    start = {
        "workflowType": {"name": "T"},
        "taskQueue": {"name": "nobody"},
        "input": [{"a": 1}],
        "memo": {"fields": {"m": 5}},
    }
    status, started = ask(live_server, "POST", place, start)
    assert (status, started["started"]) == (200, True)
    assert ask(live_server, "POST", f"{place}/signal/s", {"input": ["x"]})[0] == 200
    assert ask(live_server, "GET", place)[1]["workflowExecutionInfo"]["memo"] == {"fields": {"m": 5}}
    events = ask(live_server, "GET", f"{place}/history")[1]["history"]["events"]
    assert events[0]["workflowExecutionStartedEventAttributes"]["input"] == [{"a": 1}]
    assert events[-1]["workflowExecutionSignaledEventAttributes"]["input"] == ["x"]
    assert ask(live_server, "POST", f"{place}/terminate", {})[0] == 200
    status, refused = ask(live_server, "POST", f"{place}/terminate", {})
    assert (status, refused["code"], refused["message"]) == (404, 5, "workflow execution already completed")


async def test_an_operation_that_is_started_and_completed_over_http(live_server: LiveServer) -> None:
    client = await Client.connect(live_server.address)
    (cluster,) = (await client.operator_service.list_clusters(ListClustersRequest())).clusters
    assert cluster.http_address == live_server.addresses["http"]
    name = f"http-{uuid.uuid4()}"
    worker = EndpointTarget.Worker(namespace="default", task_queue=name)
    spec = EndpointSpec(name=name, target=EndpointTarget(worker=worker))
    made = await client.operator_service.create_nexus_endpoint(CreateNexusEndpointRequest(spec=spec))

    path = f"/nexus/endpoints/{made.endpoint.id}/services/s/o"
    asking = asyncio.to_thread(ask, live_server, "POST", path, 7, content_type="application/json")
    inbound, _ = await asyncio.gather(
        asking,
        answer_next(client, name, sync_success=StartOperationResponse.Sync(payload=plain(b'"out"'))),
    )
    assert inbound == (200, "out")

    start = ws.StartNexusOperationExecutionRequest(
        namespace="default", operation_id=name, endpoint=name, service="s", operation="o"
    )
    await client.workflow_service.start_nexus_operation_execution(start)
    task = await answer_next(client, name, async_success=StartOperationResponse.Async(operation_token="tk"))
    token = task.request.start_operation.callback_header["temporal-callback-token"]
    status, _ = await asyncio.to_thread(
        ask,
        live_server,
        "POST",
        "/nexus/callback",
        8,
        content_type="application/json",
        nexus_operation_state="succeeded",
        temporal_callback_token=token.encode().decode("latin-1"),
    )
    assert status == 200
    closed = NexusOperationWaitStage.NEXUS_OPERATION_WAIT_STAGE_CLOSED
    ended = await client.workflow_service.poll_nexus_operation_execution(
        ws.PollNexusOperationExecutionRequest(namespace="default", operation_id=name, wait_stage=closed)
    )
    assert ended.result == plain(b"8")


def plain(data: bytes) -> Payload:
    return Payload(metadata={"encoding": b"json/plain"}, data=data)


async def answer_next(client: Client, queue: str, **variant: Any) -> ws.PollNexusTaskQueueResponse:
    task = await client.workflow_service.poll_nexus_task_queue(
        ws.PollNexusTaskQueueRequest(namespace="default", task_queue=TaskQueue(name=queue), identity="w")
    )
    response = Response(start_operation=StartOperationResponse(**variant))
    await client.workflow_service.respond_nexus_task_completed(
        ws.RespondNexusTaskCompletedRequest(
            namespace="default", identity="w", task_token=task.task_token, response=response
        )
    )
    return task
