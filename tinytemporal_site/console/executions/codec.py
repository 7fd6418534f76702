"""Payloads decoded by the users' own codec server, where `CODEC_ENDPOINT` names one.

Temporal's remote codec protocol: POST {endpoint}/decode with `{"payloads": […]}`, answered with as many payloads in the
same order. A page asks once and waits a second at most; what can't be decoded is shown as it is, with what went wrong.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from common.clock import RealClock
from tinytemporal_site.console.executions.payloads import Payload, is_encoded, payloads_in, replaced

WAIT = timedelta(seconds=1)
MOST_PAYLOADS = 1_000
MOST_BYTES = 4 * 1024 * 1024
"""Of a question; what lies beyond is left encoded."""
MOST_ANSWER = 16 * 1024 * 1024
_CHUNK = 65_536

# A server that answers drop by drop keeps a thread until the time is up, never a page for longer than that.
_THREADS = ThreadPoolExecutor(max_workers=8, thread_name_prefix="codec")
_CLOCK = RealClock()


class CodecFailed(Exception):
    """What to tell the reader."""


class Decoded(Struct, frozen=True, kw_only=True):
    values: list[Any]
    """Those that were given, with their payloads decoded as far as that went."""
    problem: str = ""


def decode_within(values: Sequence[Any], *, endpoint: str, namespace: str) -> Decoded:
    """The values with each encoded payload in them replaced by what the codec makes of it. Never raises."""
    encoded = list(_of_bounded_size(payload for payload in payloads_in(list(values)) if is_encoded(payload)))
    if not endpoint or not encoded:
        return Decoded(values=list(values))
    try:
        answers = ask(encoded, endpoint=endpoint, namespace=namespace, wait=WAIT)
    except CodecFailed as failure:
        return Decoded(values=list(values), problem=str(failure))
    by_identity = {id(payload): answer for payload, answer in zip(encoded, answers, strict=True)}
    return Decoded(values=replaced(list(values), lambda payload: by_identity.get(id(payload), payload)))


def _of_bounded_size(payloads: Iterable[Payload]) -> Iterable[Payload]:
    left = MOST_BYTES
    for number, payload in enumerate(payloads):
        left -= len(str(payload.get("data", "")))
        if number >= MOST_PAYLOADS or left < 0:
            return
        yield payload


def ask(payloads: Sequence[Payload], *, endpoint: str, namespace: str, wait: timedelta) -> list[Payload]:
    """Raises CodecFailed."""
    until = _CLOCK.monotonic() + wait.total_seconds()
    asking = _THREADS.submit(_exchange, list(payloads), endpoint, namespace, until)
    try:
        body = asking.result(timeout=wait.total_seconds())
    except FutureTimeout:
        asking.cancel()
        raise CodecFailed(f"the codec endpoint did not answer within {wait.total_seconds():g} s") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CodecFailed(f"the codec endpoint can't be asked: {error}") from error
    return _payloads(body, expected=len(payloads))


def _exchange(payloads: list[Payload], endpoint: str, namespace: str, until: float) -> bytes:
    """In a thread of its own: the whole exchange. Redirects are not followed."""
    parts = urlsplit(f"{endpoint.rstrip('/')}/decode")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=WAIT.total_seconds())
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        headers: dict[str, str | bytes] = {"Content-Type": "application/json", "X-Namespace": namespace.encode()}
        connection.request("POST", path, json.dumps({"payloads": payloads}).encode(), headers)
        with connection.getresponse() as answer:
            if answer.status != http.client.OK:
                raise CodecFailed(f"the codec endpoint answered {answer.status} {answer.reason}")
            return _read(answer, until)
    finally:
        connection.close()


def _read(answer: http.client.HTTPResponse, until: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := answer.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > MOST_ANSWER or _CLOCK.monotonic() > until:
            raise CodecFailed("the codec endpoint's answer is too long, or too slow")
    return b"".join(parts)


def _payloads(body: bytes, *, expected: int) -> list[Payload]:
    try:
        found = json.loads(body)["payloads"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CodecFailed('the codec endpoint\'s answer is no {"payloads": […]}') from error
    if not isinstance(found, list) or not all(isinstance(payload, dict) for payload in found):
        raise CodecFailed('the codec endpoint\'s answer is no {"payloads": […]}')
    if len(found) != expected:
        raise CodecFailed(f"the codec endpoint answered {len(found)} payloads to {expected}")
    return found
