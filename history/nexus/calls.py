"""What calls of Nexus operations say, and what handlers' answers to them mean.

    time_left(item, now, config) -> (timedelta, TimeoutType)        how long a start may take; for a cancel `cancel_time_left`
    start_request(...) -> Request, cancel_request(...) -> Request
    start_result(outcome, config) -> CallResult, cancel_result(outcome) -> CallResult

Source: upstream's components/nexusoperations/executors.go and service/frontend/nexus_handler.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.nexus.v1 import CancelOperationRequest, Request, StartOperationRequest, StartOperationResponse
from temporalio.api.nexus.v1 import Link as NexusLink

from common.archetypes import business_id
from common.contracts.matching import NexusOutcome
from common.contracts.nexus import CALLBACK_TOKEN_HEADER, EVENT_LINK, SYSTEM_CALLBACK_URL
from common.contracts.tokens import NexusCompletionToken, encode_token
from common.nexus import link_value, operation_link_value
from common.nexus_failures import failure_of, failure_of_error, handler_failure, is_retryable
from common.nexus_links import links_of
from common.protos import timestamp
from history.config import HistoryConfig
from history.records import ExecutionInfo, NexusOperationItem
from history.transitions.nexus import CallResult

OPERATION_TIMEOUT = "operation-timeout"
USER_AGENT = "tinytemporal"

CallTime = tuple[timedelta, TimeoutType.ValueType]
"""How long a call may take, and which timeout of the operation sets that."""


def start_time(item: NexusOperationItem, *, now: datetime, config: HistoryConfig) -> CallTime:
    gone = now - item.scheduled_at
    if item.schedule_to_start:
        return min(config.nexus_timeout, item.schedule_to_start - gone), TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START
    if item.schedule_to_close:
        return min(config.nexus_timeout, item.schedule_to_close - gone), TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
    return config.nexus_timeout, TimeoutType.TIMEOUT_TYPE_UNSPECIFIED


def cancel_time(item: NexusOperationItem, *, now: datetime, config: HistoryConfig) -> CallTime:
    left, kind = config.nexus_timeout, TimeoutType.TIMEOUT_TYPE_UNSPECIFIED
    if item.start_to_close and item.started_at is not None:
        left = min(left, item.start_to_close - (now - item.started_at))
        kind = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    if item.schedule_to_close:
        left = min(left, item.schedule_to_close - (now - item.scheduled_at))
        kind = TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
    return left, kind


def completion_token(info: ExecutionInfo, item: NexusOperationItem) -> str:
    token = NexusCompletionToken(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        scheduled_event_id=item.scheduled_event_id,
        request_id=item.request_id,
    )
    return encode_token(token).decode()


def caller_link(info: ExecutionInfo, item: NexusOperationItem) -> Link.WorkflowEvent:
    """To the event that scheduled the operation."""
    return Link.WorkflowEvent(
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        event_ref=Link.WorkflowEvent.EventReference(
            event_id=item.scheduled_event_id, event_type=EventType.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED
        ),
    )


def caller_of(info: ExecutionInfo, item: NexusOperationItem) -> NexusLink:
    """To whatever calls: the event of a workflow, or the operation itself when it has none."""
    if info.archetype:
        link = Link.NexusOperation(
            namespace=info.namespace, operation_id=business_id(info.workflow_id), run_id=info.run_id
        )
        value, kind = operation_link_value(link), Link.NexusOperation.DESCRIPTOR.full_name
    else:
        value, kind = link_value(caller_link(info, item)), EVENT_LINK
    return NexusLink(url=value[1 : value.index(">")], type=kind)


def link_header(link: NexusLink) -> str:
    return f'<{link.url}>; type="{link.type}"'


def start_headers(item: NexusOperationItem, event: HistoryEvent, *, now: datetime) -> dict[str, str]:
    """The caller's own, and how long the operation may take."""
    headers = dict(event.nexus_operation_scheduled_event_attributes.nexus_header)
    limits = []
    if item.start_to_close:
        limits.append(item.start_to_close)
    if item.schedule_to_close:
        limits.append(item.schedule_to_close - (now - item.scheduled_at))
    if limits and OPERATION_TIMEOUT not in headers:
        headers[OPERATION_TIMEOUT] = milliseconds(min(limits))
    return headers


def milliseconds(value: timedelta) -> str:
    """As Nexus writes durations."""
    return f"{value // timedelta(milliseconds=1)}ms"


def start_request(info: ExecutionInfo, item: NexusOperationItem, event: HistoryEvent, *, now: datetime) -> Request:
    """As a worker gets it."""
    attributes = event.nexus_operation_scheduled_event_attributes
    link = caller_of(info, item)
    headers = start_headers(item, event, now=now)
    headers |= {"nexus-request-id": item.request_id, "nexus-link": link_header(link), "user-agent": USER_AGENT}
    return Request(
        header=headers,
        scheduled_time=timestamp(now),
        start_operation=StartOperationRequest(
            service=item.service,
            operation=item.operation,
            request_id=item.request_id,
            callback=SYSTEM_CALLBACK_URL,
            payload=attributes.input if attributes.HasField("input") else None,
            callback_header={CALLBACK_TOKEN_HEADER: completion_token(info, item)},
            links=[link],
        ),
        endpoint=item.endpoint,
        capabilities=Request.Capabilities(temporal_failure_responses=True),
    )


def cancel_request(item: NexusOperationItem, event: HistoryEvent, *, now: datetime) -> Request:
    return Request(
        header={
            **event.nexus_operation_scheduled_event_attributes.nexus_header,
            "user-agent": USER_AGENT,
        },
        scheduled_time=timestamp(now),
        cancel_operation=CancelOperationRequest(
            service=item.service,
            operation=item.operation,
            operation_token=item.operation_token,
            operation_id=item.operation_token,
        ),
        endpoint=item.endpoint,
        capabilities=Request.Capabilities(temporal_failure_responses=True),
    )


def start_result(outcome: NexusOutcome, *, config: HistoryConfig) -> CallResult:
    refused = refusal(outcome)
    if refused is not None:
        return refused
    assert outcome.response is not None
    answer = outcome.response.start_operation
    match answer.WhichOneof("variant"):
        case "sync_success":
            payload = answer.sync_success.payload if answer.sync_success.HasField("payload") else None
            return completed(payload, links_of(answer.sync_success.links), config=config)
        case "async_success":
            token = answer.async_success.operation_token or answer.async_success.operation_id
            return started(token, links_of(answer.async_success.links), config=config)
        case "failure":
            is_canceled = answer.failure.HasField("canceled_failure_info")
            return CallResult(state="canceled" if is_canceled else "failed", failure=answer.failure)
        case "operation_error":
            return _operation_error(answer)
    return from_handler(handler_failure("INTERNAL", "empty outcome"))


def _operation_error(answer: StartOperationResponse) -> CallResult:
    error = answer.operation_error
    failure = failure_of(error.failure)
    return CallResult(state="canceled" if error.operation_state == "canceled" else "failed", failure=failure)


def cancel_result(outcome: NexusOutcome) -> CallResult:
    """`completed`: the handler has the request."""
    return refusal(outcome) or CallResult(state="completed")


def refusal(outcome: NexusOutcome) -> CallResult | None:
    """A handler error, or nobody's answer; None when there is one."""
    if outcome.response is not None:
        return None
    if outcome.failure is not None:
        return from_handler(outcome.failure)
    if outcome.error is not None:
        return from_handler(failure_of_error(outcome.error))
    return from_handler(handler_failure("UPSTREAM_TIMEOUT", "upstream timeout"))


def completed(payload: object, links: list[Link], *, config: HistoryConfig) -> CallResult:
    if payload is not None and payload.ByteSize() > config.blob_limit:  # type: ignore[attr-defined]
        return call_error("http: response body too large", retryable=False)
    return CallResult(state="completed", payload=payload, links=links)  # type: ignore[arg-type]


def started(token: str, links: list[Link], *, config: HistoryConfig) -> CallResult:
    if (size := len(token.encode())) > config.nexus_token_limit:
        limit = config.nexus_token_limit
        return call_error(f"invalid operation token: length exceeds allowed limit ({size}/{limit})", retryable=False)
    return CallResult(state="started", token=token, links=links)


def from_handler(failure: Failure) -> CallResult:
    """A handler error is final or may be cured by another try."""
    retryable = is_retryable(failure)
    return CallResult(state="retry" if retryable else "refused", failure=failure, is_destination_down=retryable)


def call_error(message: str, *, retryable: bool) -> CallResult:
    info = ApplicationFailureInfo(type="CallError", non_retryable=not retryable)
    return CallResult(
        state="retry" if retryable else "refused",
        failure=Failure(message=message, application_failure_info=info),
        is_destination_down=retryable,
    )
