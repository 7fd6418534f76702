"""What the calls about activities share: they name an attempt by its task token, or an activity by its id."""

from __future__ import annotations

from typing import Protocol

from common.archetypes import ACTIVITY, key_of
from common.contracts.tokens import TaskToken, decode_token
from common.errors import InvalidArgument


class ById(Protocol):
    """The fields of every …ById request."""

    @property
    def namespace(self) -> str: ...
    @property
    def workflow_id(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def activity_id(self) -> str: ...


def activity_token(data: bytes) -> TaskToken:
    """Raises INVALID_ARGUMENT for a damaged token."""
    return decode_token(TaskToken, data)


def token_by_id(request: ById) -> TaskToken:
    """A token that means the activity of an id, in whatever attempt it is. No workflow id: one that has none. No run id: the
    current run."""
    if not request.activity_id:
        raise InvalidArgument("ActivityId is not set on request.")
    return TaskToken(
        namespace=request.namespace,
        workflow_id=request.workflow_id or key_of(ACTIVITY, request.activity_id),
        run_id=request.run_id,
        scheduled_event_id=0,
        activity_id=request.activity_id,
    )
