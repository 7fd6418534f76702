"""The copy-on-write map equals a plain dictionary under any changes, stacked any number of times."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from history.state import ItemMap

KEYS = st.integers(min_value=0, max_value=6)
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "pop", "len", "stack"]), KEYS), max_size=40)


@given(base=st.dictionaries(KEYS, st.text(max_size=2)), changes=CHANGES)
def test_it_is_a_dictionary(base: dict[int, str], changes: list[tuple[str, int]]) -> None:
    base = {key: value or "x" for key, value in base.items()}
    expected = dict(base)
    layers: list[ItemMap[int, str]] = [ItemMap(base)]
    for number, (change, key) in enumerate(changes):
        top = layers[-1]
        if change == "set":
            top[key] = expected[key] = f"v{number}"
        elif change == "pop":
            assert top.pop(key) == expected.pop(key, None)
        elif change == "len":
            assert len(top) == len(expected)
        else:
            layers.append(ItemMap(top))
        top = layers[-1]
        assert {key: top.get(key) for key in range(7) if key in top} == expected
        assert dict(top.items()) == expected
        assert len(top) == len(expected)
    before = dict(base)
    for layer in layers:
        layer.adopt_into(before)
    assert before == expected
