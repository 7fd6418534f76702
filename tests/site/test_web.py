"""The web side as a service: real requests over a real socket, with DEBUG off as in production."""

import asyncio
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tinytemporal_site.web import Application, LazyApplication, WebService

CLIENTS = ThreadPoolExecutor(max_workers=12)


@pytest.fixture
async def web() -> AsyncIterator[WebService]:
    service = WebService(host="127.0.0.1", port=0)
    await service.start()
    yield service
    await service.stop()


async def get(service: WebService, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""

    def ask() -> tuple[int, dict[str, str], bytes]:
        request = urllib.request.Request(f"http://{service.addresses()['web']}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    # Threads of the client's own: the server in this process needs those of the event loop.
    return await asyncio.get_running_loop().run_in_executor(CLIENTS, ask)


async def test_admin_asks_to_sign_in(web: WebService) -> None:
    status, headers, body = await get(web, "/admin/login/")
    assert status == 200
    assert b"<title>Log in | tinytemporal</title>" in body
    assert "max-age=0" in headers["Cache-Control"]


async def test_root_leads_to_the_admin(web: WebService) -> None:
    status, _, body = await get(web, "/")
    assert status == 200
    assert b"Log in" in body


async def test_static_files_need_no_collecting(web: WebService) -> None:
    status, headers, body = await get(web, "/static/admin/css/base.css")
    assert status == 200
    assert headers["Content-Type"].startswith("text/css")
    assert int(headers["Content-Length"]) == len(body) > 1000
    assert (await get(web, "/static/admin/css/base.css", **{"If-None-Match": headers["ETag"]}))[0] == 304


@pytest.mark.parametrize("path", ["/static/nope.css", "/static/../tinytemporal_site/settings.py", "/nope"])
async def test_unknown_path(web: WebService, path: str) -> None:
    assert (await get(web, path))[0] == 404


async def test_unknown_host_is_refused(web: WebService) -> None:
    assert (await get(web, "/admin/login/", Host="evil.example"))[0] == 400


async def test_requests_at_once(web: WebService) -> None:
    answers = await asyncio.gather(*(get(web, "/admin/login/") for _ in range(12)))
    assert {status for status, _, _ in answers} == {200}


async def test_garbage_on_the_port_harms_nobody(web: WebService) -> None:
    host, _, port = web.addresses()["web"].rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"\x00\xff\r\n\r\n" * 50)
    await writer.drain()
    writer.close()
    assert (await get(web, "/admin/login/"))[0] == 200


async def test_start_and_stop_are_idempotent_and_leave_signals_alone() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    service = WebService(host="127.0.0.1", port=0)
    await service.start()
    address = service.addresses()
    await service.start()
    assert service.addresses() == address
    await asyncio.gather(service.stop(), service.stop())
    assert service.addresses() == {}
    await service.start()
    assert (await get(service, "/admin/login/"))[0] == 200
    await service.stop()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


async def test_taken_port_is_an_error_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        service = WebService(host="127.0.0.1", port=taken.getsockname()[1])
        with pytest.raises(OSError, match="in use"):
            await service.start()
        await service.stop()


async def test_application_is_built_once_and_again_after_a_failure() -> None:
    builds: list[str] = []

    def build() -> Application:
        builds.append("try")
        if len(builds) == 1:
            raise RuntimeError("not yet")
        return answer

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send(scope)

    async def receive() -> None:
        raise AssertionError("nobody asks")

    async def send(message: Any) -> None:
        assert message == "scope"

    application = LazyApplication(build)
    with pytest.raises(RuntimeError, match="not yet"):
        await application("scope", receive, send)
    await asyncio.gather(*(application("scope", receive, send) for _ in range(5)))
    assert len(builds) == 2
