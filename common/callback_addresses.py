"""Which addresses completion callbacks may go to.

    CallbackAddress.parse("*.example.com:443")    over TLS only
    CallbackAddress.parse("http://localhost:*")   with and without TLS
    check_address(url, *, allowed) -> None

The pattern is for the URL's host with its port as written; `*` stands for any characters, none included.
Source: upstream's chasm/lib/callback/config.go, its setting callback.allowedAddresses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from common.errors import InvalidArgument

INSECURE = "http://"
_UNUSUAL = re.compile(r"[\x00-\x20\x7f\\]")
"""Characters that readers of URLs differ on, so that one might check another host than is called."""


class CallbackAddress(Struct, frozen=True):
    pattern: str
    allow_insecure: bool = False

    @classmethod
    def parse(cls, text: str) -> CallbackAddress:
        """Raises ValueError."""
        insecure = text.startswith(INSECURE)
        pattern = text.removeprefix(INSECURE).removeprefix("https://")
        if not pattern or re.search(r"[/@?#\s]", pattern):
            raise ValueError("it is no host with or without a port")
        return cls(pattern, insecure)

    def matches(self, host: str) -> bool:
        return re.fullmatch(".*".join(map(re.escape, self.pattern.split("*"))), host) is not None


def check_address(url: str, *, allowed: Sequence[CallbackAddress]) -> None:
    """Raises INVALID_ARGUMENT; the first pattern that matches decides whether TLS is needed."""
    if _UNUSUAL.search(url):
        raise InvalidArgument(f"invalid callback url: parse {url!r}: invalid character in URL")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidArgument(f"invalid callback url: parse {url!r}: {error}") from None
    if parts.scheme not in ("http", "https"):
        raise InvalidArgument(f"invalid url: unknown scheme: {url}")
    host = parts.netloc.rpartition("@")[2]
    if not host:
        raise InvalidArgument("invalid url: missing host")
    for address in allowed:
        if not address.matches(host):
            continue
        if parts.scheme != "https" and not address.allow_insecure:
            raise InvalidArgument(f"invalid url: callback address does not allow insecure connections: {url}")
        return
    raise InvalidArgument(f"invalid url: url does not match any configured callback address: {url}")
