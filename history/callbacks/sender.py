"""Sends callbacks over HTTP and says what came of it.

    sender.send(namespace=..., request=...) -> Sent      raises HeldBack
    sender.is_blocked(namespace, url) -> bool

Redirects are not followed: the list of allowed addresses names who is called.
"""

from __future__ import annotations

from msgspec import Struct

from common.clock import Clock
from common.service import Service
from history.callbacks.completion import CompletionRequest
from history.callbacks.destinations import Destinations, HeldBack, destination_of
from history.callbacks.responses import fault_of
from history.config import HistoryConfig
from history.http_posts import HttpPosts, PostFailed

__all__ = ["CallbackSender", "HeldBack", "Sent"]

BODY_LIMIT = 64 * 1024
"""Bytes of an answer that are read."""


class Sent(Struct, kw_only=True, frozen=True):
    error: str = ""
    """Empty when it was taken."""
    retryable: bool = True


class CallbackSender(Service):
    def __init__(self, *, clock: Clock, config: HistoryConfig) -> None:
        super().__init__(name="callbacks")
        self._timeout = config.callback_timeout
        self._destinations = Destinations(clock=clock, at_once=config.callback_requests_at_once)
        self._posts = HttpPosts(name="callbacks over HTTP", clock=clock, body_limit=BODY_LIMIT)

    async def start(self) -> None:
        await self._posts.start()

    async def stop(self) -> None:
        await self._posts.stop()

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
        try:
            answer = await self._posts.post(
                request.url, headers=request.headers, body=request.body, within=self._timeout
            )
        except PostFailed as error:
            return Sent(error=str(error))
        fault = fault_of(answer)
        return Sent() if fault is None else Sent(error=fault.message, retryable=fault.retryable)
