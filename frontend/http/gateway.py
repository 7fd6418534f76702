"""The JSON HTTP API: a request becomes the same call that gRPC makes, its answer proto3 JSON.

How it is written: payloads in short form (see `shorthand`) unless `?noPayloadShorthand` or the media type
`application/json+no-payload-shorthand` is asked for, indented with `?pretty` or `application/json+pretty`. An error is a
`google.rpc.Status` with the HTTP status that belongs to its code. Of the headers, `grpc-timeout` is the caller's deadline,
and `client-name` and `client-version` are who calls, "temporal-server-http" by default.

Source: upstream's service/frontend/http_api_server.go and grpc-gateway's runtime/{handler,errors,context}.go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import grpc
import msgspec
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from common import caller, deadline
from common.clock import Clock
from common.codec import CodecError, from_dict, to_dict
from common.codec.types import descriptor_of
from common.errors import DeadlineExceeded, InvalidArgument, TemporalError
from frontend.calls import Invoke, invoker
from frontend.http.answers import Answer, Request, query_values
from frontend.http.fields import fill, fill_all
from frontend.http.routes import Match, NoRoute, all_routes, find
from frontend.http.shorthand import ShorthandError, lengthen, shorten
from frontend.rendering import Rendered, render, render_unexpected
from frontend.services import Frontend

log = logging.getLogger(__name__)

CLIENT_NAME = "temporal-server-http"
_GRACE = timedelta(milliseconds=100)
_FORM = "application/x-www-form-urlencoded"
_NO_SHORTHAND = "+no-payload-shorthand"
_PRETTY = "+pretty"
_UNITS = {
    "H": timedelta(hours=1),
    "M": timedelta(minutes=1),
    "S": timedelta(seconds=1),
    "m": timedelta(milliseconds=1),
    "u": timedelta(microseconds=1),
    "n": timedelta(microseconds=1) / 1000,
}
_STATUS = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
}
"""Every other code is 500."""


class Form(msgspec.Struct, frozen=True):
    """How the answer is to be written."""

    is_pretty: bool
    is_short: bool

    @property
    def media_type(self) -> str:
        """As upstream names it: "*" for the usual form."""
        suffix = (_PRETTY if self.is_pretty else "") + ("" if self.is_short else _NO_SHORTHAND)
        return f"application/json{suffix}" if suffix else "*"

    def write(self, value: Any) -> bytes:
        data = msgspec.json.encode(value)
        return msgspec.json.format(data, indent=2) if self.is_pretty else data


class Gateway:
    """Every annotated method of the public services."""

    def __init__(self, frontend: Frontend) -> None:
        self._clock = frontend.clock
        self._message_limit = frontend.config.error_message_limit
        self._invoke: dict[str, Invoke] = {route.method.path: invoker(frontend, route.method) for route in all_routes()}

    async def answer(self, request: Request) -> Answer:
        form = _form(request)
        try:
            match = find(request.method, request.path, may_be_get=_is_form(request))
        except NoRoute as error:
            return _no_route(error, form)
        try:
            return Answer(200, _written(await self._call(match, request, form), form), _typed(form))
        except TemporalError as error:
            return _refusal(render(error, message_limit=self._message_limit), form)
        except Exception as error:
            log.exception("%s failed", match.route.method.path)
            return _refusal(render_unexpected(error), form)

    async def _call(self, match: Match, request: Request, form: Form) -> Message:
        """Runs in the task of one request: deadline and caller are that task's."""
        until = _deadline(request, now=self._clock.now())
        deadline.set_current(until)
        metadata = (
            ("client-name", request.headers.get("client-name", CLIENT_NAME)),
            ("client-version", request.headers.get("client-version", "")),
        )
        caller.set_metadata(lambda: metadata)
        message = _message(match, request, form)
        async with _ending(until, clock=self._clock):
            return await self._invoke[match.route.method.path](message)


def _message(match: Match, request: Request, form: Form) -> Message:
    try:
        return _filled(match, request, form)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(str(error)) from error


def _filled(match: Match, request: Request, form: Form) -> Message:
    route = match.route
    message = _read(route.method.request_type, request, form) if route.has_body else route.method.request_type()
    for path, value in zip(route.variables, match.values, strict=True):
        fill(message, path, value)
    if not route.has_body:
        fill_all(message, _parameters(request), but=route.variables)
    return message


def _read(cls: type[Message], request: Request, form: Form) -> Message:
    if request.is_too_large:
        raise ValueError("http: request body too large")
    value = _first_value(request.body)
    if value is _NOTHING:
        return cls()
    if not isinstance(value, dict):
        raise ValueError(f"temporalproto: syntax error (line 1:1): unexpected token {_token(value)}")
    try:
        return from_dict(cls, lengthen(descriptor_of(cls), value) if form.is_short else value)
    except CodecError as error:
        raise ValueError(f"temporalproto: {error}") from error


def _token(value: Any) -> str:
    return "[" if isinstance(value, list) else json.dumps(value)


_NOTHING = object()
_BLANKS = " \t\r\n"


def _no_constant(name: str) -> Any:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"unable to parse number from {text[:40]}")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _first_value(body: bytes) -> Any:
    """The first JSON value; what comes after it is not looked at, as upstream does not. `_NOTHING` of a blank body."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        if not body[: error.start].strip():
            raise ValueError(f"invalid character '{chr(body[error.start])}' looking for beginning of value") from None
        raise ValueError("temporalproto: syntax error: invalid UTF-8") from None
    text = text.lstrip(_BLANKS)
    if not text:
        return _NOTHING
    try:
        return _DECODER.raw_decode(text)[0]
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip(_BLANKS)):
            raise ValueError("unexpected EOF") from None
        if error.pos == 0:
            raise ValueError(f"invalid character '{text[0]}' looking for beginning of value") from None
        raise ValueError(f"invalid JSON (line {error.lineno}:{error.colno}): {error.msg}") from None


def _parameters(request: Request) -> dict[str, list[str]]:
    """Of the query, and those of a form before them."""
    found = query_values(request.body.decode(errors="replace")) if _is_form(request) else {}
    for key, values in request.query_values().items():
        found.setdefault(key, []).extend(values)
    return found


def _is_form(request: Request) -> bool:
    return request.method == "POST" and request.headers.get("content-type") == _FORM


def _deadline(request: Request, *, now: datetime) -> datetime | None:
    """Of the header `grpc-timeout`, such as `500m`. Raises InvalidArgument."""
    text = request.headers.get("grpc-timeout", "")
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,8}[HMSmun]", text) is None:
        raise InvalidArgument(f"invalid grpc-timeout: {text}")
    try:
        return now + int(text[:-1]) * _UNITS[text[-1]]
    except OverflowError:
        return None


@asynccontextmanager
async def _ending(until: datetime | None, *, clock: Clock) -> AsyncIterator[None]:
    """Ends what is within a little after the caller's deadline, when it has not itself. Raises DeadlineExceeded."""
    if until is None:
        yield
        return
    scope = asyncio.timeout(None)
    try:
        async with scope:
            timer = clock.call_at(until + _GRACE, lambda: scope.reschedule(0))
            try:
                yield
            finally:
                timer.cancel()
    except TimeoutError as error:
        if scope.expired():
            raise DeadlineExceeded("context deadline exceeded") from error
        raise


# --- what goes back


def _form(request: Request) -> Form:
    try:
        parameters = request.query_values()
    except ValueError:
        parameters = {}
    if "pretty" in parameters or "noPayloadShorthand" in parameters:
        return Form(is_pretty="pretty" in parameters, is_short="noPayloadShorthand" not in parameters)
    accepted = request.headers.get("accept", "")
    for is_pretty in (True, False):
        for is_short in (False, True):
            form = Form(is_pretty=is_pretty, is_short=is_short)
            if accepted == form.media_type:
                return form
    return Form(is_pretty=False, is_short=True)


def _typed(form: Form) -> dict[str, str]:
    return {"content-type": form.media_type}


def _written(message: Message, form: Form) -> bytes:
    try:
        return form.write(shorten(message) if form.is_short else to_dict(message))
    except ShorthandError as error:
        raise TemporalError(str(error)) from error


def _refusal(rendered: Rendered, form: Form) -> Answer:
    status = Status(code=rendered.code.value[0], message=rendered.message)
    for _, data in rendered.trailers:
        status = Status.FromString(data)
    return Answer(_STATUS.get(rendered.code, 500), form.write(to_dict(status)), _typed(form))


def _no_route(error: NoRoute, form: Form) -> Answer:
    code, text = (12, "Method Not Allowed") if error.other_verb else (5, "Not Found")
    return Answer(501 if error.other_verb else 404, form.write({"code": code, "message": text}), _typed(form))
