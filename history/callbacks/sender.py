"""Sends callbacks over HTTP and says what came of it.

    sender.send(namespace=..., request=...) -> Sent      raises HeldBack
    sender.is_blocked(namespace, url) -> bool

aiohttp does the HTTP: it is asyncio's own kind, so that a slow destination costs no thread, keeps connections alive, and is
well kept. Redirects are not followed: the list of allowed addresses names who is called. Every limit of time is the clock's.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct

from common.clock import Clock
from common.service import Service
from history.callbacks.completion import CompletionRequest
from history.callbacks.destinations import Destinations, HeldBack, destination_of
from history.callbacks.responses import fault_of
from history.config import HistoryConfig

if TYPE_CHECKING:
    import aiohttp

__all__ = ["CallbackSender", "HeldBack", "Sent"]

BODY_LIMIT = 64 * 1024
"""Bytes of an answer that are read."""


class Sent(Struct, kw_only=True, frozen=True):
    error: str = ""
    """Empty when it was taken."""
    retryable: bool = True


class CallbackSender(Service):
    """The connections open with the first request."""

    def __init__(self, *, clock: Clock, config: HistoryConfig) -> None:
        super().__init__(name="callbacks")
        self._clock = clock
        self._timeout = config.callback_timeout
        self._destinations = Destinations(clock=clock, at_once=config.callback_requests_at_once)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Nothing runs until there is something to send."""

    async def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def is_blocked(self, namespace: str, url: str) -> bool:
        """Whether requests to the destination are held back because it fails."""
        return self._destinations.is_blocked(destination_of(namespace, url))

    async def send(self, *, namespace: str, request: CompletionRequest) -> Sent:
        """Raises HeldBack when the request must wait; nothing was sent then."""
        with self._destinations.place(destination_of(namespace, request.url)) as outcome:
            sent = await self._send(request)
            outcome.failed = bool(sent.error) and sent.retryable
            return sent

    async def _send(self, request: CompletionRequest) -> Sent:
        from aiohttp import ClientError

        posting = asyncio.ensure_future(self._post(request))
        timer = self._clock.call_at(self._clock.now() + self._timeout, lambda: _cancel(posting))
        try:
            await asyncio.wait({posting})
        except asyncio.CancelledError:
            posting.cancel()
            raise
        finally:
            timer.cancel()
        if posting.cancelled():
            return Sent(error=f'Post "{request.url}": no answer within {self._timeout.total_seconds():g} s')
        error = posting.exception()
        if error is None:
            return posting.result()
        if isinstance(error, ClientError | OSError | ValueError):
            return Sent(error=f'Post "{request.url}": {error or type(error).__name__}')
        raise error

    async def _post(self, request: CompletionRequest) -> Sent:
        answering = self._open().post(
            request.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
            skip_auto_headers=["Content-Type"],
        )
        async with answering as answer:
            body = await answer.content.read(BODY_LIMIT)
            fault = fault_of(status=answer.status, reason=answer.reason or "", headers=answer.headers, body=body)
        return Sent() if fault is None else Sent(error=fault.message, retryable=fault.retryable)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            import aiohttp

            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None), cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session


def _cancel(task: asyncio.Future[Sent]) -> None:
    task.cancel()
