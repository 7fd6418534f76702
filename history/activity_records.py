"""Records of activities, a workflow's and those without one. Part of `history.records`."""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import (
    Header,
    Payloads,
    Priority,
    RetryPolicy,
)
from temporalio.api.enums.v1 import (
    RetryState,
)
from temporalio.api.failure.v1 import Failure

from common.protos import ZERO
from common.records import Record


class ActivityItem(Record, kw_only=True):
    """A pending activity; key: its scheduled event id."""

    scheduled_event_id: int
    activity_id: str
    activity_type: str
    task_queue: str
    scheduled_at: datetime
    """When the present attempt was (or, in back-off, will be) put on its queue."""
    first_scheduled_at: datetime
    retry_expires_at: datetime | None = None
    """No attempt begins after this: where schedule-to-close ended when the activity was scheduled, whatever it is now."""
    schedule_to_close: timedelta = ZERO
    schedule_to_start: timedelta = ZERO
    start_to_close: timedelta = ZERO
    heartbeat: timedelta = ZERO
    retry_policy: RetryPolicy | None = None
    attempt: int = 1
    started_event_id: int = 0
    """0: not started. -124 (upstream's transient id): started, and its event is written when it closes."""
    started_at: datetime | None = None
    request_id: str = ""
    """The poll that started the present attempt."""
    last_heartbeat_at: datetime | None = None
    heartbeat_details: Payloads | None = None
    last_failure: Failure | None = None
    last_attempt_complete_at: datetime | None = None
    last_worker_identity: str = ""
    retry_at: datetime | None = None
    """Set during back-off: when the next attempt is put on its queue."""
    current_retry_interval: timedelta = ZERO
    cancel_requested: bool = False
    cancel_requested_event_id: int = 0
    paused_at: datetime | None = None
    pause_identity: str = ""
    pause_reason: str = ""
    pause_request_id: str = ""
    pause_rule_id: str = ""
    """The workflow rule that paused it; empty when somebody did."""
    reset_requested: bool = False
    reset_heartbeats: bool = False
    stamp: int = 0
    """Counts changes of the attempt's conditions (pause, reset, options): an older delivery is obsolete."""
    priority: Priority | None = None
    use_workflow_build_id: bool = False
    """It goes to the build that a rule assigned to the workflow."""
    use_compatible_version: bool = False
    """It goes to the version set of the workflow's build, if there is one."""
    redirects: int = 0
    """How often the workflow had been redirected when it was started, if it goes to the workflow's build."""

    # of an activity without a workflow only
    heartbeat_count: int = 0
    last_started_at: datetime | None = None
    """When the last attempt that was started, was."""
    sdk_name: str = ""
    sdk_version: str = ""
    delay_requested: bool = False
    """Whether the back-off is one that its worker asked for."""


class ActivityExecution(Record, kw_only=True):
    """What an activity without a workflow has beside its one `ActivityItem`, which stays after its end."""

    input: Payloads | None = None
    header: Header | None = None
    original_options: ActivityOptions
    start_delay: timedelta = ZERO
    first_started_at: datetime | None = None
    """When a worker first got it; resets change nothing of that."""
    restores_options: bool = False
    """A reset that waits for the present attempt's end restores the original options."""
    stays_paused: bool = False
    """… and leaves it paused."""

    result: Payloads | None = None
    """Of a completed one."""
    failure: Failure | None = None
    """How it closed otherwise."""
    retry_state: RetryState.ValueType = RetryState.RETRY_STATE_UNSPECIFIED

    cancel_identity: str = ""
    cancel_reason: str = ""
    cancel_request_id: str = ""
    terminate_request_id: str = ""
    pause_request_id: str = ""
    """Of the last one, as are those below: a repeated request changes nothing."""
    unpause_request_id: str = ""
    reset_request_id: str = ""
    options_request_id: str = ""
