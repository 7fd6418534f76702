"""Payloads as people read them: JSON indented, text as text, anything else as its size and first bytes.

A payload is here what the tables hold: its proto3 JSON, `{"metadata": {name: base64}, "data": base64}`. Encodings that no
stock converter writes (encrypted, compressed) are shown as bytes unless a codec endpoint has decoded them before.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

Payload = dict[str, Any]

MOST_TEXT = 64 * 1024
"""Characters of one payload that a page shows."""
MOST_IN_PLACE = 4 * 1024
"""Bytes or characters of one value among an event's attributes; of what is longer its beginning is shown."""
MOST_BYTES = 256
"""Bytes that are shown in hex."""
_A_LINE = 16
_JSON = frozenset({"json/plain", "json/protobuf", "json/external-storage-reference"})
KNOWN = _JSON | {"", "binary/null", "binary/plain", "binary/protobuf"}
"""What a stock converter writes; a codec has nothing to do with it."""


class Shown(Struct, frozen=True, kw_only=True):
    """One payload, ready to be read."""

    kind: str
    """json, text, binary or null."""
    text: str
    size: int
    """Bytes of its data."""
    encoding: str
    message_type: str = ""
    note: str = ""


def encoding_of(payload: Payload) -> str:
    return _bytes(metadata_of(payload).get("encoding")).decode("utf-8", "replace")


def metadata_of(payload: Payload) -> dict[str, Any]:
    metadata = payload.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def data_of(payload: Payload) -> bytes:
    return _bytes(payload.get("data"))


def is_encoded(payload: Payload) -> bool:
    """Whether something lies around the data that a codec would take off."""
    return encoding_of(payload) not in KNOWN


def is_payload(value: Any) -> bool:
    """By its form: the only object of an event's JSON whose metadata has an encoding as text."""
    return (
        isinstance(value, dict)
        and isinstance(metadata := value.get("metadata"), dict)
        and isinstance(metadata.get("encoding"), str)
    )


def shown(payload: Payload) -> Shown:
    data, encoding = data_of(payload), encoding_of(payload)
    kind, text, note = _read(data, encoding)
    if len(text) > MOST_TEXT:
        text, note = text[:MOST_TEXT], f"the first {MOST_TEXT:,} of {len(text):,} characters"
    message_type = _bytes(metadata_of(payload).get("messageType")).decode("utf-8", "replace")
    return Shown(kind=kind, text=text, size=len(data), encoding=encoding, message_type=message_type, note=note)


def _read(data: bytes, encoding: str) -> tuple[str, str, str]:
    """(kind, text, note)."""
    if encoding == "binary/null" or (not data and not encoding):
        return "null", "null", ""
    if encoding in _JSON:
        try:
            return "json", json.dumps(_json(data), indent=2, ensure_ascii=False), ""
        except ValueError as error:
            return *_text_or_hex(data), f"said to be JSON, and is not: {error}"
    if encoding in ("binary/plain", ""):
        return *_text_or_hex(data), ""
    note = "" if encoding in KNOWN else "encoded, and no codec has decoded it"
    return "binary", hex_lines(data), note


def _text_or_hex(data: bytes) -> tuple[str, str]:
    text = _text(data)
    return ("binary", hex_lines(data)) if text is None else ("text", text)


def readable(value: Any) -> Any:
    """A value of an event's JSON with every payload in it put as what it says, long texts broken off. Never raises."""
    if is_payload(value):
        return _in_place(value)
    if isinstance(value, dict):
        return {name: readable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [readable(item) for item in value]
    return _beginning(value) if isinstance(value, str) else value


def _beginning(text: str) -> str:
    more = len(text) - MOST_IN_PLACE
    return f"{text[:MOST_IN_PLACE]}… {more:,} more characters" if more > 0 else text


def _in_place(payload: Payload) -> Any:
    data, encoding = data_of(payload), encoding_of(payload)
    if encoding == "binary/null":
        return None
    if encoding in _JSON and len(data) <= MOST_IN_PLACE:
        try:
            return _json(data)
        except ValueError:
            pass
    text = _text(data) if encoding in KNOWN - {"binary/protobuf"} else None
    return (
        {"encoding": encoding, "size": len(data), "hex": data[:MOST_BYTES].hex(" ")}
        if text is None
        else _beginning(text)
    )


def payloads_in(value: Any) -> Iterator[Payload]:
    """Every payload within a value of an event's JSON."""
    if is_payload(value):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from payloads_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from payloads_in(item)


def replaced(value: Any, replace: Callable[[Payload], Payload]) -> Any:
    """The value with each payload in it replaced."""
    if is_payload(value):
        return replace(value)
    if isinstance(value, dict):
        return {name: replaced(item, replace) for name, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, replace) for item in value]
    return value


def hex_lines(data: bytes) -> str:
    """Place, bytes and the printable ones of them, sixteen a line; the first `MOST_BYTES`."""
    lines = []
    for at in range(0, min(len(data), MOST_BYTES), _A_LINE):
        part = data[at : min(at + _A_LINE, MOST_BYTES)]
        plain = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<{_A_LINE * 3}} {plain}")
    if len(data) > MOST_BYTES:
        lines.append(f"… {len(data) - MOST_BYTES:,} more bytes")
    return "\n".join(lines)


def _json(data: bytes) -> Any:
    """Raises ValueError, also for what is nested deeper than Python goes."""
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _text(data: bytes) -> str | None:
    """None for what is no text: not UTF-8, or with control characters."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(sign.isprintable() or sign in "\n\r\t" for sign in text[:MOST_TEXT]) else None


def _bytes(value: Any) -> bytes:
    """Of base64 as the tables have it; what is none is shown as it is."""
    if not isinstance(value, str):
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return value.encode("utf-8", "replace")
