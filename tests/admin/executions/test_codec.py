"""The users' codec server: what is asked of it, and that nothing it does hurts a page."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.admin.executions.test_payloads import payload
from tinytemporal_site.console.executions import codec
from tinytemporal_site.console.executions.codec import CodecFailed, ask, decode_within

Answer = Callable[[list[Any]], tuple[int, bytes]]
ENCODED = payload(b"terces", "binary/encrypted")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page waits a second; a busy machine may take longer to start a thread."""
    monkeypatch.setattr(codec, "WAIT", timedelta(seconds=60))


@contextmanager
def codec_server(answer: Answer) -> Iterator[tuple[str, list[Any]]]:
    """Its address, and the requests that came."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.path, self.headers["X-Namespace"], body))
            status, text = answer(body["payloads"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/base", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reversing(payloads: list[Any]) -> tuple[int, bytes]:
    """Encryption, as it were."""
    plain = [payload(json.dumps(base64.b64decode(one["data"]).decode()[::-1]).encode()) for one in payloads]
    return 200, json.dumps({"payloads": plain}).encode()


def test_encoded_payloads_are_decoded_in_one_question() -> None:
    values = [{"input": [ENCODED, payload(b"1")]}, {"result": payload(b"ba", "binary/encrypted")}]
    with codec_server(reversing) as (address, asked):
        decoded = decode_within(values, endpoint=address, namespace="ns")
    assert decoded.problem == ""
    assert decoded.values == [{"input": [payload(b'"secret"'), payload(b"1")]}, {"result": payload(b'"ab"')}]
    [(path, namespace, body)] = asked
    assert (path, namespace) == ("/base/decode", "ns")
    assert body == {"payloads": [ENCODED, payload(b"ba", "binary/encrypted")]}


@pytest.mark.parametrize("endpoint, values", [("", [ENCODED]), ("http://127.0.0.1:9", [payload(b"1")])])
def test_nothing_is_asked_without_need(endpoint: str, values: list[Any]) -> None:
    decoded = decode_within(values, endpoint=endpoint, namespace="ns")
    assert (decoded.values, decoded.problem) == (values, "")


@pytest.mark.parametrize(
    "status, body, said",
    [
        (500, b"", "answered 500"),
        (302, b"", "answered 302"),
        (200, b"not json", "no {"),
        (200, b'{"payloads": 5}', "no {"),
        (200, b'{"payloads": []}', "0 payloads to 1"),
    ],
)
def test_a_bad_answer_is_told(status: int, body: bytes, said: str) -> None:
    with codec_server(lambda _: (status, body)) as (address, _):
        decoded = decode_within([ENCODED], endpoint=address, namespace="ns")
    assert decoded.values == [ENCODED]
    assert said in decoded.problem


def test_a_dead_server_is_told() -> None:
    assert "can't be asked" in decode_within([ENCODED], endpoint="http://127.0.0.1:9", namespace="ns").problem


def test_a_slow_server_holds_up_nobody() -> None:
    released = threading.Event()

    def slow(payloads: list[Any]) -> tuple[int, bytes]:
        released.wait(30)
        return reversing(payloads)

    with codec_server(slow) as (address, _):
        try:
            with pytest.raises(CodecFailed, match="within"):
                ask([ENCODED], endpoint=address, namespace="ns", wait=timedelta(milliseconds=100))
        finally:
            released.set()
