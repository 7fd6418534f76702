"""Answers over real HTTP, as far as they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiohttp import web

from common.clock import RealClock
from history.http_posts import HttpPosts, PostFailed
from history.nexus.http import NexusHttp

BODY = bytes(range(256)) * 4_000
WITHIN = timedelta(minutes=1)


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=BODY, headers={"X-Two": "one"}, reason="Fine")

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    yield f"http://{host}:{port}/"
    await runner.cleanup()


@pytest.mark.parametrize("limit", [len(BODY), len(BODY) - 1, 10])
async def test_a_long_answer_is_read_up_to_the_limit(url: str, limit: int) -> None:
    posts = HttpPosts(name="posts", clock=RealClock(), body_limit=limit)
    try:
        answer = await posts.post(url, headers={}, body=b"", within=WITHIN)
    finally:
        await posts.stop()
    assert (answer.status, answer.reason, answer.header("x-two"), answer.header("x-three")) == (200, "Fine", "one", "")
    assert (answer.body, answer.is_cut) == (BODY[:limit], limit < len(BODY))


async def test_a_nexus_answer_beyond_the_limit_is_none(url: str) -> None:
    posts = NexusHttp(clock=RealClock(), body_limit=len(BODY) - 1)
    try:
        with pytest.raises(PostFailed, match="http: response body too large"):
            await posts.post(url, headers={}, body=b"", within=WITHIN)
    finally:
        await posts.stop()
