"""What is not a request of the API at all."""

import asyncio
import os

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from .harness import Refusal, Server, refusal

SERVICE = "temporal.api.workflowservice.v1.WorkflowService"


async def assert_serving(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    await server.closed(run)


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        os.urandom(4096),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(512),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"",
    ],
    ids=["http1", "random", "random after the preface", "tls", "nothing"],
)
async def test_bad_input_garbage_on_the_port(server: Server, frontend_address: str, junk: bytes) -> None:
    host, _, port = frontend_address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(junk)
    try:
        writer.write_eof()
        async with asyncio.timeout(10):
            while await reader.read(65536):
                pass
    except OSError:
        pass  # cut off is as good as closed
    writer.close()
    await assert_serving(server)


@pytest.mark.parametrize("message", [b"\xff\xff\xff", b"\x0a\x02\xff\xfe"], ids=["no message", "no UTF-8"])
async def test_bad_input_bytes_that_are_no_request(server: Server, message: bytes) -> None:
    refused = await refusal(server.channel.unary_unary(f"/{SERVICE}/DescribeNamespace")(message, timeout=5))
    assert refused.code == grpc.StatusCode.INTERNAL
    await assert_serving(server)


async def test_bad_input_unknown_method(server: Server) -> None:
    refused = await refusal(server.channel.unary_unary(f"/{SERVICE}/NoSuchMethod")(b"", timeout=5))
    assert refused == Refusal(grpc.StatusCode.UNIMPLEMENTED, f"unknown method NoSuchMethod for service {SERVICE}")


async def test_bad_input_unknown_service(server: Server) -> None:
    refused = await refusal(server.channel.unary_unary("/no.such.Service/Method")(b"", timeout=5))
    assert refused == Refusal(grpc.StatusCode.UNIMPLEMENTED, "unknown service no.such.Service")


async def test_health_of_the_service(server: Server) -> None:
    health = health_pb2_grpc.HealthStub(server.channel)
    answer = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE), timeout=5)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_health_of_an_unknown_service(server: Server) -> None:
    health = health_pb2_grpc.HealthStub(server.channel)
    refused = await refusal(health.Check(health_pb2.HealthCheckRequest(service="no.such.Service"), timeout=5))
    assert refused.code == grpc.StatusCode.NOT_FOUND
