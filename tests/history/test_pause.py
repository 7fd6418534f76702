"""Pausing workflows and activities, resetting activities, changing options."""

from datetime import UTC, timedelta
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.activity.v1 import ActivityOptions
from temporalio.api.common.v1 import Priority, RetryPolicy, WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState, VersioningBehavior
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflow.v1 import VersioningOverride, WorkflowExecutionOptions
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordActivityTaskStarted
from common.errors import FailedPrecondition, InvalidArgument, NotFound, TaskObsolete
from history.api.describe_workflow_execution import versioning_info
from history.api.pending_activities import activity_state, pending_activity
from history.records import ActivityItem
from history.transitions.activities import StartedActivity, attempt_failed, start_activity_task
from history.transitions.activity_changes import (
    pause_activities,
    reset_activities,
    unpause_activities,
    update_activity_options,
)
from history.transitions.options import update_options
from history.transitions.pause import pause_workflow, unpause_workflow
from history.workspace import Workspace
from tests.history.commands import complete_workflow, retry_policy, schedule_activity
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, seconds
from tests.history.test_reset import signal
from tests.history.updating import update

EXECUTION = WorkflowExecution(workflow_id=WORKFLOW_ID)
State = PendingActivityState


def pause(host: Host, request_id: str = "p") -> None:
    request = ws.PauseWorkflowExecutionRequest(workflow_id=WORKFLOW_ID, reason="why", request_id=request_id)
    host.run(lambda work: pause_workflow(work, request))


def unpause(host: Host) -> None:
    request = ws.UnpauseWorkflowExecutionRequest(workflow_id=WORKFLOW_ID)
    host.run(lambda work: unpause_workflow(work, request))


def idle(*commands: Any) -> Host:
    host = Host()
    host.start()
    host.do(*commands)
    return host


# --- workflows


def test_a_paused_workflow_gets_no_tasks() -> None:
    host = idle()
    pause(host)
    pause(host)
    assert host.current is not None and host.current.status == host.info.status == 8
    assert "Workflow:wf" in host.info.search_attributes["TemporalPauseInfo"].data.decode()
    signal(host)
    assert host.types()[4:] == ["WORKFLOW_EXECUTION_PAUSED", "WORKFLOW_EXECUTION_SIGNALED"]
    assert host.events[host.info.run_id][4].worker_may_ignore
    with pytest.raises(FailedPrecondition, match="already paused"):
        pause(host, "another")
    with pytest.raises(FailedPrecondition, match="paused"):
        update(host)
    unpause(host)
    assert host.types()[-2:] == ["WORKFLOW_EXECUTION_UNPAUSED", "WORKFLOW_TASK_SCHEDULED"]
    assert "TemporalPauseInfo" not in host.info.search_attributes
    host.do(complete_workflow())
    with pytest.raises(NotFound):
        pause(host)


def test_a_task_that_waits_fails_and_one_that_is_started_may_finish() -> None:
    host = Host()
    host.start()
    pause(host)
    assert host.types()[2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_EXECUTION_PAUSED"]
    unpause(host)
    task = host.poll()
    pause(host)
    host.complete(task, schedule_activity())
    assert host.types()[-2:] == ["ACTIVITY_TASK_SCHEDULED", "WORKFLOW_EXECUTION_PAUSED"]
    assert not [task for task in host.transfer_tasks if task.kind == "activityTask"]
    unpause(host)
    assert [task.kind for task in host.transfer_tasks[-2:]] == ["activityTask", "workflowTask"]


def test_only_a_paused_workflow_is_unpaused() -> None:
    with pytest.raises(FailedPrecondition, match="not paused"):
        unpause(idle())


# --- activities


def change(host: Host, transition: Any, request: Any, **more: Any) -> Any:
    return host.run(lambda work: transition(work, request, **more))


def pause_activity(host: Host, request_id: str = "p", **which: str) -> None:
    which = which or {"id": "a"}
    request = ws.PauseActivityRequest(execution=EXECUTION, identity="me", reason="why", request_id=request_id, **which)
    change(host, pause_activities, request)


def unpause_activity(host: Host, jitter: float = 0, **fields: Any) -> None:
    request = ws.UnpauseActivityRequest(execution=EXECUTION, id="a", **fields)
    change(host, unpause_activities, request, jitter=timedelta(seconds=jitter))


def item_of(host: Host) -> ActivityItem:
    (item,) = host.state.activities.values()
    return item


def begin(host: Host, stamp: int | None = None) -> StartedActivity:
    item = item_of(host)
    request = RecordActivityTaskStarted(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        run_id=host.info.run_id,
        scheduled_event_id=item.scheduled_event_id,
        attempt=item.attempt,
        stamp=item.stamp if stamp is None else stamp,
        request_id=f"poll-{item.attempt}-{item.stamp}",
        poll=ws.PollActivityTaskQueueRequest(identity="worker"),
    )
    return host.run(lambda work: start_activity_task(work, request))


def fail(host: Host) -> None:
    def transition(work: Workspace) -> None:
        draft = work.run()
        (item,) = draft.activities.values()
        attempt_failed(draft, item, failure=Failure(message="no"), identity="worker")

    host.run(transition)


def with_activity(**fields: Any) -> Host:
    fields.setdefault("retry", retry_policy(initial=10))
    return idle(schedule_activity(**fields))


def test_a_scheduled_activity_is_paused_and_its_delivery_obsolete() -> None:
    host = with_activity()
    pause_activity(host)
    assert activity_state(item_of(host)) == State.PENDING_ACTIVITY_STATE_PAUSED
    assert host.info.search_attributes["TemporalPauseInfo"].data == b'["property:activityType=Act"]'
    with pytest.raises(TaskObsolete):
        begin(host, stamp=0)
    pause_activity(host)
    with pytest.raises(FailedPrecondition, match="already paused"):
        pause_activity(host, "another")
    unpause_activity(host)
    assert host.transfer_tasks[-1].kind == "activityTask" and host.transfer_tasks[-1].stamp == item_of(host).stamp
    begin(host)
    assert "TemporalPauseInfo" not in host.info.search_attributes


def test_a_running_activity_is_paused_once_its_attempt_is_over() -> None:
    host = with_activity()
    begin(host)
    pause_activity(host, type="Act")
    assert activity_state(item_of(host)) == State.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED
    fail(host)
    assert activity_state(item_of(host)) == State.PENDING_ACTIVITY_STATE_PAUSED
    assert item_of(host).attempt == 2 and not host.timer_tasks
    unpause_activity(host, reset_attempts=True, jitter=5)
    assert item_of(host).attempt == 1
    host.advance(4)
    assert host.transfer_tasks[-1].attempt == 1 and item_of(host).retry_at is not None
    host.advance(2)
    assert item_of(host).retry_at is None
    begin(host)


def test_unpausing_one_that_is_not_paused_changes_nothing() -> None:
    host = with_activity()
    before = item_of(host)
    unpause_activity(host)
    assert item_of(host) == before


def test_a_reset_begins_the_first_attempt_at_once() -> None:
    host = with_activity()
    begin(host)
    fail(host)
    assert item_of(host).attempt == 2 and item_of(host).retry_at is not None
    change(host, reset_activities, ws.ResetActivityRequest(execution=EXECUTION, match_all=True), jitter=timedelta())
    item = item_of(host)
    assert (item.attempt, item.retry_at, item.last_failure) == (1, None, None)
    begin(host)
    change(host, reset_activities, ws.ResetActivityRequest(execution=EXECUTION, id="a"), jitter=timedelta())
    assert item_of(host).reset_requested


def test_a_paused_activity_stays_paused_if_its_reset_says_so() -> None:
    host = with_activity()
    pause_activity(host)
    request = ws.ResetActivityRequest(execution=EXECUTION, id="a", keep_paused=True)
    change(host, reset_activities, request, jitter=timedelta())
    assert item_of(host).paused_at is not None
    request = ws.ResetActivityRequest(execution=EXECUTION, id="a")
    change(host, reset_activities, request, jitter=timedelta())
    assert item_of(host).paused_at is None and host.transfer_tasks[-1].kind == "activityTask"


def test_an_unknown_activity_is_not_found() -> None:
    host = with_activity()
    with pytest.raises(NotFound):
        pause_activity(host, id="b")
    with pytest.raises(NotFound):
        pause_activity(host, type="Other")


def options_request(paths: list[str], **options: Any) -> ws.UpdateActivityOptionsRequest:
    return ws.UpdateActivityOptionsRequest(
        execution=EXECUTION,
        id="a",
        activity_options=ActivityOptions(**options),
        update_mask=FieldMask(paths=paths),
    )


def test_changed_options_forget_the_failure_but_not_when_the_last_attempt_may_begin() -> None:
    host = with_activity(retry=retry_policy(initial=10), schedule_to_close=100)
    begin(host)
    fail(host)
    expires = item_of(host).first_scheduled_at + timedelta(seconds=100)
    pause_activity(host)
    assert item_of(host).last_failure is not None
    change(
        host,
        update_activity_options,
        options_request(["schedule_to_close_timeout"], schedule_to_close_timeout=seconds(900)),
    )
    item = item_of(host)
    assert (item.last_failure, item.retry_expires_at) == (None, expires)
    shown = pending_activity(item, now=host.now)
    assert shown.expiration_time.ToDatetime(UTC) == expires and not shown.HasField("last_failure")


def test_options_count_from_the_next_attempt_on_and_can_be_restored() -> None:
    host = with_activity(retry=retry_policy(initial=10, types=("Fatal",)))
    begin(host)
    fail(host)
    request = options_request(
        ["retry_policy.initial_interval", "startToCloseTimeout", "task_queue.name"],
        retry_policy=RetryPolicy(initial_interval=seconds(2)),
        start_to_close_timeout=seconds(3),
        task_queue={"name": "other"},
    )
    options = change(host, update_activity_options, request)
    item = item_of(host)
    assert (options.start_to_close_timeout, item.start_to_close) == (seconds(3), timedelta(seconds=3))
    assert item.task_queue == "other" and item.retry_policy is not None
    assert list(item.retry_policy.non_retryable_error_types) == ["Fatal"]
    assert item.retry_at == host.now + timedelta(seconds=4)
    host.advance(4)
    assert host.transfer_tasks[-1].task_queue == "other"
    request = ws.UpdateActivityOptionsRequest(execution=EXECUTION, id="a", restore_original=True)
    assert change(host, update_activity_options, request).task_queue.name == "queue"
    assert item_of(host).task_queue == "queue"


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (options_request(["retry_policy.maximum_attempts"]), "RetryPolicy is not provided"),
        (options_request(["start_to_close_timeout"]), "StartToCloseTimeout or ScheduleToCloseTimeout must be set"),
        (options_request(["task_queue.name"], task_queue={"name": ""}), "missing task queue name"),
        (options_request(["heartbeat_timeout"], heartbeat_timeout=seconds(-1)), "invalid HeartbeatTimeout"),
        (ws.UpdateActivityOptionsRequest(execution=EXECUTION, id="a"), "ActivityOptions are not provided"),
    ],
)
def test_options_that_do_not_fit_are_refused(request_: ws.UpdateActivityOptionsRequest, text: str) -> None:
    host = with_activity()
    with pytest.raises(InvalidArgument, match=text):
        change(host, update_activity_options, request_)


# --- options of workflows


def options(host: Host, paths: list[str], **fields: Any) -> WorkflowExecutionOptions:
    request = ws.UpdateWorkflowExecutionOptionsRequest(
        workflow_execution=EXECUTION,
        workflow_execution_options=WorkflowExecutionOptions(**fields),
        update_mask=FieldMask(paths=paths),
    )
    return change(host, update_options, request)


def test_options_of_a_workflow_change_with_an_event_if_they_differ() -> None:
    host = idle()
    override = VersioningOverride(auto_upgrade=True)
    for _ in range(2):
        assert options(host, ["versioning_override"], versioning_override=override).versioning_override == override
    assert host.types()[4:] == ["WORKFLOW_EXECUTION_OPTIONS_UPDATED"]
    assert options(host, ["priority.priority_key"], priority=Priority(priority_key=3)).priority.priority_key == 3
    assert not options(host, ["versioningOverride"]).HasField("versioning_override")
    assert host.info.versioning_override is None and host.info.priority == Priority(priority_key=3)


def test_a_run_that_is_to_upgrade_automatically_is_shown_so() -> None:
    host = idle()
    before = host.info.search_attributes
    assert before["BuildIds"].data == b'["unversioned"]'
    options(host, ["versioning_override"], versioning_override=VersioningOverride(auto_upgrade=True))
    shown = host.info.search_attributes
    assert "BuildIds" not in shown and shown["TemporalWorkflowVersioningBehavior"].data == b'"AutoUpgrade"'
    info = versioning_info(host.info)
    assert info.versioning_override.behavior == VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE
    options(host, ["versioning_override"])
    assert host.info.search_attributes == before


def test_parts_of_an_override_can_not_be_changed() -> None:
    host = idle()
    with pytest.raises(InvalidArgument, match="partial updates"):
        options(host, ["versioning_override.pinned"])
    with pytest.raises(InvalidArgument, match="updated together"):
        options(host, ["versioning_override.behavior"])
