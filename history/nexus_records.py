"""Records of Nexus: the operations that a run, or nobody's run, waits for, and the endpoints. Part of `history.records`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import field
from temporalio.api.common.v1 import (
    Payload,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.nexus.v1 import EndpointSpec

from common.protos import ZERO
from common.records import Record

NexusOperationState = Literal["scheduled", "backingOff", "started"]
NexusCancellationState = Literal["unstarted", "scheduled", "backingOff", "succeeded", "failed"]


class NexusCancellation(Record, kw_only=True):
    """That a Nexus operation is to be canceled, and how the request fares. It is not sent before the operation started."""

    requested_event_id: int
    requested_at: datetime
    state: NexusCancellationState = "unstarted"
    attempt: int = 0
    """How often it was tried, like all attempts here."""
    last_attempt_at: datetime | None = None
    last_failure: Failure | None = None
    next_attempt_at: datetime | None = None


class NexusOperationItem(Record, kw_only=True):
    """A Nexus operation that has not ended; key: its scheduled event id."""

    scheduled_event_id: int
    endpoint: str
    endpoint_id: str = ""
    service: str
    operation: str
    request_id: str
    """With which every attempt is made, so that the handler knows them for one."""
    scheduled_at: datetime
    schedule_to_close: timedelta = ZERO
    schedule_to_start: timedelta = ZERO
    start_to_close: timedelta = ZERO
    state: NexusOperationState = "scheduled"
    operation_token: str = ""
    started_at: datetime | None = None
    attempt: int = 0
    last_attempt_at: datetime | None = None
    last_failure: Failure | None = None
    next_attempt_at: datetime | None = None
    cancellation: NexusCancellation | None = None


class OperationExecution(Record, kw_only=True):
    """What a Nexus operation without a workflow has beside its one `NexusOperationItem`, which stays after its end."""

    input: Payload | None = None
    headers: dict[str, str] = field(default_factory=dict)
    identity: str = ""

    is_completed: bool = False
    result: Payload | None = None
    """Of a completed one, if its handler gave one."""
    failure: Failure | None = None
    """How it closed otherwise; that of the last attempt when this is not set."""

    cancel_identity: str = ""
    cancel_reason: str = ""
    cancel_request_id: str = ""
    terminate_request_id: str = ""


class NexusEndpointRecord(Record, kw_only=True):
    """A Nexus endpoint, the `data` of its `nexus_endpoints` row."""

    endpoint_id: str
    version: int = 1
    """Counts its changes, from 1."""
    spec: EndpointSpec
    created_at: datetime
    modified_at: datetime | None = None
