"""What is sent back over HTTP."""

from __future__ import annotations

from urllib.parse import parse_qsl

from msgspec import Struct, field


class Answer(Struct, frozen=True):
    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Request(Struct, frozen=True):
    """One HTTP request, its body read."""

    method: str
    raw_path: str
    """As it was sent, without the query."""
    path: str
    """With its escapes resolved."""
    query: str
    headers: dict[str, str]
    """By lower-case name; of one that was sent more than once, the first. Links alone may come in several."""
    links: tuple[str, ...] = ()
    """The values of the header `nexus-link`."""
    body: bytes = b""
    is_too_large: bool = False
    """The body is over the limit; what came of it was dropped."""

    def query_values(self) -> dict[str, list[str]]:
        """Raises ValueError, with Go's words, for what is no query."""
        return query_values(self.query)


def query_values(text: str) -> dict[str, list[str]]:
    """The values of each key of a query or a form, in their order. Raises ValueError with Go's words."""
    if ";" in text:
        raise ValueError("invalid semicolon separator in query")
    check_escapes(text)
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(text, keep_blank_values=True, errors="surrogateescape"):
        found.setdefault(key, []).append(value)
    return found


def check_escapes(text: str) -> None:
    """Raises ValueError when a percent sign is not followed by two hexadecimal digits."""
    start = text.find("%")
    while start != -1:
        digits = text[start + 1 : start + 3]
        if len(digits) < 2 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise ValueError(f'invalid URL escape "{text[start : start + 3]}"')
        start = text.find("%", start + 3)
