"""Which addresses callbacks may go to, in upstream's words."""

from __future__ import annotations

import pytest

from common.callback_addresses import CallbackAddress, check_address
from common.errors import InvalidArgument

ALLOWED = [CallbackAddress.parse(text) for text in ("*.example.com", "http://localhost:*", "exact:444")]


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example.com/x?y=1",
        "https://user:secret@a.b.example.com",
        "http://localhost:1/",
        "https://localhost:8080",
        "https://exact:444/done",
    ],
)
def test_allowed(url: str) -> None:
    check_address(url, allowed=ALLOWED)


@pytest.mark.parametrize(
    "url, message",
    [
        ("https://example.com/", "invalid url: url does not match any configured callback address: {}"),
        ("https://a.example.com:444/", "invalid url: url does not match any configured callback address: {}"),
        ("https://a.example.com.evil.org/", "invalid url: url does not match any configured callback address: {}"),
        ("https://a.example.com@evil.org/", "invalid url: url does not match any configured callback address: {}"),
        ("https://evil.org/#.example.com", "invalid url: url does not match any configured callback address: {}"),
        ("https://evil.org\\@a.example.com/", "invalid callback url: parse "),
        ("https://a.example.com/\n", "invalid callback url: parse "),
        ("https://a.example.com:port/", "invalid callback url: parse "),
        ("https://[::1/", "invalid callback url: parse "),
        ("http://a.example.com/", "invalid url: callback address does not allow insecure connections: {}"),
        ("temporal://system", "invalid url: unknown scheme: {}"),
        ("a.example.com", "invalid url: unknown scheme: {}"),
        ("https:///x", "invalid url: missing host"),
    ],
)
def test_refused(url: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_address(url, allowed=ALLOWED)
    assert refused.value.message.startswith(message.format(url))


def test_nothing_is_allowed_without_a_list() -> None:
    with pytest.raises(InvalidArgument):
        check_address("https://a.example.com/", allowed=[])


@pytest.mark.parametrize("text", ["", "http://", "https://x/path", "a b", "user@host"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        CallbackAddress.parse(text)
