"""The HTTP port as an ASGI application: reads a request, finds whose it is, and writes the answer.

A client that goes away ends its request, as over gRPC. Paths are cleaned (`//a/../b`) by sending the client to the clean one.
A page of another origin that a browser shows is refused: it could otherwise do anything here that the browser's user can.
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from common.clock import Clock
from common.http_server import Receive, Send
from frontend.config import FrontendConfig
from frontend.http.answers import Answer, Request, check_escapes

Handler = Callable[[Request], Awaitable[Answer]]
"""Answers or raises nothing but CancelledError."""

_PLAIN = {"content-type": "text/plain; charset=utf-8"}


class HttpApplication:
    """`find` tells whose a path is, and how large a body may be there."""

    def __init__(self, *, find: Callable[[str], tuple[Handler, int]], clock: Clock, config: FrontendConfig) -> None:
        self._find = find
        self._clock = clock
        self._config = config

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"no way to serve {scope['type']}")
        raw_path = scope["raw_path"].decode("latin-1")
        try:
            check_escapes(raw_path)
            if not raw_path.startswith("/"):
                raise ValueError("no path")
        except ValueError:
            await _send(send, Answer(400, b"400 Bad Request", _PLAIN | {"connection": "close"}))
            return
        clean = _clean(raw_path)
        if clean != raw_path:
            query = scope["query_string"].decode("latin-1")
            await _send(send, Answer(301, headers={"location": clean + ("?" + query if query else "")}))
            return
        handler, limit = self._find(raw_path)
        request = await self._read(scope, receive, raw_path=raw_path, limit=limit)
        if request is None:
            return
        answer = _refused(request) or await _while_connected(handler(request), receive)
        if answer is not None:
            await _send(send, answer)

    async def _read(self, scope: Any, receive: Receive, *, raw_path: str, limit: int) -> Request | None:
        """None when the client goes away, or sends its body too slowly or far too much of it."""
        headers: dict[str, str] = {}
        links = []
        for name, value in scope["headers"]:
            text = value.decode("latin-1")
            headers.setdefault(name.decode("latin-1"), text)
            if name == b"nexus-link":
                links.append(text)
        scope_end = asyncio.timeout(None)
        timer = self._clock.call_at(self._clock.now() + self._config.http_body_timeout, lambda: scope_end.reschedule(0))
        try:
            async with scope_end:
                body, is_too_large = await _body(receive, limit=limit, most=self._config.hard_request_limit)
        except (TimeoutError, ConnectionError):
            return None
        finally:
            timer.cancel()
        return Request(
            method=scope["method"],
            raw_path=raw_path,
            path=unquote(raw_path),
            query=scope["query_string"].decode("latin-1"),
            headers=headers,
            links=tuple(links),
            body=body,
            is_too_large=is_too_large,
        )


async def _body(receive: Receive, *, limit: int, most: int) -> tuple[bytes, bool]:
    """Beyond `limit` it is read to its end but not kept, so that the client comes to read its refusal; beyond `most`, and
    when the client goes away, ConnectionError."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client went away")
        size += len(message.get("body", b""))
        if size > most:
            raise ConnectionError("the body has no end")
        if size <= limit:
            parts.append(message.get("body", b""))
        else:
            parts.clear()
        if not message.get("more_body", False):
            return b"".join(parts), size > limit


async def _while_connected(answer: Awaitable[Answer], receive: Receive) -> Answer | None:
    """The answer; None when the client goes away before, which cancels the work on it."""
    working = asyncio.ensure_future(answer)
    listening = asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        listening.cancel()
        await asyncio.wait({working, listening})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _refused(request: Request) -> Answer | None:
    origin = request.headers.get("origin")
    if origin is None or urlsplit(origin).netloc == request.headers.get("host"):
        return None
    return Answer(403, b'{"code": 7, "message": "Host not allowed"}', {"content-type": "application/json"})


def _clean(raw_path: str) -> str:
    """As Go's path.Clean, keeping the last slash."""
    if "//" not in raw_path and "/." not in raw_path and raw_path.startswith("/"):
        return raw_path
    clean = posixpath.normpath("/" + raw_path.lstrip("/"))
    clean = "/" + clean.lstrip("/")
    if raw_path.endswith("/") and clean != "/":
        clean += "/"
    return quote(clean, safe="/%$&+,:;=@!*'()~")


async def _send(send: Send, answer: Answer) -> None:
    headers = answer.headers | {"content-length": str(len(answer.body))}
    await send(
        {
            "type": "http.response.start",
            "status": answer.status,
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers.items()
            ],
        }
    )
    await send({"type": "http.response.body", "body": answer.body})
