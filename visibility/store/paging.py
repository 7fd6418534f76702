"""Where a page of a list begins: after the last row of the page before, found by its place in the order.

So a page costs the same however far it is, and rows that come or close meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from common.database import Row
from common.errors import InvalidArgument
from visibility.store.statements import Where, closing

NEVER = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)


class Place(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The place of a row in the order; on the wire it is JSON that clients must not look at."""

    close_time: datetime
    start_time: datetime
    run_id: str


_write = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(Place).decode


def token_after(row: Row) -> bytes:
    run_id, _, _, _, start, _, close, *_ = row
    return _write(Place(close_time=close or NEVER, start_time=start, run_id=run_id))


def read_token(token: bytes) -> Place | None:
    """None for an empty token: the first page. Raises InvalidArgument for what no list gave out."""
    if not token:
        return None
    try:
        place = _read(token)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidArgument("Invalid NextPageToken.") from error
    if place.close_time.tzinfo is None or place.start_time.tzinfo is None:
        raise InvalidArgument("Invalid NextPageToken.")
    return place


def after(place: Place, *, dialect: str, is_sorted: bool = False) -> list[Where]:
    """Rows behind the place, as conditions for an index to serve, one after the other until the page is full.

    `is_sorted`: for rows that are found otherwise and sorted, a condition that SQLite takes for no way to them (a `+` hides a
    column from its planner, which would skip through an index by its later columns).
    """
    close = closing(dialect)
    times = (place.close_time, place.start_time)
    if dialect == "postgresql":
        sql = f"({close}, start_time) <= (%s, %s) AND NOT ({close} = %s AND start_time = %s AND run_id <= %s)"
        return [Where(sql, *times, *times, place.run_id)]
    if is_sorted:
        sql = f"(+{close}, +start_time) <= (%s, %s) AND NOT (+{close} = %s AND +start_time = %s AND +run_id <= %s)"
        return [Where(sql, *times, *times, place.run_id)]
    # SQLite takes a comparison of pairs by no index. Runs that closed at one time are few, but open ones are many.
    same = f"{close} = %s AND start_time <= %s AND NOT (start_time = %s AND run_id <= %s)"
    return [Where(same, *times, place.start_time, place.run_id), Where(f"{close} < %s", place.close_time)]
