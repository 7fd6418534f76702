"""The start of a workflow task: a worker gets it.

    start_workflow_task(work, request) -> StartedTask      Matching found a poller
    start_task(draft, task, ...) -> WorkflowTask           the start itself, also for a task returned in a response
    token_time(started_at) -> str

Source: upstream's service/history/api/recordworkflowtaskstarted and service/history/workflow/workflow_task_state_machine.go.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field
from msgspec.structs import replace
from temporalio.api.common.v1 import WorkerVersionStamp
from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.protocol.v1 import Message as ProtocolMessage
from temporalio.api.taskqueue.v1 import TaskQueue

from common.contracts.history import RecordWorkflowTaskStarted
from common.errors import TaskAlreadyStarted, TaskObsolete
from history.events import add_event
from history.records import ExecutionInfo, WorkflowTask
from history.state import Draft
from history.transitions.build_ids import binding, build_of, started_stamp
from history.transitions.deadlines import lower_deadline, workflow_task_deadline
from history.transitions.messages import send_messages
from history.transitions.suggestions import suggest_reasons
from history.transitions.task_events import started_attributes
from history.transitions.versions import begin_transition, check_directive, is_told, note_target
from history.transitions.visibility import record_visibility
from history.transitions.workflow_tasks import clear_sticky, write_task_events
from history.versioning import is_versioned, poller_version
from history.workspace import Workspace

INLINE_REQUEST_ID = "request-from-RespondWorkflowTaskCompleted"
"""Upstream's request id for a task that was started in the answer to the completion before it."""


class StartedTask(Struct, kw_only=True, frozen=True):
    """What the answer to a poll is made from, as the start left it."""

    info: ExecutionInfo
    """The run's state then; not to be changed."""
    task: WorkflowTask
    sticky: bool
    """The worker has the run cached and needs only the newest events."""
    messages: list[ProtocolMessage] = field(default_factory=list)
    """Updates that go out with the task."""
    redirected: bool = False
    """The start gave the run another build."""


def start_workflow_task(work: Workspace, request: RecordWorkflowTaskStarted) -> StartedTask:
    """Record that a poller got the task. Raises TaskObsolete or TaskAlreadyStarted: the delivery is to be dropped."""
    draft = work.find(request.run_id)
    if draft is None or draft.info.closed_at is not None:
        raise TaskObsolete("workflow execution already completed")
    task = draft.workflow_task
    if task is None or task.scheduled_event_id != request.scheduled_event_id:
        raise TaskObsolete("Workflow task not found.")
    if task.stamp != request.stamp:
        raise TaskObsolete("Workflow task stamp mismatch")
    poll = request.poll
    if task.started_event_id:
        if task.request_id != request.request_id:
            raise TaskAlreadyStarted("Workflow task already started.")
        return _started(draft, task)
    _check_queue(draft, poll.task_queue)
    task = draft.workflow_task
    assert task is not None
    version = poller_version(poll.deployment_options) if poll.HasField("deployment_options") else ""
    if version or is_versioned(draft.info):
        return _start_on_version(draft, task, request, version)
    stamp = started_stamp(poll) if poll.HasField("worker_version_capabilities") else None
    if draft.info.assigned_build_id or (stamp is not None and stamp.use_versioning):
        return _start_on_build(draft, task, request, stamp)
    task = start_task(draft, task, request_id=request.request_id, identity=poll.identity, worker_version=stamp)
    return _started(draft, task)


def _start_on_version(
    draft: Draft, task: WorkflowTask, request: RecordWorkflowTaskStarted, version: str
) -> StartedTask:
    """A run or a worker that has a worker deployment version. A worker of another one than the run's begins a transition; a
    speculative task leaves that to its completion."""
    poll = request.poll
    check_directive(draft.info, request.version_directive)
    told = note_target(draft.info, request.target_version, revision=request.revision)
    stamp = None if version or not poll.HasField("worker_version_capabilities") else started_stamp(poll)
    task = replace(task, target_changed=told)
    task = start_task(draft, task, request_id=request.request_id, identity=poll.identity, worker_version=stamp)
    if task.kind != "speculative" and begin_transition(draft, version, revision=request.revision):
        clear_sticky(draft)
    return _started(draft, task)


def _start_on_build(
    draft: Draft, task: WorkflowTask, request: RecordWorkflowTaskStarted, stamp: WorkerVersionStamp | None
) -> StartedTask:
    """By the older versioning: the run may get a build, or another one. A task without events gets them then."""
    info = draft.info
    poll = request.poll
    redirects, is_new = 0, False
    build_id = build_of(stamp)
    if build_id or not (info.sticky_queue and poll.task_queue.name == info.sticky_queue):
        found = binding(info, build_id=build_id, directive=request.version_directive)
        redirects = found.redirects
        is_new = bool(build_id) and build_id != info.assigned_build_id
    shown = info.search_attributes
    task = start_task(
        draft,
        task,
        request_id=request.request_id,
        identity=poll.identity,
        worker_version=stamp,
        redirects=redirects,
        write=is_new,
    )
    if info.search_attributes is not shown:
        record_visibility(draft)
    return replace(_started(draft, task), redirected=is_new and redirects > 0)


def _started(draft: Draft, task: WorkflowTask) -> StartedTask:
    messages = send_messages(draft, started_event_id=task.started_event_id, again=True)
    if task.kind == "speculative" and not messages:
        raise TaskObsolete("No messages for speculative workflow task.")
    return StartedTask(info=draft.info, task=task, sticky=bool(draft.info.sticky_queue), messages=messages)


def _check_queue(draft: Draft, polled: TaskQueue) -> None:
    """Which worker got the task: one at the normal queue ends the run's stickiness to another; a sticky queue that the
    run has left gets nothing."""
    sticky_queue = draft.info.sticky_queue
    if sticky_queue:
        if polled.name != sticky_queue:
            clear_sticky(draft)
    elif polled.kind == TaskQueueKind.TASK_QUEUE_KIND_STICKY:
        raise TaskObsolete("rejecting sticky poller because workflow has moved to normal queue")


def start_task(
    draft: Draft,
    task: WorkflowTask,
    *,
    request_id: str,
    identity: str,
    worker_version: WorkerVersionStamp | None = None,
    redirects: int = 0,
    write: bool = False,
) -> WorkflowTask:
    """Start the pending task for a worker. A transient or speculative one that was overtaken by events becomes normal, or one
    that is to be written: its events are written now."""
    info = draft.info
    now = draft.work.now
    reasons = suggest_reasons(draft)
    started = replace(
        task,
        started_at=now,
        request_id=request_id,
        identity=identity,
        history_size_bytes=info.history_size,
        suggest_continue_as_new=bool(reasons),
        suggest_reasons=reasons,
        build_id=worker_version.build_id if worker_version is not None else "",
        redirects=redirects,
        target_changed=task.target_changed or (is_versioned(info) and is_told(info)),
    )
    unwritten = task.attempt > 1 or task.kind == "speculative"
    if unwritten and not write and task.scheduled_event_id == info.next_event_id:
        started = replace(started, started_event_id=task.scheduled_event_id + 1)
        if task.kind == "speculative":
            draft.speculative_task = started
            return started
        info.workflow_task = started
    elif unwritten:
        info.workflow_task = draft.speculative_task = None
        info.task_failures = 0
        overtaken = replace(started, attempt=1, kind="normal", scheduled_at=now)
        started = write_task_events(draft, overtaken, identity=identity, worker_version=worker_version)
    else:
        attributes = started_attributes(
            started, scheduled_event_id=task.scheduled_event_id, identity=identity, worker_version=worker_version
        )
        add_event(draft, attributes)
        assert info.workflow_task is not None
        started = info.workflow_task
    timeout = workflow_task_deadline(info, started)
    lower_deadline(draft, timeout[0] if timeout else None)
    return started


def token_time(value: datetime) -> str:
    """How a token tells when its task was started."""
    return value.isoformat()
