"""POST over HTTP, as callbacks and Nexus operations need it: each within a time of the clock's.

aiohttp does the HTTP: it is asyncio's own kind, so that a slow destination costs no thread, keeps connections alive, and is
well kept. Redirects are not followed: who may be called is said by an address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from msgspec import Struct

from common.clock import Clock
from common.service import Service

if TYPE_CHECKING:
    import aiohttp


class PostFailed(Exception):
    """No answer came; its text says why."""


class PostTimedOut(PostFailed):
    """None came in time."""


class Answer(Struct, frozen=True, kw_only=True):
    status: int
    reason: str
    headers: dict[str, list[str]]
    """Names in lower case."""
    body: bytes
    """As far as it was read."""
    is_cut: bool = False
    """Whether the body is longer than that."""

    def header(self, name: str) -> str:
        values = self.headers.get(name)
        return values[0] if values else ""


class HttpPosts(Service):
    """The connections open with the first call. Of an answer `body_limit` bytes are read."""

    def __init__(self, *, name: str, clock: Clock, body_limit: int) -> None:
        super().__init__(name=name)
        self._clock = clock
        self._body_limit = body_limit
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Nothing runs until there is something to send."""

    async def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes, within: timedelta) -> Answer:
        """Raises PostFailed."""
        from aiohttp import ClientError

        posting = asyncio.ensure_future(self._post(url, headers, body))
        timer = self._clock.call_at(self._clock.now() + within, lambda: _cancel(posting))
        try:
            await asyncio.wait({posting})
        except asyncio.CancelledError:
            posting.cancel()
            raise
        finally:
            timer.cancel()
        if posting.cancelled():
            raise PostTimedOut(f'Post "{url}": no answer within {within.total_seconds():g} s')
        error = posting.exception()
        if error is None:
            return posting.result()
        if isinstance(error, ClientError | OSError | ValueError):
            raise PostFailed(f'Post "{url}": {error or type(error).__name__}') from error
        raise error

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answering = self._open().post(
            url, data=body, headers=headers, allow_redirects=False, skip_auto_headers=["Content-Type"]
        )
        async with answering as answer:
            content = await self._read(answer.content)
            found: dict[str, list[str]] = {}
            for name, value in answer.headers.items():
                found.setdefault(name.lower(), []).append(value)
            return Answer(
                status=answer.status,
                reason=answer.reason or "",
                headers=found,
                body=content[: self._body_limit],
                is_cut=len(content) > self._body_limit,
            )

    async def _read(self, stream: aiohttp.StreamReader) -> bytes:
        """All of it, but at most one byte more than the limit: a stream gives what has arrived, however much is asked."""
        content = b""
        while len(content) <= self._body_limit and (part := await stream.read(self._body_limit + 1 - len(content))):
            content += part
        return content

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def _cancel(posting: asyncio.Future[Answer]) -> None:
    posting.cancel()
