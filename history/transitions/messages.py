"""Updates on their way to the worker: the protocol messages that go out with a started workflow task.

    has_outgoing(draft) -> bool
    send_messages(draft, *, started_event_id, again) -> list[Message]

Source: upstream's service/history/workflow/update/registry.go.
"""

from __future__ import annotations

from google.protobuf.any_pb2 import Any
from msgspec.structs import replace
from temporalio.api.protocol.v1 import Message

from history.state import AdmittedUpdate, Draft


def _is_outgoing(update: AdmittedUpdate, *, again: bool) -> bool:
    """One without a request reaches the worker as an event."""
    return update.request is not None and (again or not update.sent)


def has_outgoing(draft: Draft) -> bool:
    """Whether an update waits to be sent."""
    return bool(draft.admitted) and any(_is_outgoing(update, again=False) for update in draft.admitted.values())


def send_messages(draft: Draft, *, started_event_id: int, again: bool) -> list[Message]:
    """The updates to deliver with the task that is being started, in order of their admission; they count as sent from now
    on. `again`: also those that went out with a task that came to nothing."""
    if not draft.admitted:
        return []
    messages = []
    for update_id, update in list(draft.admitted.items()):
        if update.request is None or not _is_outgoing(update, again=again):
            continue
        draft.admitted[update_id] = replace(update, sent=True)
        body = Any()
        body.Pack(update.request)
        messages.append(
            Message(
                id=f"{update_id}/request",
                protocol_instance_id=update_id,
                # The worker handles the update after all events before the task's start.
                event_id=started_event_id - 1,
                body=body,
            )
        )
    return messages
