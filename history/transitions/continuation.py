"""Runs that follow a run: its retry, its next cron run, or what it continues as. The end of the one and the start of the other
are one commit.

    retry_or_cron(draft, failure) -> (FollowUp | None, RetryState)   what a run that fails or times out is followed by
    cron(draft) -> FollowUp | None                                   what one that completes is followed by
    start_follow_up(draft, follow_up, *, failure, last_result) -> Draft   start it; the close event names `follow_up.run_id`
    continue_as_new(draft, attributes, *, policy, completed_event_id) -> Draft

Retry and cron runs repeat the run's own started event; continue-as-new takes what its command gives. All keep the chain's
first run id, execution deadline, parent and root. A run that lived less than MIN_INTERVAL is followed only after the rest of
it, so that a chain can't spin.
Source: upstream's SetupNewWorkflowForRetryOrCron, AddContinueAsNewEvent and ContinueAsNewMinBackoff.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from msgspec import Struct
from temporalio.api.command.v1 import ContinueAsNewWorkflowExecutionCommandAttributes
from temporalio.api.common.v1 import Payloads, RetryPolicy, WorkflowType
from temporalio.api.enums.v1 import ContinueAsNewInitiator, RetryState, TaskQueueKind
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import (
    HistoryEvent,
    WorkflowExecutionContinuedAsNewEventAttributes,
    WorkflowExecutionStartedEventAttributes,
)
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import ResetPointInfo

from common.protos import ZERO, duration, from_duration, from_timestamp, timestamp
from history.records import ExecutionInfo
from history.state import Draft
from history.transitions.begin import begin_run, set_parent
from history.transitions.callbacks import chain_callbacks
from history.transitions.close import close_run
from history.transitions.cron import cron_backoff
from history.transitions.retry import is_retryable, next_retry
from history.validation import LONGEST, capped_task_timeout, run_timeout_within
from history.versioning import clear_inheritance, inherit_by_continuation, inherit_by_retry, is_versioned

Initiator = ContinueAsNewInitiator

MIN_INTERVAL = timedelta(seconds=1)
"""Upstream's history.workflowIdReuseMinimalInterval."""


class FollowUp(Struct, kw_only=True, frozen=True):
    """The run that is to follow one that ends."""

    run_id: str
    backoff: timedelta
    initiator: ContinueAsNewInitiator.ValueType
    started: HistoryEvent
    """The started event that it repeats."""

    @property
    def is_retry(self) -> bool:
        return self.initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_RETRY

    @property
    def known_result(self) -> Payloads | None:
        """The result of the last completed run of the chain, as the ending run was told it."""
        attributes = self.started.workflow_execution_started_event_attributes
        return attributes.last_completion_result if attributes.HasField("last_completion_result") else None


def retry_or_cron(draft: Draft, failure: Failure) -> tuple[FollowUp | None, RetryState.ValueType]:
    """What the failure leads to: a retry as the run's policy says, else its cron schedule's next run."""
    state, delay = workflow_retry(draft, failure)
    if delay is not None:
        return _follow_up(draft, delay, Initiator.CONTINUE_AS_NEW_INITIATOR_RETRY), state
    return cron(draft), state


def workflow_retry(draft: Draft, failure: Failure) -> tuple[RetryState.ValueType, timedelta | None]:
    """How the run's retry policy judges the failure, and after what delay it wants another run (None: none)."""
    info = draft.info
    policy = info.retry_policy
    if policy is None:
        return RetryState.RETRY_STATE_RETRY_POLICY_NOT_SET, None
    if not is_retryable(failure, policy.non_retryable_error_types):
        return RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE, None
    retry = next_retry(
        policy, attempt=info.attempt, now=draft.work.now, expires_at=info.execution_expires_at, failure=failure
    )
    return retry.state, retry.delay


def cron(draft: Draft) -> FollowUp | None:
    delay = cron_backoff(draft)
    if delay is None:
        return None
    return _follow_up(draft, delay, Initiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE)


def _follow_up(draft: Draft, delay: timedelta, initiator: ContinueAsNewInitiator.ValueType) -> FollowUp:
    # The started event is fetched first: it may have to be loaded, and then the transition runs again.
    started = draft.event(1)
    return FollowUp(run_id=draft.work.new_run_id(), backoff=delay, initiator=initiator, started=started)


def start_follow_up(
    draft: Draft, follow_up: FollowUp, *, failure: Failure | None = None, last_result: Payloads | None = None
) -> Draft:
    """Start the run that follows the closed `draft`, and tell it the failure or the last completion's result."""
    info = draft.info
    before = follow_up.started.workflow_execution_started_event_attributes
    attributes = WorkflowExecutionStartedEventAttributes()
    attributes.CopyFrom(before)
    attributes.continued_execution_run_id = info.run_id
    attributes.initiator = follow_up.initiator
    attributes.identity = ""
    attributes.eager_execution_accepted = False
    attributes.attempt = info.attempt + 1 if follow_up.is_retry else 1
    attributes.ClearField("completion_callbacks")
    if follow_up.is_retry:
        attributes.completion_callbacks.extend(chain_callbacks(draft))
        inherit_by_retry(attributes, info, before)
    else:
        clear_inheritance(attributes)
    attributes.ClearField("continued_failure")
    if failure is not None:
        attributes.continued_failure.CopyFrom(failure)
    attributes.ClearField("last_completion_result")
    if last_result is not None:
        attributes.last_completion_result.CopyFrom(last_result)
    _inherit(attributes, draft, run_id=follow_up.run_id, backoff=follow_up.backoff)
    return begin_run(
        draft.work,
        attributes=attributes,
        run_id=follow_up.run_id,
        request_id=draft.work.new_run_id(),
        namespace_id=info.namespace_id,
        links=follow_up.started.links,
    )


def continue_as_new(
    draft: Draft,
    command: ContinueAsNewWorkflowExecutionCommandAttributes,
    *,
    policy: RetryPolicy | None,
    completed_event_id: int,
) -> Draft:
    """Close the run as continued and start the new one, as a checked command says; `policy` is its own, completed."""
    work, info = draft.work, draft.info
    run_id = work.new_run_id()
    attributes = continued_attributes(draft, command, policy=policy, run_id=run_id)
    close_run(
        draft,
        WorkflowExecutionContinuedAsNewEventAttributes(
            new_execution_run_id=run_id,
            workflow_type=attributes.workflow_type,
            task_queue=attributes.task_queue,
            input=_optional(command, "input"),
            workflow_run_timeout=attributes.workflow_run_timeout,
            workflow_task_timeout=attributes.workflow_task_timeout,
            workflow_task_completed_event_id=completed_event_id,
            backoff_start_interval=_optional(command, "backoff_start_interval"),
            initiator=command.initiator,
            failure=_optional(command, "failure"),
            last_completion_result=_optional(command, "last_completion_result"),
            header=_optional(command, "header"),
            memo=_optional(command, "memo"),
            search_attributes=_optional(command, "search_attributes"),
            inherit_build_id=command.inherit_build_id,
            initial_versioning_behavior=command.initial_versioning_behavior,
        ),
    )
    return begin_run(
        work,
        attributes=attributes,
        run_id=run_id,
        request_id=work.new_run_id(),
        namespace_id=info.namespace_id,
        links=info.links,
    )


def _optional(command: ContinueAsNewWorkflowExecutionCommandAttributes, name: str) -> Any:
    """A message field, or None when the command leaves it out."""
    return getattr(command, name) if command.HasField(name) else None  # type: ignore[arg-type]


def continued_attributes(
    draft: Draft,
    command: ContinueAsNewWorkflowExecutionCommandAttributes,
    *,
    policy: RetryPolicy | None,
    run_id: str,
) -> WorkflowExecutionStartedEventAttributes:
    """The started event of the run that `draft` continues as. What the command leaves out comes from the run: type, task
    queue, timeouts; memo, search attributes, retry policy and cron schedule do not."""
    info = draft.info
    run_timeout = run_timeout_within(
        from_duration(command.workflow_run_timeout) or info.run_timeout, execution_timeout=info.execution_timeout
    )
    task_timeout = capped_task_timeout(
        from_duration(command.workflow_task_timeout) or info.task_timeout,
        run_timeout=run_timeout,
        config=draft.work.config,
    )
    attributes = WorkflowExecutionStartedEventAttributes(
        workflow_type=WorkflowType(name=command.workflow_type.name or info.workflow_type),
        task_queue=TaskQueue(
            name=command.task_queue.name or info.task_queue, kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL
        ),
        workflow_execution_timeout=duration(info.execution_timeout) if info.has_execution_timeout else None,
        workflow_run_timeout=duration(run_timeout),
        workflow_task_timeout=duration(task_timeout),
        continued_execution_run_id=info.run_id,
        initiator=command.initiator or Initiator.CONTINUE_AS_NEW_INITIATOR_WORKFLOW,
        cron_schedule=command.cron_schedule,
        workflow_id=info.workflow_id,
        completion_callbacks=chain_callbacks(draft),
        priority=info.priority,
        input=_optional(command, "input"),
        header=_optional(command, "header"),
        retry_policy=policy,
        memo=_optional(command, "memo"),
        search_attributes=_optional(command, "search_attributes"),
        last_completion_result=_optional(command, "last_completion_result"),
        continued_failure=_optional(command, "failure"),
    )
    is_retry = command.initiator == Initiator.CONTINUE_AS_NEW_INITIATOR_RETRY
    attributes.attempt = info.attempt + 1 if is_retry else 1
    if command.inherit_build_id:
        attributes.inherited_build_id = info.assigned_build_id
        if not info.assigned_build_id and info.worker_stamp is not None and info.worker_stamp.use_versioning:
            attributes.source_version_stamp.CopyFrom(info.worker_stamp)
    _inherit(attributes, draft, run_id=run_id, backoff=from_duration(command.backoff_start_interval))
    if is_versioned(info):
        _stay_on_version(attributes, draft, command)
    return attributes


def _stay_on_version(
    attributes: WorkflowExecutionStartedEventAttributes,
    draft: Draft,
    command: ContinueAsNewWorkflowExecutionCommandAttributes,
) -> None:
    """Unless the next run's queue is none of the version's."""
    info = draft.info
    if attributes.task_queue.name in (info.task_queue, draft.work.version_queue):
        inherit_by_continuation(attributes, info, initial=command.initial_versioning_behavior)
    else:
        attributes.ClearField("versioning_override")


def _inherit(
    attributes: WorkflowExecutionStartedEventAttributes, draft: Draft, *, run_id: str, backoff: timedelta
) -> None:
    """What every run of a chain takes from the one before it, whoever made the rest of its started event."""
    info = draft.info
    attributes.original_execution_run_id = run_id
    attributes.first_execution_run_id = info.first_run_id
    attributes.first_workflow_task_backoff.CopyFrom(duration(with_min_interval(draft, backoff)))
    attributes.ClearField("workflow_execution_expiration_time")
    if info.execution_expires_at is not None:
        attributes.workflow_execution_expiration_time.CopyFrom(timestamp(info.execution_expires_at))
    attributes.ClearField("prev_auto_reset_points")
    attributes.prev_auto_reset_points.points.extend(_lasting_points(draft))
    attributes.ClearField("versioning_override")
    override = info.versioning_override
    if override is not None and override.HasField("pinned"):
        attributes.versioning_override.CopyFrom(override)
    _inherit_parent(attributes, info)


def _lasting_points(draft: Draft) -> Iterator[ResetPointInfo]:
    """The chain's reset points whose runs are still kept, those of this run with the time when it will not be.
    Source: upstream's rolloverAutoResetPointsWithExpiringTime."""
    now, retention = draft.work.now, draft.work.retention
    for point in draft.info.reset_points:
        if point.HasField("expire_time") and from_timestamp(point.expire_time) < now:
            continue
        kept = ResetPointInfo()
        kept.CopyFrom(point)
        if point.run_id == draft.info.run_id and retention is not None:
            kept.expire_time.CopyFrom(timestamp(now + retention))
        yield kept


def _inherit_parent(attributes: WorkflowExecutionStartedEventAttributes, info: ExecutionInfo) -> None:
    if info.parent is None:
        return
    set_parent(attributes, info.parent)
    attributes.root_workflow_execution.workflow_id = info.root_workflow_id
    attributes.root_workflow_execution.run_id = info.root_run_id


def with_min_interval(draft: Draft, backoff: timedelta) -> timedelta:
    """The back-off, lengthened so that this run's life and it take at least MIN_INTERVAL."""
    lifetime = draft.work.now - draft.info.execution_time
    if lifetime + backoff < MIN_INTERVAL:
        return min(MIN_INTERVAL - lifetime, LONGEST)
    return max(backoff, ZERO)
