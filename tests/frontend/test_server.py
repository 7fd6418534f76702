"""The server: what it says about itself, health, reflection, starting and stopping."""

from __future__ import annotations

import asyncio
from uuid import UUID

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from temporalio.api.operatorservice import v1 as op
from temporalio.api.workflowservice import v1 as ws

from frontend.config import FrontendConfig
from tests.behaviours.harness import error_of

from .conftest import Setup, serving

SERVICES = (
    "temporal.api.workflowservice.v1.WorkflowService",
    "temporal.api.operatorservice.v1.OperatorService",
)


async def test_system_info_tells_sdks_what_they_may_use(setup: Setup) -> None:
    info = await setup.call(ws.GetSystemInfoRequest())
    assert info.server_version == "1.32.0"
    assert info.capabilities.internal_error_differentiation
    assert info.capabilities.encoded_failure_attributes


async def test_cluster_info(setup: Setup) -> None:
    info = await setup.call(ws.GetClusterInfoRequest())
    assert (info.cluster_name, info.history_shard_count) == ("active", 4)
    assert info.supported_clients["temporal-cli"] == "<2.0.0"
    assert UUID(info.cluster_id)
    (cluster,) = (await setup.call(op.ListClustersRequest())).clusters
    assert (cluster.cluster_id, cluster.address) == (info.cluster_id, setup.address)
    assert cluster.is_connection_enabled


async def test_the_cluster_keeps_its_id(setup: Setup) -> None:
    before = (await setup.call(ws.GetClusterInfoRequest())).cluster_id
    async with serving(Setup(store=setup.store)) as again:
        assert (await again.call(ws.GetClusterInfoRequest())).cluster_id == before


@pytest.mark.parametrize("service", ["", *SERVICES])
async def test_health(setup: Setup, service: str) -> None:
    health = health_pb2_grpc.HealthStub(setup.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_of_an_unknown_service(setup: Setup) -> None:
    health = health_pb2_grpc.HealthStub(setup.channel)
    error = await error_of(health.Check(health_pb2.HealthCheckRequest(service="no"), timeout=5))
    assert error.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_services_and_gives_their_files(setup: Setup) -> None:
    async def questions():  # type: ignore[no-untyped-def]
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        yield reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICES[0])

    stub = reflection_pb2_grpc.ServerReflectionStub(setup.channel)
    listed, described = [answer async for answer in stub.ServerReflectionInfo(questions(), timeout=5)]
    names = {service.name for service in listed.list_services_response.service}
    assert {*SERVICES, "grpc.health.v1.Health"} <= names
    files = [FileDescriptorProto.FromString(data) for data in described.file_descriptor_response.file_descriptor_proto]
    assert "temporal/api/workflowservice/v1/service.proto" in [file.name for file in files]


async def test_starting_and_stopping_twice_changes_nothing() -> None:
    setup = Setup()
    await setup.server.start()
    address = setup.address
    await setup.server.start()
    assert setup.address == address
    await setup.server.stop()
    await setup.server.stop()
    assert setup.server.addresses() == {}


async def test_a_stopped_server_can_be_started_again() -> None:
    setup = Setup()
    await setup.server.start()
    await setup.server.stop()
    async with serving(setup):
        await setup.call(ws.GetSystemInfoRequest())


@pytest.mark.parametrize("address", ["::1:0", "[::1]:0"])
async def test_an_address_of_the_sixth_version(address: str) -> None:
    setup = Setup()
    setup.server._wanted_address = address
    async with serving(setup):
        assert setup.address.startswith("[::1]:")
        await setup.call(ws.GetSystemInfoRequest())


async def test_an_address_that_is_taken(setup: Setup) -> None:
    other = Setup()
    other.server._wanted_address = setup.address
    with pytest.raises(OSError, match="cannot listen on"):
        await other.server.start()


async def test_a_call_in_flight_is_finished_when_the_server_stops(setup: Setup) -> None:
    begun, finish = asyncio.Event(), asyncio.Event()

    async def slow(_: object) -> ws.DescribeTaskQueueResponse:
        begun.set()
        await finish.wait()
        return ws.DescribeTaskQueueResponse()

    setup.matching.answer("describe_task_queue", slow)
    calling = asyncio.ensure_future(
        setup.call(ws.DescribeTaskQueueRequest(namespace="default", task_queue={"name": "q"}))
    )
    await begun.wait()
    stopping = asyncio.ensure_future(setup.server.stop())
    finish.set()
    assert await calling == ws.DescribeTaskQueueResponse()
    await stopping


async def test_what_the_configuration_says() -> None:
    config = FrontendConfig(public_address="host:1", cluster_id="c", persistence_store="sqlite", history_shards=7)
    async with serving(Setup(config=config)) as setup:
        info = await setup.call(ws.GetClusterInfoRequest())
        assert (info.cluster_id, info.persistence_store, info.history_shard_count) == ("c", "sqlite", 7)
        (cluster,) = (await setup.call(op.ListClustersRequest())).clusters
        assert cluster.address == "host:1"
