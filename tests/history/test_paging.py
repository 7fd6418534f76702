"""Page tokens of a history, and how much goes on a page."""

from __future__ import annotations

import pytest
from temporalio.api.history.v1 import HistoryEvent

from common.errors import InvalidArgument
from history.paging import HistoryToken, decode_history_token, encode_history_token, page_length


def events(*sizes: int) -> list[HistoryEvent]:
    return [
        HistoryEvent(event_id=number, user_metadata={"summary": {"data": b"x" * size}})
        for number, size in enumerate(sizes, 1)
    ]


def test_a_token_says_where_the_next_page_begins() -> None:
    token = HistoryToken(run_id="r", first_event_id=257, last_event_id=300)
    assert decode_history_token(encode_history_token(token), run_id="r") == token
    assert decode_history_token(encode_history_token(token)) == token


def test_tokens_of_others_are_refused() -> None:
    token = encode_history_token(HistoryToken(run_id="r", first_event_id=1, last_event_id=2))
    with pytest.raises(InvalidArgument, match="RunId in the request does not match"):
        decode_history_token(token, run_id="other")
    for data in (b"junk", b"{}", b'{"runId": 1}'):
        with pytest.raises(InvalidArgument, match="Invalid NextPageToken"):
            decode_history_token(data)


def test_a_page_ends_at_its_count_or_its_size() -> None:
    assert page_length(events(*[10] * 300)) == 256
    assert page_length(events(100, 100, 100), size=250) == 2
    assert page_length(events(1_000, 10), size=250) == 1
    assert page_length([]) == 0
