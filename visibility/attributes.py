"""Search attributes and memos between the payloads that clients send and the plain JSON that the table holds.

stored_attributes(payloads)     → JSON of values by name, JSON of the words of Text attributes by name
shown_attributes(json, custom)  → payloads typed in their metadata
stored_memo, shown_memo
Neither database reads U+0000 out of JSON; in the values it is hidden as `common.database.pg_encoding` hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from temporalio.api.common.v1 import Memo, Payload, SearchAttributes

from common.codec import from_dict, to_dict
from common.database.pg_encoding import json_from_store, json_to_store
from common.search_attributes import PREDEFINED, TYPE_VALUES, Undecodable, decode, fits
from visibility.times import shown_time, stored_time
from visibility.words import words

_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder().decode

JSON_PLAIN = b"json/plain"


def stored_attributes(payloads: Mapping[str, Payload]) -> tuple[bytes | None, bytes | None]:
    """A payload's type is in its metadata (whoever accepted it put it there). One that can't be read is left out: the
    run it belongs to must be listed all the same."""
    if not payloads:
        return None, None
    values: dict[str, Any] = {}
    texts: dict[str, list[str]] = {}
    for name, payload in payloads.items():
        type_name = PREDEFINED.get(name) or payload.metadata.get("type", b"").decode("ascii", "replace")
        value = stored_value(payload, type_name)
        if value is None:
            continue
        values[name] = value
        if type_name == "Text":
            texts[name] = words(value)
    return (json_to_store(_write(values)) if values else None), (_write(texts) if texts else None)


def stored_value(payload: Payload, type_name: str) -> Any:
    """The value as the table holds it; None for one that unsets the attribute or can't be read."""
    try:
        value = decode(payload)
        if type_name not in TYPE_VALUES:
            return value
        if value is None or value == [] or not fits(value, type_name):
            return None
        if type_name == "KeywordList":
            items = value if isinstance(value, list) else [value]
            return [item or "" for item in items]
        if isinstance(value, list):
            value = value[0]
        return stored_time(value) if type_name == "Datetime" else value
    except (Undecodable, ValueError):
        return None


def shown_attributes(stored: bytes | str | None, custom: Mapping[str, str]) -> SearchAttributes:
    """What the namespace no longer knows (an attribute that was removed) is left out, as upstream does."""
    shown = SearchAttributes()
    if stored is None:
        return shown
    for name, value in _read(json_from_store(stored.encode() if isinstance(stored, str) else stored)).items():
        type_name = PREDEFINED.get(name) or custom.get(name)
        if type_name is None:
            continue
        payload = shown.indexed_fields[name]
        payload.metadata["encoding"] = JSON_PLAIN
        payload.metadata["type"] = type_name.encode()
        payload.data = _write(shown_time(value) if type_name == "Datetime" and isinstance(value, str) else value)
    return shown


def stored_memo(payloads: Mapping[str, Payload]) -> bytes | None:
    if not payloads:
        return None
    return _write({name: to_dict(payload) for name, payload in payloads.items()})


def shown_memo(stored: bytes | str | None) -> Memo:
    shown = Memo()
    if stored is not None:
        for name, payload in _read(stored).items():
            shown.fields[name].CopyFrom(from_dict(Payload, payload))
    return shown
