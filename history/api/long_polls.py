"""Waiting for an execution that has no events: a token says which of its changes a client has seen.

changed(engine, state, token) -> state, None       described again only once it has changed
token_of(state)
wait(engine, state, seen)
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec import Struct

from common import deadline
from common.errors import InvalidArgument
from history.engine.engine import Engine
from history.state import ExecutionState

ANSWER_BEFORE_DEADLINE = timedelta(seconds=1)


class LongPollToken(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which change of which run a client knows."""

    run_id: str
    change: int


async def changed(engine: Engine, state: ExecutionState, token: bytes) -> ExecutionState | None:
    """The state once it has changed since the token, or closed; at once without one. None when it has not while its caller
    waits. Raises INVALID_ARGUMENT for a foreign token."""
    if not token:
        return state
    seen = _read(token, state)
    if state.info.next_event_id <= seen and state.info.closed_at is None:
        state = await wait(engine, state, seen=seen)
    return None if state.info.next_event_id <= seen else state


def token_of(state: ExecutionState) -> bytes:
    return msgspec.json.encode(LongPollToken(run_id=state.info.run_id, change=state.info.next_event_id))


async def wait(engine: Engine, state: ExecutionState, *, seen: int) -> ExecutionState:
    """Until it has changed more often than `seen` times or has closed, or its caller's patience ends."""
    info = state.info
    until = deadline.earlier(engine.clock.now() + engine.config.long_poll, margin=ANSWER_BEFORE_DEADLINE)
    return await engine.wait_for_change(
        namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id, seen_event_id=seen, until=until
    )


def _read(data: bytes, state: ExecutionState) -> int:
    try:
        token = msgspec.json.decode(data, type=LongPollToken)
    except msgspec.MsgspecError as error:
        raise InvalidArgument("invalid long poll token") from error
    if token.run_id != state.info.run_id:
        raise InvalidArgument("long poll token does not match execution")
    return token.change
