"""What History stores: one record type for each table's `data`, in the camelCase of proto3 JSON.

`ExecutionInfo` is a run's mutable state without the things it waits for; those are `pending_items`, one record each,
so that a transition writes only what it changes.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from msgspec import field
from temporalio.api.common.v1 import (
    Callback,
    Link,
    Payload,
    Priority,
    RetryPolicy,
    WorkerVersionStamp,
)
from temporalio.api.enums.v1 import (
    ContinueAsNewInitiator,
    ContinueAsNewVersioningBehavior,
    ParentClosePolicy,
    SuggestContinueAsNewReason,
    VersioningBehavior,
    WorkflowExecutionStatus,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.rules.v1 import WorkflowRule
from temporalio.api.sdk.v1 import UserMetadata
from temporalio.api.update.v1 import Outcome
from temporalio.api.update.v1 import Request as UpdateRequest
from temporalio.api.workflow.v1 import ResetPointInfo, VersioningOverride

from common.archetypes import Archetype
from common.contracts.visibility import VisibilityIntent as VisibilityIntent
from common.protos import ZERO
from common.records import Record
from history.activity_records import ActivityExecution as ActivityExecution
from history.activity_records import ActivityItem as ActivityItem
from history.nexus_records import NexusCancellation as NexusCancellation
from history.nexus_records import NexusEndpointRecord as NexusEndpointRecord
from history.nexus_records import NexusOperationItem as NexusOperationItem
from history.nexus_records import OperationExecution as OperationExecution

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
