"""The beginning of a run, whatever leads to it.

    begin_run(work, *, attributes, run_id, request_id, namespace_id, ...) -> Draft
    schedule_first_task(draft) -> None
    first_run_attributes(work, start, *, run_id) -> WorkflowExecutionStartedEventAttributes

First runs, retries, cron, continue-as-new, children and resets all pass here: everything about a new run is in its started
event.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct
from temporalio.api.common.v1 import Link, WorkerVersionStamp, WorkflowExecution
from temporalio.api.enums.v1 import ContinueAsNewInitiator
from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.api.sdk.v1 import UserMetadata
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.protos import ZERO, duration, from_duration, timestamp
from history.events import add_event
from history.records import ExecutionInfo, ParentInfo
from history.state import Draft
from history.transitions.deadlines import lower_deadline
from history.transitions.tasks import add_timer_task
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import schedule_first_workflow_task
from history.validation import capped_task_timeout, run_timeout_within
from history.versioning import inherit_pin, inherit_upgrade
from history.versioning_override import modern_override
from history.workspace import Workspace

COPIED = frozenset(
    (
        "input",
        "header",
        "retry_policy",
        "memo",
        "search_attributes",
        "priority",
        "continued_failure",
        "last_completion_result",
        "time_skipping_config",
    )
)
"""Fields of the start request that the started event repeats as they are."""


class StartWorkflow(Struct, kw_only=True, frozen=True):
    """A start request and what its caller knows beside it. The request is never changed."""

    request: StartWorkflowExecutionRequest
    namespace_id: str
    first_task_backoff: timedelta = ZERO
    """Start delay, or the wait for a cron schedule's next time."""
    eager: bool = False
    """Whether the caller gets the first workflow task with the answer."""
    parent: ParentInfo | None = None
    root: WorkflowExecution | None = None
    inherited_pin: str = ""
    inherited_upgrade: str = ""
    inherited_revision: int = 0
    inherited_build_id: str = ""
    source_version_stamp: WorkerVersionStamp | None = None
    """Of a child: see `common.contracts.history.StartChild`."""
    child_of_parent_only: bool = False
    """A running workflow of that id may be terminated only if it is the parent's child (of a parent that was reset)."""


def begin_run(
    work: Workspace,
    *,
    attributes: WorkflowExecutionStartedEventAttributes,
    run_id: str,
    request_id: str,
    namespace_id: str,
    links: Iterable[Link] = (),
    user_metadata: UserMetadata | None = None,
    schedule: bool = True,
) -> Draft:
    """Create a run with its started event and make it the current one. `schedule` is False for a child: its first workflow
    task waits until the parent has recorded the start, so that no child acts before its parent knows of it."""
    draft = work.create(blank_info(work, run_id=run_id, request_id=request_id, namespace_id=namespace_id))
    add_event(draft, attributes, links=links, user_metadata=user_metadata)
    lower_deadline(draft, draft.info.run_expires_at)
    if schedule:
        schedule_first_task(draft)
    record_visibility(draft)
    work.make_current(draft)
    return draft


def blank_info(work: Workspace, *, run_id: str, request_id: str = "", namespace_id: str = "") -> ExecutionInfo:
    """A run before its first event."""
    return ExecutionInfo(
        namespace=work.namespace,
        namespace_id=namespace_id,
        workflow_id=work.workflow_id,
        run_id=run_id,
        shard_id=work.shard_id,
        workflow_type="",
        task_queue="",
        started_at=work.now,
        execution_time=work.now,
        create_request_id=request_id,
    )


def schedule_first_task(draft: Draft) -> None:
    """Schedule the run's first workflow task, or arm the timer for it when the run starts with a back-off."""
    info = draft.info
    if not info.first_task_pending:
        schedule_first_workflow_task(draft)
        # Early by the time until a worker takes the task: the start of it then has no indexed column to change.
        lower_deadline(draft, draft.work.now + info.task_timeout)
        return
    add_timer_task(draft, "workflowBackoff", info.execution_time)


def first_run_attributes(
    work: Workspace, start: StartWorkflow, *, run_id: str
) -> WorkflowExecutionStartedEventAttributes:
    """The started event of a chain's first run: the request's fields, with the defaults and caps of timeouts."""
    request = start.request
    execution_timeout = from_duration(request.workflow_execution_timeout)
    run_timeout = run_timeout_within(from_duration(request.workflow_run_timeout), execution_timeout=execution_timeout)
    task_timeout = from_duration(request.workflow_task_timeout)
    attributes = WorkflowExecutionStartedEventAttributes(
        workflow_type=request.workflow_type,
        task_queue=request.task_queue,
        workflow_execution_timeout=(
            duration(execution_timeout) if request.HasField("workflow_execution_timeout") else None
        ),
        workflow_run_timeout=(
            duration(run_timeout) if run_timeout or request.HasField("workflow_run_timeout") else None
        ),
        workflow_task_timeout=duration(capped_task_timeout(task_timeout, run_timeout=run_timeout, config=work.config)),
        identity=request.identity,
        attempt=1,
        first_workflow_task_backoff=duration(start.first_task_backoff),
        first_execution_run_id=run_id,
        original_execution_run_id=run_id,
        workflow_id=request.workflow_id,
        completion_callbacks=request.completion_callbacks,
        eager_execution_accepted=start.eager,
    )
    for field, value in request.ListFields():
        if field.name in COPIED:
            getattr(attributes, field.name).CopyFrom(value)
    if request.cron_schedule:
        attributes.cron_schedule = request.cron_schedule
        attributes.initiator = ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE
    if request.HasField("versioning_override"):
        attributes.versioning_override.CopyFrom(modern_override(request.versioning_override))
    if execution_timeout:
        expires = nearest_millisecond(work.now + execution_timeout)
        attributes.workflow_execution_expiration_time.CopyFrom(timestamp(expires))
    if start.root is not None:
        attributes.root_workflow_execution.CopyFrom(start.root)
    if start.parent is not None:
        set_parent(attributes, start.parent)
        attributes.inherited_build_id = start.inherited_build_id
        if start.source_version_stamp is not None:
            attributes.source_version_stamp.CopyFrom(start.source_version_stamp)
        inherit_pin(attributes, start.inherited_pin)
        inherit_upgrade(attributes, start.inherited_upgrade, revision=start.inherited_revision)
    return attributes


def set_parent(attributes: WorkflowExecutionStartedEventAttributes, parent: ParentInfo) -> None:
    attributes.parent_workflow_namespace = parent.namespace
    attributes.parent_workflow_namespace_id = parent.namespace_id
    attributes.parent_workflow_execution.workflow_id = parent.workflow_id
    attributes.parent_workflow_execution.run_id = parent.run_id
    attributes.parent_initiated_event_id = parent.initiated_event_id
    attributes.parent_initiated_event_version = parent.initiated_event_version


def nearest_millisecond(when: datetime) -> datetime:
    """Upstream keeps execution deadlines to the millisecond, halves rounded up."""
    micros = when.microsecond % 1_000
    return when + timedelta(microseconds=1_000 - micros if micros >= 500 else -micros)
