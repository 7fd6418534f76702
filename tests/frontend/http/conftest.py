"""A frontend's HTTP port on a free port before fakes, and requests to it as a client without manners makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from tests.frontend.conftest import Setup, serving


class Reply(Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class HttpSetup(Setup):
    http: ClassVar[tuple[str, int | None] | None] = ("127.0.0.1", 0)

    async def ask(self, verb: str, path: str, body: Any = b"", *, headers: Mapping[str, str] | None = None) -> Reply:
        """`body`: bytes as they are, text as UTF-8, all else as JSON."""
        data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        told = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(data)), **(headers or {})}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        return parse(await self.send(f"{verb} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1", "ignore") + data))

    async def send(self, data: bytes) -> bytes:
        """All that comes back until the server closes the connection."""
        host, _, port = self.server.addresses()["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            writer.write(data)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()


def parse(data: bytes) -> Reply:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    return Reply(int(first.split()[1]), {name.lower(): value for name, value in headers.items()}, body)


@pytest.fixture
async def http() -> AsyncIterator[HttpSetup]:
    async with serving(HttpSetup()) as made:
        assert isinstance(made, HttpSetup)
        yield made
