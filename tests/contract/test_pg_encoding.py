"""JSON on its way through jsonb, which refuses U+0000."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from common.database.pg_encoding import json_from_store, json_to_store

ODD = st.text(alphabet=st.sampled_from(["\x00", "\ufffe", "\\", "u", "0", "1", '"', "a", "\n", "é"]))


@given(st.recursive(ODD, lambda inner: st.lists(inner) | st.dictionaries(ODD, inner)))
def test_any_json_survives_and_nothing_unstorable_is_left(value: object) -> None:
    data = msgspec.json.encode(value)
    stored = json_to_store(data)
    assert "\x00" not in str(msgspec.json.decode(stored))
    # What the server gives back: parsed and written again.
    again = msgspec.json.encode(msgspec.json.decode(stored))
    assert msgspec.json.decode(json_from_store(again)) == value


@given(st.text(alphabet=st.characters(exclude_characters="\x00\ufffe", codec="utf-8")))
def test_ordinary_json_is_stored_as_it_is(text: str) -> None:
    data = msgspec.json.encode(text)
    assert json_to_store(data) == data
    assert json_from_store(data) == data
