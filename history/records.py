"""What History stores: one record type for each table's `data`, in the camelCase of proto3 JSON.

`ExecutionInfo` is a run's mutable state without the things it waits for; those are `pending_items`, one record each,
so that a transition writes only what it changes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import field
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import (
    Callback,
    Header,
    Link,
    Payload,
    Payloads,
    Priority,
    RetryPolicy,
    WorkerVersionStamp,
)
from temporalio.api.enums.v1 import (
    ContinueAsNewInitiator,
    ContinueAsNewVersioningBehavior,
    ParentClosePolicy,
    RetryState,
    SuggestContinueAsNewReason,
    VersioningBehavior,
    WorkflowExecutionStatus,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.nexus.v1 import EndpointSpec
from temporalio.api.rules.v1 import WorkflowRule
from temporalio.api.sdk.v1 import UserMetadata
from temporalio.api.update.v1 import Outcome
from temporalio.api.update.v1 import Request as UpdateRequest
from temporalio.api.workflow.v1 import ResetPointInfo, VersioningOverride

from common.archetypes import Archetype
from common.contracts.visibility import VisibilityIntent as VisibilityIntent
from common.protos import ZERO
from common.records import Record

RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING


CallbackState = Literal["standby", "scheduled", "backingOff", "succeeded", "failed"]


class ParentInfo(Record, kw_only=True):
    """The parent that started this run as a child."""

    namespace: str
    namespace_id: str = ""
    workflow_id: str
    run_id: str
    initiated_event_id: int
    initiated_event_version: int = 0


class WorkflowTask(Record, kw_only=True):
    """The run's one pending workflow task.

    Transient (attempt > 1) and speculative tasks have no events yet: their scheduled and started event ids are the
    ones they will get if nothing else is written first.
    """

    scheduled_event_id: int
    started_event_id: int = 0
    """0 until a worker has it."""
    attempt: int = 1
    kind: Literal["normal", "speculative"] = "normal"
    scheduled_at: datetime
    original_scheduled_at: datetime
    """When the first of a row of heartbeating tasks was scheduled."""
    started_at: datetime | None = None
    start_to_close: timedelta
    request_id: str = ""
    """The poll that started it; a repeated delivery of the same poll gets the same answer."""
    task_queue: str
    sticky: bool = False
    identity: str = ""
    history_size_bytes: int = 0
    suggest_continue_as_new: bool = False
    suggest_reasons: list[SuggestContinueAsNewReason.ValueType] = field(default_factory=list)
    build_id: str = ""
    target_changed: bool = False
    """Whether its worker is told that a run that is not pinned would go to another version."""
    redirects: int = 0
    """Of the older versioning: how often the run had been redirected when it started."""
    stamp: int = 0


class TargetNotice(Record, kw_only=True):
    """A version that a pinned run's worker was told of as the one the run would go to were it not pinned."""

    version: str = ""
    revision: int = 0


class RunVersioning(Record, kw_only=True):
    """What a run's workers and Matching made of its worker deployment version; see `history.versioning`. Versions are
    "<deployment>:<build id>"."""

    behavior: VersioningBehavior.ValueType = VersioningBehavior.VERSIONING_BEHAVIOR_UNSPECIFIED
    version: str = ""
    """Of the worker that completed the last workflow task, or inherited."""
    transition: str | None = None
    """To which version the run is on its way; "" to workers without one."""
    revision: int = 0
    """Of the routing by which it last went to another version."""
    initial: ContinueAsNewVersioningBehavior.ValueType = (
        ContinueAsNewVersioningBehavior.CONTINUE_AS_NEW_VERSIONING_BEHAVIOR_UNSPECIFIED
    )
    """What the continue-as-new that made the run asked for."""
    notified: TargetNotice | None = None
    declined: TargetNotice | None = None
    """What the run before this one had been told of and stayed all the same."""


class PauseInfo(Record, kw_only=True):
    paused_at: datetime
    identity: str = ""
    reason: str = ""
    request_id: str = ""


class ExecutionInfo(Record, kw_only=True):
    """A run's mutable state, the `data` of its `executions` row. Columns of that row repeat what is key or order."""

    namespace: str
    namespace_id: str = ""
    archetype: Archetype = ""
    """Empty for a workflow's run; else what kind of execution without a workflow this is, see `common.archetypes`."""
    workflow_id: str
    """Of another archetype its key."""
    run_id: str
    shard_id: int
    workflow_type: str
    task_queue: str
    status: WorkflowExecutionStatus.ValueType = RUNNING
    next_event_id: int = 1
    """An execution without events counts its changes here: 1 once it is there."""
    started_at: datetime
    original_started_at: datetime | None = None
    """When the run began that this one's history is a copy of; None for a run that was not made by a reset."""
    execution_time: datetime
    """When the first workflow task may run: `started_at` plus start delay, cron or retry back-off."""
    closed_at: datetime | None = None
    close_event_id: int = 0

    # the chain
    first_run_id: str = ""
    original_run_id: str = ""
    """The run this one was reset from, or itself."""
    continued_from_run_id: str = ""
    continued_to_run_id: str = ""
    initiator: ContinueAsNewInitiator.ValueType = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_UNSPECIFIED
    reset_to_run_id: str = ""
    """The run that took this one's place when it was last reset."""
    reset_request_id: str = ""
    """The request that made this run by a reset."""
    root_workflow_id: str = ""
    root_run_id: str = ""
    parent: ParentInfo | None = None
    parent_close_policy: ParentClosePolicy.ValueType = ParentClosePolicy.PARENT_CLOSE_POLICY_UNSPECIFIED

    # time
    execution_timeout: timedelta = ZERO
    """Zero: none. Like all timeouts here."""
    run_timeout: timedelta = ZERO
    has_execution_timeout: bool = False
    """Whether the start named this timeout, though it may be zero: the API shows the difference."""
    has_run_timeout: bool = False
    task_timeout: timedelta = timedelta(seconds=10)
    execution_expires_at: datetime | None = None
    run_expires_at: datetime | None = None
    deadline_at: datetime | None = None
    """Never later than the earliest deadline this state holds (task, activity and run timeouts); the indexed column
    from which they are found again after a crash. It may be early: firing it recomputes it."""

    # retry and cron
    attempt: int = 1
    retry_policy: RetryPolicy | None = None
    cron_schedule: str = ""
    first_task_backoff: timedelta = ZERO

    # workflow tasks
    workflow_task: WorkflowTask | None = None
    first_task_pending: bool = False
    """True while the first workflow task waits for a back-off timer (start delay, cron, retry)."""
    previous_started_event_id: int = 0
    """Started event of the last completed workflow task; 0 before the first completion."""
    completed_task_count: int = 0
    task_failures: int = 0
    """Consecutive failed or timed-out workflow tasks, as attempt counting of transient tasks needs it."""
    last_task_failure_category: str = ""
    last_task_failure_cause: str = ""
    sticky_queue: str = ""
    sticky_schedule_to_start: timedelta = ZERO
    worker_stamp: WorkerVersionStamp | None = None
    last_worker_identity: str = ""
    sdk_name: str = ""
    sdk_version: str = ""

    # what happened
    cancel_requested: bool = False
    cancel_request_id: str = ""
    signal_count: int = 0
    activity_count: int = 0
    update_count: int = 0
    """Updates ever accepted or completed; the total limit counts these."""
    pending_nexus_operations: int = 0
    """Those that have not ended: how many items of their kind there are, to be asked for at no cost."""
    updates_in_flight: int = 0
    """Of them, those not completed."""
    external_payload_count: int = 0
    """Payloads in the history whose data clients keep elsewhere."""
    external_payload_size: int = 0
    """Their bytes, as the clients say."""
    history_size: int = 0
    """Bytes of the events' protobuf form."""
    state_transition_count: int = 0
    last_event_task_id: int = 0

    # what clients gave and see
    create_request_id: str = ""
    memo: dict[str, Payload] = field(default_factory=dict)
    search_attributes: dict[str, Payload] = field(default_factory=dict)
    priority: Priority | None = None
    versioning: RunVersioning | None = None
    """None for a run that no versioned worker has had."""
    worker_deployment: str = ""
    """The deployment that the last worker named, versioned or not, or an override does."""
    versioning_override: VersioningOverride | None = None
    had_versioning_override: bool = False
    """Now or before."""
    user_metadata: UserMetadata | None = None
    links: list[Link] = field(default_factory=list)
    reset_points: list[ResetPointInfo] = field(default_factory=list)
    pause: PauseInfo | None = None
    assigned_build_id: str = ""
    inherited_build_id: str = ""
    build_redirects: int = 0
    """How often redirect rules gave the run another build."""

    delete_when_called: bool = False
    """The run was deleted while completion callbacks had to be made: it goes once each was tried."""


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


class TimerItem(Record, kw_only=True):
    """A pending user timer; key: its timer id."""

    timer_id: str
    started_event_id: int
    fires_at: datetime
    task_id: int = 0
    """Its `timer_tasks` row."""


class ChildItem(Record, kw_only=True):
    """A child workflow that was initiated and has not closed; key: its initiated event id."""

    initiated_event_id: int
    namespace: str
    workflow_id: str
    workflow_type: str
    run_id: str = ""
    started_event_id: int = 0
    create_request_id: str
    parent_close_policy: ParentClosePolicy.ValueType
    priority: Priority | None = None


class ExternalSignalItem(Record, kw_only=True):
    """A signal to another execution, sent and not yet confirmed; key: its initiated event id."""

    initiated_event_id: int
    request_id: str


class ExternalCancelItem(Record, kw_only=True):
    """A cancel request to another execution, sent and not yet confirmed; key: its initiated event id."""

    initiated_event_id: int
    request_id: str


class UpdateItem(Record, kw_only=True):
    """An update that was accepted or completed (or re-admitted by a reset); key: its update id."""

    update_id: str
    state: Literal["admitted", "accepted", "completed"]
    accepted_event_id: int = 0
    completed_event_id: int = 0
    outcome: Outcome | None = None
    request: UpdateRequest | None = None
    """Only for a durably admitted one."""


class BufferedEvent(Record, kw_only=True):
    """An event that arrived while a workflow task was started; key: its order. It gets its id when flushed."""

    order: int
    event: HistoryEvent


class RequestIdItem(Record, kw_only=True):
    """A request that was applied, so that its repetition changes nothing; key: its request id."""

    request_id: str
    event_type: int
    event_id: int = 0
    """0 while that event is buffered."""


class CallbackItem(Record, kw_only=True):
    """An HTTP call to make when the run's chain, or one of its updates, has ended; key: its number, from 1 in order of
    attachment."""

    number: int
    callback: Callback
    request_id: str = ""
    """The request that attached it to the running workflow; empty when it came with the start."""
    update_id: str = ""
    """The update whose end it tells; empty: the chain's."""
    rejection: Failure | None = None
    """Why the update was rejected, which leaves no event."""
    registered_at: datetime
    state: CallbackState = "standby"
    attempt: int = 0
    """How often it was tried."""
    last_attempt_at: datetime | None = None
    """When the last try ended."""
    last_failure: Failure | None = None
    next_attempt_at: datetime | None = None
    """Set in back-off."""


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


class CurrentRun(Record, kw_only=True):
    """The newest run of a workflow id, the `current_runs` row."""

    namespace: str
    workflow_id: str
    run_id: str
    status: WorkflowExecutionStatus.ValueType
    first_run_id: str = ""
    create_request_id: str = ""
    started_at: datetime
    closed_at: datetime | None = None


TransferKind = Literal[
    "workflowTask",
    "activityTask",
    "startChild",
    "signalExternal",
    "cancelExternal",
    "closeExecution",
    "deleteExecution",
    "invokeCallback",
    "startNexusOperation",
    "cancelNexusOperation",
]


class TransferTask(Record, kw_only=True):
    """Durable intent to hand work to Matching or to another execution; deleted once handled."""

    task_id: int
    kind: TransferKind
    namespace: str
    workflow_id: str
    run_id: str
    task_queue: str = ""
    sticky: bool = False
    event_id: int = 0
    """The scheduled or initiated event it is about; of a callback its number."""
    attempt: int = 0
    stamp: int = 0
    schedule_to_start: timedelta = ZERO
    available_at: datetime
    priority: Priority | None = None


TimerKind = Literal[
    "userTimer", "activityRetry", "workflowBackoff", "callbackRetry", "nexusStartRetry", "nexusCancelRetry"
]


class TimerTask(Record, kw_only=True):
    """Something due at a time: user timers and back-offs. Timeouts are found through `executions.deadline_at`."""

    task_id: int
    kind: TimerKind
    namespace: str
    workflow_id: str
    run_id: str
    due_at: datetime
    command_sequence: int = 0
    """The event the timer came from: timer started, activity scheduled; of a callback its number."""
    timer_id: str = ""
    attempt: int = 0
    stamp: int = 0


class ShardRecord(Record, kw_only=True):
    """A shard's lease, the `shards` row."""

    shard_id: int
    range_id: int
    owner: str
    updated_at: datetime


class NamespaceRecord(Record, kw_only=True):
    """A namespace, the `data` of its `namespaces` row."""

    name: str
    namespace_id: str
    state: int = 1
    retention: timedelta = timedelta(days=3)
    description: str = ""
    owner_email: str = ""
    custom_data: dict[str, str] = field(default_factory=dict)
    created_at: datetime
    is_global: bool = False
    search_attributes: dict[str, str] = field(default_factory=dict)
    """Custom search attributes: name → type name (Text, Keyword, Int, Double, Bool, Datetime, KeywordList)."""
    workflow_rules: dict[str, WorkflowRule] = field(default_factory=dict)
    """By id, in order of their creation; see `history.rules`."""
    notification_version: int = 0


class NexusEndpointRecord(Record, kw_only=True):
    """A Nexus endpoint, the `data` of its `nexus_endpoints` row."""

    endpoint_id: str
    version: int = 1
    """Counts its changes, from 1."""
    spec: EndpointSpec
    created_at: datetime
    modified_at: datetime | None = None
