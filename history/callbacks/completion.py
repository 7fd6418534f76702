"""What a completion callback sends: how the chain of runs, or an update, ended, as the completion of a Nexus operation.

    end_event_id(state, item) -> int          the event that tells how; 0 for a rejected update, which has none
    completion_request(state, item, event) -> CompletionRequest

The body of a success is the first result. A failure's body is its message and what kind it is; who terminated the run, and why,
is told to nobody outside.
Source: upstream's GetNexusCompletion, GetNexusUpdateCompletion and common/nexus/nexusrpc/completion.go.
"""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import format_datetime

from msgspec import Struct
from temporalio.api.common.v1 import Link, Payload
from temporalio.api.enums.v1 import EventType, WorkflowExecutionStatus
from temporalio.api.failure.v1 import CanceledFailureInfo, Failure, TerminatedFailureInfo, TimeoutFailureInfo
from temporalio.api.history.v1 import HistoryEvent

from common.archetypes import business_id
from common.contracts.history import NexusCompletion
from common.contracts.nexus import CALLBACK_TOKEN_HEADER, OPERATION_TOKEN_HEADER
from common.contracts.tokens import NexusCompletionToken, decode_token
from common.nexus import Content, activity_link_value, content_of, failure_json, link_value
from common.protos import from_timestamp
from history.records import CallbackItem
from history.state import ExecutionState
from history.transitions.standalone import own
from history.transitions.updates import closed_failure

USER_AGENT = "tinytemporal"
FRAMING = frozenset(("connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"))
"""Headers by which HTTP finds the ends of messages and its way: no callback's own."""


class CompletionRequest(Struct, kw_only=True, frozen=True):
    """A POST. Header names are in lower case."""

    url: str
    headers: dict[str, str]
    body: bytes


def end_event_id(state: ExecutionState, item: CallbackItem) -> int:
    """An update that its run left undone ends with it."""
    if item.rejection is not None:
        return 0
    update = state.updates.get(item.update_id) if item.update_id else None
    if update is not None and update.state == "completed":
        return update.completed_event_id
    return state.info.close_event_id


def completion_request(state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> CompletionRequest:
    """`event`: the one of `end_event_id`. The callback's own headers go before those that are made here."""
    is_activity = bool(state.info.archetype)
    operation_state, content = _outcome(state, item, event)
    headers = {
        "user-agent": USER_AGENT,
        **(_about(state, item, event) if event is not None or is_activity else {}),
        **{f"content-{name.lower()}": value for name, value in content.headers.items()},
        "nexus-operation-state": operation_state,
        **{name.lower(): value for name, value in item.callback.nexus.header.items() if name.lower() not in FRAMING},
    }
    return CompletionRequest(url=item.callback.nexus.url, headers=headers, body=content.data)


def completion_of(state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> NexusCompletion:
    """The same for a caller in this cluster. Raises INVALID_ARGUMENT for a token that is not ours."""
    headers = {name.lower(): value for name, value in item.callback.nexus.header.items()}
    token = decode_token(NexusCompletionToken, headers.get(CALLBACK_TOKEN_HEADER, "").encode())
    payload, failure, is_canceled = _end(state, item, event)
    return NexusCompletion(
        namespace=token.namespace,
        workflow_id=token.workflow_id,
        run_id=token.run_id,
        scheduled_event_id=token.scheduled_event_id,
        request_id=token.request_id,
        state="completed" if failure is None else "canceled" if is_canceled else "failed",
        payload=payload,
        failure=failure,
        operation_token=headers.get(OPERATION_TOKEN_HEADER, ""),
        started_at=state.info.started_at if event is not None or state.info.archetype else None,
        links=_links(state, item, event),
    )


def _about(state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> dict[str, str]:
    closed_at = state.info.closed_at if event is None else from_timestamp(event.event_time)
    assert closed_at is not None, "callbacks are made once it has closed"
    return {
        "nexus-operation-start-time": format_datetime(state.info.started_at.replace(microsecond=0), usegmt=True),
        "nexus-operation-close-time": _rfc3339(closed_at),
        "nexus-link": activity_link_value(_activity_link(state)) if event is None else link_value(_link(state, item)),
    }


def _outcome(state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> tuple[str, Content]:
    payload, failure, is_canceled = _end(state, item, event)
    if failure is None:
        return "succeeded", content_of(payload)
    return "canceled" if is_canceled else "failed", _failed(failure)


def _end(
    state: ExecutionState, item: CallbackItem, event: HistoryEvent | None
) -> tuple[Payload | None, Failure | None, bool]:
    """The first result, or why there is none and whether that is a cancellation."""
    if state.info.archetype:
        return _end_of_activity(state)
    if event is None:
        return None, item.rejection or Failure(), False
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED:
        outcome = event.workflow_execution_update_completed_event_attributes.outcome
        if outcome.HasField("failure"):
            return None, outcome.failure, False
        return outcome.success.payloads[0] if outcome.success.payloads else None, None, False
    if item.update_id:
        return None, closed_failure(), False
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        payloads = event.workflow_execution_completed_event_attributes.result.payloads
        return payloads[0] if payloads else None, None, False
    return None, _failure(event), event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED


def _end_of_activity(state: ExecutionState) -> tuple[Payload | None, Failure | None, bool]:
    execution = own(state)
    if execution.result is not None:
        return execution.result.payloads[0] if execution.result.payloads else None, None, False
    is_canceled = state.info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED
    return None, execution.failure or Failure(), is_canceled


def _links(state: ExecutionState, item: CallbackItem, event: HistoryEvent | None) -> list[Link]:
    if state.info.archetype:
        return [Link(activity=_activity_link(state))]
    return [Link(workflow_event=_link(state, item))] if event is not None else []


def _activity_link(state: ExecutionState) -> Link.Activity:
    info = state.info
    return Link.Activity(namespace=info.namespace, activity_id=business_id(info.workflow_id), run_id=info.run_id)


def _failed(failure: Failure) -> Content:
    body = json.dumps(failure_json(failure), ensure_ascii=False, separators=(",", ":")).encode()
    return Content(body, {"type": "application/json"})


def _failure(event: HistoryEvent) -> Failure:
    match event.event_type:
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
            return event.workflow_execution_failed_event_attributes.failure
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
            attributes = event.workflow_execution_canceled_event_attributes
            details = attributes.details if attributes.HasField("details") else None
            return Failure(message="operation canceled", canceled_failure_info=CanceledFailureInfo(details=details))
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
            return Failure(message="operation terminated", terminated_failure_info=TerminatedFailureInfo())
        case _:
            return Failure(message="operation exceeded internal timeout", timeout_failure_info=TimeoutFailureInfo())


def _link(state: ExecutionState, item: CallbackItem) -> Link.WorkflowEvent:
    """To where the callback was attached. The event of one that was attached later may have had no id then."""
    info = state.info
    link = Link.WorkflowEvent(namespace=info.namespace, workflow_id=info.workflow_id, run_id=info.run_id)
    if item.request_id:
        link.request_id_ref.request_id = item.request_id
        known = state.request_ids.get(item.request_id)
        options_updated = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED
        link.request_id_ref.event_type = EventType.ValueType(known.event_type) if known is not None else options_updated
    else:
        link.event_ref.event_id = 1
        link.event_ref.event_type = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
    return link


def _rfc3339(when: datetime) -> str:
    """With no digits of the second's fraction, or three, or six."""
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    if when.microsecond:
        text += f".{when.microsecond:06d}".removesuffix("000")
    return text + "Z"
