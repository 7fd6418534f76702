"""What a completion callback sends: how the chain of runs ended, as the completion of a Nexus operation.

    completion_request(state, item, close_event) -> CompletionRequest

The body of a success is the workflow's first result. A failure's body is its message and what kind it is; who terminated the
run, and why, is told to nobody outside.
Source: upstream's GetNexusCompletion and common/nexus/nexusrpc/completion.go.
"""

from __future__ import annotations

import json
from datetime import datetime
from email.utils import format_datetime

from msgspec import Struct
from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import CanceledFailureInfo, Failure, TerminatedFailureInfo, TimeoutFailureInfo
from temporalio.api.history.v1 import HistoryEvent

from common.nexus import Content, content_of, failure_json, link_value
from common.protos import from_timestamp
from history.records import CallbackItem
from history.state import ExecutionState

USER_AGENT = "tinytemporal"
FRAMING = frozenset(("connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"))
"""Headers by which HTTP finds the ends of messages and its way: no callback's own."""


class CompletionRequest(Struct, kw_only=True, frozen=True):
    """A POST. Header names are in lower case."""

    url: str
    headers: dict[str, str]
    body: bytes


def completion_request(state: ExecutionState, item: CallbackItem, close_event: HistoryEvent) -> CompletionRequest:
    """The callback's own headers go before those that are made here."""
    operation_state, content = _outcome(close_event)
    info = state.info
    headers = {
        "user-agent": USER_AGENT,
        "nexus-operation-start-time": format_datetime(info.started_at.replace(microsecond=0), usegmt=True),
        "nexus-operation-close-time": _rfc3339(from_timestamp(close_event.event_time)),
        "nexus-link": link_value(_link(state, item)),
        **{f"content-{name.lower()}": value for name, value in content.headers.items()},
        "nexus-operation-state": operation_state,
        **{name.lower(): value for name, value in item.callback.nexus.header.items() if name.lower() not in FRAMING},
    }
    return CompletionRequest(url=item.callback.nexus.url, headers=headers, body=content.data)


def _outcome(event: HistoryEvent) -> tuple[str, Content]:
    if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
        payloads = event.workflow_execution_completed_event_attributes.result.payloads
        return "succeeded", content_of(payloads[0] if payloads else None)
    canceled = event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED
    body = json.dumps(failure_json(_failure(event)), ensure_ascii=False, separators=(",", ":")).encode()
    return "canceled" if canceled else "failed", Content(body, {"type": "application/json"})


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
        link.request_id_ref.event_type = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED
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
