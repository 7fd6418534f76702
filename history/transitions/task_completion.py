"""A worker completes its workflow task: the commands are carried out and, if anything is left to tell it, the next task begins.

    complete_workflow_task(work, request, token, *, custom_search_attributes) -> Completion
    fail_completion(work, request, token, *, failed) -> None      the second transition, when the first raised BadCommand
    end_over_limit(work, token, *, reason) -> None                the second transition, when it raised HistoryTooLarge
    HistoryTooLarge

A completion that can't be carried out changes nothing but that its task fails. So the first transition raises, nothing of it
is kept, and a second one writes the failure.
Source: upstream's service/history/api/respondworkflowtaskcompleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.deployment.v1 import WorkerDeploymentVersion
from temporalio.api.enums.v1 import TimeoutType, VersioningBehavior, WorkerVersioningMode, WorkflowTaskFailedCause
from temporalio.api.history.v1 import WorkflowTaskCompletedEventAttributes
from temporalio.api.update.v1 import Rejection
from temporalio.api.workflowservice import v1 as ws

from common.contracts.tokens import TaskToken
from common.errors import FailedPrecondition, InvalidArgument, NotFound
from history.commands import ON_TASK_FAILED, BadCommand, CommandContext, run_commands
from history.events import add_event, flush_buffered
from history.failures import server_failure
from history.records import WorkflowTask
from history.state import Draft
from history.transitions.activities import StartedActivity, dispatch_activity, start_activity
from history.transitions.buffering import SERVER_IDENTITY
from history.transitions.deadlines import recompute_deadline
from history.transitions.messages import has_outgoing, send_messages
from history.transitions.problems import clear_problems
from history.transitions.task_start import INLINE_REQUEST_ID, StartedTask, start_task, token_time
from history.transitions.terminate import terminate_run
from history.transitions.version_changes import reschedule_activities
from history.transitions.versions import where
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import (
    clear_sticky,
    fail_workflow_task,
    schedule_workflow_task,
    timeout_workflow_task,
    write_task_events,
)
from history.versioning import is_versioned, poller_version, transition_of
from history.workspace import Workspace

UNHANDLED = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
VERSIONED = WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED
UNSPECIFIED = VersioningBehavior.VERSIONING_BEHAVIOR_UNSPECIFIED
DISCARD_EVENTS_LIMIT = 10
"""A speculative task that showed its worker more new events than these is written even if it only rejected updates."""


class HistoryTooLarge(Exception):
    """The run's history would be over its limit; `reason` is upstream's text."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Completion(Struct, kw_only=True, frozen=True):
    """What the answer to a completion is made from."""

    run_id: str
    next_task: StartedTask | None
    """A new task, started for the same worker in this answer."""
    activities: list[StartedActivity]
    """Eager activities, started for the same worker in this answer."""
    reset_history_event_id: int
    """Not 0 when the task was speculative and left no trace: the worker forgets what came after that event."""
    task_pending: bool
    """Whether another workflow task is pending now."""
    heartbeat_timed_out: bool


def token_task(draft: Draft, token: TaskToken) -> WorkflowTask:
    """The started task of a worker's token. Raises NOT_FOUND when it is no longer the pending one."""
    task = draft.workflow_task
    if (
        draft.info.closed_at is not None
        or task is None
        or task.started_at is None
        or task.scheduled_event_id != token.scheduled_event_id
        or (token.started_event_id and token.started_event_id != task.started_event_id)
        or (token.started_at and token.started_at != token_time(task.started_at))
        or task.attempt != token.attempt
    ):
        raise NotFound("Workflow task not found.")
    return task


def complete_workflow_task(
    work: Workspace,
    request: ws.RespondWorkflowTaskCompletedRequest,
    token: TaskToken,
    *,
    custom_search_attributes: Mapping[str, str] | None = None,
    endpoints: Mapping[str, str] | None = None,
    version_queue: str = "",
) -> Completion:
    """Raises NOT_FOUND (stale token), INVALID_ARGUMENT, FAILED_PRECONDITION; BadCommand and HistoryTooLarge, which a second
    transition must follow up; EndpointsUnknown when Nexus endpoints are called and `endpoints` are not given."""
    draft = work.run(token.run_id)
    if version_queue:
        work.version_queue = version_queue
    task = token_task(draft, token)
    _check_request(draft, request)
    is_heartbeat = request.force_create_new_workflow_task and not request.commands and not request.messages
    timed_out = is_heartbeat and work.now > task.original_scheduled_at + work.config.heartbeat_task_limit
    if timed_out:
        timeout_workflow_task(draft, TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
        completed_event_id = draft.info.next_event_id - 1
    else:
        completed_event_id = _write_completed(draft, task, request)
        clear_problems(draft)
    _set_sticky(draft, request, clear=timed_out)
    ctx = CommandContext(
        work=work,
        draft=draft,
        request=request,
        task=task,
        completed_event_id=completed_event_id,
        custom_search_attributes=custom_search_attributes,
        endpoints=endpoints,
    )
    if not timed_out:
        run_commands(ctx, request.commands)
    _check_history(draft)
    next_task = _next_task(
        ctx,
        inline=request.return_new_workflow_task and not timed_out,
        original_scheduled_at=task.original_scheduled_at if is_heartbeat and not timed_out else None,
    )
    activities = _start_eager(ctx)
    if not draft.activities:
        recompute_deadline(draft)  # costs nothing now, and saves looking again at an idle run
    return Completion(
        run_id=draft.info.run_id,
        next_task=next_task,
        activities=activities,
        reset_history_event_id=0 if completed_event_id else draft.info.previous_started_event_id,
        task_pending=draft.workflow_task is not None,
        heartbeat_timed_out=timed_out,
    )


def _check_request(draft: Draft, request: ws.RespondWorkflowTaskCompletedRequest) -> None:
    info = draft.info
    if info.pause is not None and request.force_create_new_workflow_task:
        raise FailedPrecondition("Workflow is paused and force create new workflow task is not allowed.")
    versioned = request.deployment_options.worker_versioning_mode == VERSIONED
    if request.versioning_behavior != UNSPECIFIED and not request.HasField("deployment") and not versioned:
        raise InvalidArgument(
            "versioning behavior cannot be specified without deployment options being set with versioned mode"
        )
    if (
        info.worker_stamp is not None
        and info.worker_stamp.use_versioning
        and not request.worker_version_stamp.use_versioning
        and not versioned
    ):
        raise InvalidArgument("Workflow using versioning must continue to use versioning.")
    task = draft.workflow_task
    completed_by = request.worker_version_stamp.build_id
    # Source: upstream; a worker at a sticky queue is not asked, since its start says nothing of its build.
    if info.assigned_build_id and not info.sticky_queue and task is not None and task.build_id != completed_by:
        raise NotFound(f"this workflow task was dispatched to Build ID {task.build_id}, not {completed_by}")
    if request.intermediate_page or request.page_number:
        raise FailedPrecondition(f"workflow task completion pagination is disabled for this namespace {info.namespace}")


# --- the completed event


def _write_completed(draft: Draft, task: WorkflowTask, request: ws.RespondWorkflowTaskCompletedRequest) -> int:
    """Write the completed event, after the events of a task that has none yet; its id, or 0 when a speculative task is
    dropped."""
    info = draft.info
    if task.kind == "speculative":
        draft.speculative_task = None
        if _is_discarded(draft, request):
            return 0
    if task.kind == "speculative" or task.attempt > 1:
        info.workflow_task = None
        stamp = worker_stamp(draft, request)
        task = write_task_events(draft, replace(task, kind="normal"), identity=request.identity, worker_version=stamp)
    shown = info.search_attributes
    before = where(info) if is_versioned(info) or request.versioning_behavior else None
    add_event(draft, _completed_attributes(task, request))
    if before is not None and before != where(info):
        reschedule_activities(draft)
    if info.search_attributes is not shown:
        record_visibility(draft)
    return info.next_event_id - 1


def worker_stamp(draft: Draft, request: ws.RespondWorkflowTaskCompletedRequest) -> WorkerVersionStamp | None:
    """The worker's version as started events tell it; not for old versioning, which assigns no build."""
    stamp = request.worker_version_stamp if request.HasField("worker_version_stamp") else None
    return None if stamp is not None and stamp.use_versioning and not draft.info.assigned_build_id else stamp


def _is_discarded(draft: Draft, request: ws.RespondWorkflowTaskCompletedRequest) -> bool:
    """Whether a speculative task leaves no trace: the worker did nothing but reject updates, and can forget the events that
    the task showed it."""
    if request.commands or request.force_create_new_workflow_task:
        return False
    new_events = draft.info.next_event_id - (draft.info.previous_started_event_id + 2)
    if request.capabilities.discard_speculative_workflow_task_with_events:
        if new_events > DISCARD_EVENTS_LIMIT:
            return False
    elif new_events > 0:
        return False
    return all(message.body.Is(Rejection.DESCRIPTOR) for message in request.messages)


def _completed_attributes(
    task: WorkflowTask, request: ws.RespondWorkflowTaskCompletedRequest
) -> WorkflowTaskCompletedEventAttributes:
    attributes = WorkflowTaskCompletedEventAttributes(
        scheduled_event_id=task.scheduled_event_id,
        started_event_id=task.started_event_id,
        identity=request.identity,
        binary_checksum=request.binary_checksum,
        worker_version=request.worker_version_stamp if request.HasField("worker_version_stamp") else None,
        sdk_metadata=request.sdk_metadata if request.HasField("sdk_metadata") else None,
        metering_metadata=request.metering_metadata if request.HasField("metering_metadata") else None,
    )
    if request.HasField("deployment_options") or request.HasField("deployment"):
        _add_deployment(attributes, request)
    return attributes


def _add_deployment(
    attributes: WorkflowTaskCompletedEventAttributes, request: ws.RespondWorkflowTaskCompletedRequest
) -> None:
    """The worker's deployment, and the behavior it asks for: which an unversioned worker can't ask for."""
    options = request.deployment_options
    attributes.worker_deployment_name = options.deployment_name or request.deployment.series_name
    versioned = options.worker_versioning_mode == VERSIONED
    if versioned or not request.HasField("deployment_options"):
        attributes.versioning_behavior = request.versioning_behavior
        version = WorkerDeploymentVersion(
            deployment_name=options.deployment_name or request.deployment.series_name,
            build_id=options.build_id or request.deployment.build_id,
        )
        if version.build_id:
            attributes.deployment_version.CopyFrom(version)


def _set_sticky(draft: Draft, request: ws.RespondWorkflowTaskCompletedRequest, *, clear: bool) -> None:
    """The worker keeps the run cached behind its own queue, or it does not."""
    sticky = request.sticky_attributes
    if clear or not sticky.worker_task_queue.name:
        if draft.info.sticky_queue:
            clear_sticky(draft)
        return
    info = draft.info
    if transition_of(info) not in (None, poller_version(request.deployment_options)):
        return  # its next task is another version's
    info.sticky_queue = sticky.worker_task_queue.name
    timeout = sticky.schedule_to_start_timeout
    info.sticky_schedule_to_start = (
        timedelta(seconds=timeout.seconds, microseconds=timeout.nanos // 1_000)
        or draft.work.config.sticky_schedule_to_start
    )


def _check_history(draft: Draft) -> None:
    info = draft.info
    config = draft.work.config
    if info.closed_at is not None:
        return
    if info.next_event_id - 1 > config.history_events_limit:
        raise HistoryTooLarge("Workflow history count exceeds limit.")
    if info.history_size > config.history_bytes_limit:
        raise HistoryTooLarge("Workflow history size exceeds limit.")


# --- what follows


def _next_task(ctx: CommandContext, *, inline: bool, original_scheduled_at: datetime | None) -> StartedTask | None:
    """Schedule another task if there is reason to, and start it at once if the worker wants it in the answer."""
    draft, request = ctx.draft, ctx.request
    if draft.info.closed_at is not None:
        return None
    normal = request.force_create_new_workflow_task or len(draft.buffered) > 0 or ctx.activity_canceled_unstarted
    if transition_of(draft.info) is not None:  # it is to end soon, on a worker of the other version
        normal, inline = True, False
    if not normal:
        if not has_outgoing(draft):
            return None
        normal = not inline
    task = schedule_workflow_task(
        draft,
        kind="normal" if normal else "speculative",
        original_scheduled_at=original_scheduled_at,
        dispatch=not inline,
    )
    if task is None or not inline:
        return None
    task = start_task(
        draft,
        task,
        request_id=INLINE_REQUEST_ID,
        identity=request.identity,
        worker_version=worker_stamp(draft, request),
    )
    messages = send_messages(
        draft, started_event_id=task.started_event_id, again=not request.force_create_new_workflow_task
    )
    return StartedTask(info=draft.info, task=task, sticky=True, messages=messages)


def _start_eager(ctx: CommandContext) -> list[StartedActivity]:
    """Start the activities that the worker wants to run at once, if they and the run are still there."""
    draft = ctx.draft
    started: list[StartedActivity] = []
    if draft.info.closed_at is not None:
        return started
    for event in ctx.eager:
        item = draft.activities.get(event.event_id)
        if item is None:
            continue
        if draft.info.pause is not None:
            dispatch_activity(draft, item)
            continue
        item = start_activity(
            draft,
            item,
            request_id=ctx.work.new_run_id(),
            identity=ctx.identity,
        )
        started.append(StartedActivity(info=draft.info, item=item, scheduled_event=event))
    return started


# --- second transitions


def fail_completion(
    work: Workspace,
    request: ws.RespondWorkflowTaskCompletedRequest,
    token: TaskToken,
    *,
    failed: BadCommand,
) -> None:
    """Fail the task whose completion could not be carried out. One that keeps failing is left to its timeout, so that its
    worker does not spin. Raises NOT_FOUND as the completion itself."""
    draft = work.run(token.run_id)
    task = token_task(draft, token)
    for function in ON_TASK_FAILED:
        function(draft)
    if task.attempt > 1 and failed.cause != UNHANDLED:
        return
    fail_workflow_task(
        draft,
        cause=failed.cause,
        failure=failed.failure or server_failure(failed.message),
        identity=request.identity,
        binary_checksum=request.binary_checksum,
    )
    if failed.terminate:
        flush_buffered(draft)
        terminate_run(draft, reason=failed.message, identity=SERVER_IDENTITY)
    else:
        schedule_workflow_task(draft)


def end_over_limit(work: Workspace, token: TaskToken, *, reason: str) -> None:
    """Terminate the run whose history is over its limit."""
    draft = work.run(token.run_id)
    token_task(draft, token)
    terminate_run(draft, reason=reason, identity=SERVER_IDENTITY)
