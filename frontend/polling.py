"""What the polls of workers have in common: a caller that waits long enough, and an empty answer before it stops.

Source: ValidateLongPollContextTimeout in upstream's common/util.go, longPollTailRoom in its workflow_handler.go.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from google.protobuf.message import Message

from common import deadline
from common.errors import FailedPrecondition, InvalidArgument
from frontend.services import Frontend

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


def check_patience(frontend: Frontend) -> None:
    """The caller must have a deadline, and not one that is too near to be of use."""
    until = deadline.current()
    if until is None:
        raise InvalidArgument("Context timeout is not set.")
    if until - frontend.clock.now() < frontend.config.min_long_poll:
        raise FailedPrecondition("Context timeout is too short.")


async def poll(
    frontend: Frontend,
    call: Callable[[Request], Awaitable[Response]],
    request: Request,
    *,
    empty: Response,
) -> Response:
    """Asks Matching; `empty` when there is nothing, the caller's deadline comes near, or the server stops."""
    until = deadline.current()
    if until is not None and until - frontend.clock.now() < frontend.config.poll_margin:
        return empty
    return await frontend.polls.wait(call(request), empty=empty)
