"""One POST over HTTP, within a time of the clock's. aiohttp does it, see `history.callbacks.sender`."""

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


class CallFailed(Exception):
    """No answer came, in time or at all; its text says why."""


class Answer(Struct, frozen=True, kw_only=True):
    status: int
    reason: str
    headers: dict[str, list[str]]
    """Names in lower case."""
    body: bytes

    def header(self, name: str) -> str:
        values = self.headers.get(name)
        return values[0] if values else ""


class NexusHttp(Service):
    """The connections open with the first call."""

    def __init__(self, *, clock: Clock, body_limit: int) -> None:
        super().__init__(name="nexus over HTTP")
        self._clock = clock
        self._body_limit = body_limit
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Nothing runs until there is something to call."""

    async def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes, within: timedelta) -> Answer:
        """Redirects are not followed. Raises CallFailed."""
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
            raise CallFailed("request timed out")
        error = posting.exception()
        if error is None:
            return posting.result()
        if isinstance(error, ClientError | OSError | ValueError):
            raise CallFailed(f'Post "{url}": {error or type(error).__name__}') from error
        raise error

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        answering = self._open().post(
            url, data=body, headers=headers, allow_redirects=False, skip_auto_headers=["Content-Type"]
        )
        async with answering as answer:
            content = await answer.content.read(self._body_limit + 1)
            if len(content) > self._body_limit:
                raise ValueError("http: response body too large")
            found: dict[str, list[str]] = {}
            for name, value in answer.headers.items():
                found.setdefault(name.lower(), []).append(value)
            return Answer(status=answer.status, reason=answer.reason or "", headers=found, body=content)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def _cancel(posting: asyncio.Future[Answer]) -> None:
    posting.cancel()
