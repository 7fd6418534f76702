"""Child workflows in their parent's history and their own."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, RetryPolicy, SearchAttributes, WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    ParentClosePolicy,
    RetryState,
    StartChildWorkflowExecutionFailedCause,
    WorkflowIdReusePolicy,
    WorkflowTaskFailedCause,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest

from common.contracts.history import ChildClosed, OrphanedChild
from common.errors import NotFound
from history.apply.children import BUFFERED_EVENT_ID
from history.commands import BadCommand
from history.config import HistoryConfig
from history.records import ParentInfo
from history.transitions.children import (
    close_child,
    drop_children,
    record_start_failed,
    record_started,
    settle_orphan,
    start_child_run,
)
from history.transitions.signals import signal_workflow
from tests.history.commands import complete_workflow
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, payloads, seconds, start_request

TERMINATE = ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE
REQUEST_CANCEL = ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL
ABANDON = ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON


def start_child(workflow_id: str = "child", **attributes: Any) -> Command:
    attributes.setdefault("workflow_type", {"name": "Child"})
    return command("start_child_workflow_execution", workflow_id=workflow_id, **attributes)


def parent_with_child(**attributes: Any) -> tuple[Host, HistoryEvent]:
    """A parent that has just initiated its child, and the initiated event."""
    host = Host()
    host.start()
    host.do(start_child(**attributes))
    return host, host.events[host.info.run_id][-1]


def record(host: Host, initiated: HistoryEvent, child_run_id: str = "child-run") -> str:
    run_id = host.info.run_id
    return host.run(lambda work: record_started(work, run_id, initiated=initiated, child_run_id=child_run_id))


def closed(host: Host, initiated: HistoryEvent, event: HistoryEvent, **fields: Any) -> ChildClosed:
    fields.setdefault("child_first_run_id", "child-run")
    return ChildClosed(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        run_id=host.info.run_id,
        initiated_event_id=initiated.event_id,
        child=WorkflowExecution(workflow_id="child", run_id="last-run"),
        close_event=event,
        **fields,
    )


def completed(result: str = "done") -> HistoryEvent:
    event = HistoryEvent(event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED)
    event.workflow_execution_completed_event_attributes.result.CopyFrom(payloads(result))
    return event


def test_a_child_is_initiated_started_and_ends() -> None:
    host, initiated = parent_with_child(input=payloads("in"), workflow_run_timeout=seconds(30))
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    assert (attributes.workflow_id, attributes.task_queue.name, attributes.parent_close_policy) == (
        "child",
        "queue",
        TERMINATE,
    )
    assert attributes.workflow_task_timeout == seconds(10)
    assert [task.kind for task in host.transfer_tasks][-1] == "startChild"
    assert record(host, initiated) == "recorded"
    assert record(host, initiated) == "recorded"
    assert host.types()[-2:] == ["CHILD_WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    host.do()
    assert host.run(lambda work: close_child(work, closed(host, initiated, completed()))) == ""
    end = host.events[host.info.run_id][-2].child_workflow_execution_completed_event_attributes
    assert (end.initiated_event_id, end.started_event_id, end.workflow_execution.run_id) == (5, 6, "last-run")
    assert end.result == payloads("done")
    assert not host.state.children


@pytest.mark.parametrize("kind", ["COMPLETED", "FAILED", "TIMED_OUT", "CANCELED", "TERMINATED"])
def test_each_end_of_a_child_has_its_event(kind: str) -> None:
    host, initiated = parent_with_child()
    record(host, initiated)
    event = HistoryEvent(event_type=EventType.Value(f"EVENT_TYPE_WORKFLOW_EXECUTION_{kind}"))
    if kind == "FAILED":
        event.workflow_execution_failed_event_attributes.failure.CopyFrom(Failure(message="no"))
        event.workflow_execution_failed_event_attributes.retry_state = RetryState.RETRY_STATE_TIMEOUT
    host.run(lambda work: close_child(work, closed(host, initiated, event)))
    assert f"CHILD_WORKFLOW_EXECUTION_{kind}" in host.types()
    assert not host.state.children


def test_a_child_that_ends_before_its_start_is_recorded_has_both_events() -> None:
    host, initiated = parent_with_child()
    host.run(lambda work: close_child(work, closed(host, initiated, completed())))
    assert host.types()[5:7] == ["CHILD_WORKFLOW_EXECUTION_STARTED", "CHILD_WORKFLOW_EXECUTION_COMPLETED"]
    assert record(host, initiated) == "ended"


def test_while_a_task_is_started_a_childs_events_wait_in_order() -> None:
    host, initiated = parent_with_child()
    host.run(lambda work: signal_workflow(work, signal()))
    task = host.poll()
    record(host, initiated)
    assert host.state.children[5].started_event_id == BUFFERED_EVENT_ID
    host.run(lambda work: close_child(work, closed(host, initiated, completed())))
    host.complete(task)
    assert host.types()[-3:] == [
        "CHILD_WORKFLOW_EXECUTION_STARTED",
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    end = host.events[host.info.run_id][-2].child_workflow_execution_completed_event_attributes
    assert end.started_event_id == host.events[host.info.run_id][-3].event_id


def test_a_started_event_that_waited_gets_its_id() -> None:
    host, initiated = parent_with_child()
    host.run(lambda work: signal_workflow(work, signal()))
    task = host.poll()
    record(host, initiated)
    host.complete(task)
    assert host.state.children[5].started_event_id == host.events[host.info.run_id][-2].event_id


def test_a_start_that_failed_ends_the_wait() -> None:
    host, initiated = parent_with_child()
    run_id = host.info.run_id
    cause = StartChildWorkflowExecutionFailedCause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
    for _ in range(2):
        host.run(lambda work: record_start_failed(work, run_id, initiated=initiated, cause=cause))
    assert host.types()[5:] == ["START_CHILD_WORKFLOW_EXECUTION_FAILED", "WORKFLOW_TASK_SCHEDULED"]
    assert not host.state.children


def test_another_childs_end_is_not_this_ones() -> None:
    host, initiated = parent_with_child()
    record(host, initiated)
    with pytest.raises(NotFound):
        host.run(lambda work: close_child(work, closed(host, initiated, completed(), child_first_run_id="other")))


def test_a_closed_parent_keeps_the_children_its_policy_concerns() -> None:
    host, initiated = parent_with_child(parent_close_policy=TERMINATE)
    record(host, initiated)
    host.do(start_child("abandoned", parent_close_policy=ABANDON))
    host.run(lambda work: signal_workflow(work, signal()))
    host.do(complete_workflow())
    assert [child.workflow_id for child in host.state.children.values()] == ["child"]
    assert host.transfer_tasks[-1].kind == "closeExecution"
    with pytest.raises(NotFound):
        host.run(lambda work: close_child(work, closed(host, initiated, completed())))
    assert record(host, initiated) == "closed"
    run_id = host.info.run_id
    host.run(lambda work: drop_children(work, run_id))
    assert not host.state.children


# --- the command


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"workflow_id": ""}, "Required field WorkflowId is not set"),
        ({"workflow_type": {"name": ""}}, "Required field WorkflowType is not set"),
        ({"workflow_id": "ü" * 501}, "exceeds length limit"),
        ({"workflow_id": "\ufdd0activity\ufdd0x"}, "is reserved"),
        ({"workflow_run_timeout": seconds(-1)}, "Invalid WorkflowRunTimeout"),
        ({"cron_schedule": "nonsense"}, "invalid CronSchedule"),
        ({"retry_policy": RetryPolicy(backoff_coefficient=0.5)}, "invalid WorkflowRetryPolicy"),
        ({"task_queue": {"name": "/_sys/x"}}, "invalid TaskQueue"),
        ({"namespace": "other"}, "cross namespace commands are not allowed"),
    ],
)
def test_a_bad_command_fails_the_task(attributes: dict[str, Any], text: str) -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand, match=text) as caught:
        host.do(start_child(**attributes))
    assert caught.value.cause == (
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_START_CHILD_EXECUTION_ATTRIBUTES
    )
    assert caught.value.message.startswith("BadStartChildExecutionAttributes: ")


def test_an_unknown_search_attribute_has_its_own_cause() -> None:
    host = Host()
    host.start()
    unknown = SearchAttributes(indexed_fields={"Nope": Payload(data=b"1")})
    with pytest.raises(BadCommand) as caught:
        host.do(start_child(search_attributes=unknown))
    assert caught.value.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES


def test_pending_children_are_limited() -> None:
    host = Host(config=HistoryConfig(pending_children_limit=1))
    host.start()
    with pytest.raises(BadCommand) as caught:
        host.do(start_child("a"), start_child("b"))
    assert caught.value.cause == (
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_CHILD_WORKFLOWS_LIMIT_EXCEEDED
    )


def test_defaults_and_caps_of_the_command() -> None:
    _, initiated = parent_with_child(
        workflow_execution_timeout=seconds(60),
        workflow_task_timeout=seconds(500),
        retry_policy=RetryPolicy(maximum_attempts=3),
    )
    attributes = initiated.start_child_workflow_execution_initiated_event_attributes
    assert attributes.workflow_run_timeout == seconds(60)
    assert attributes.workflow_task_timeout == seconds(60)
    assert attributes.retry_policy.initial_interval == seconds(1)
    assert attributes.workflow_id_reuse_policy == WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
    assert not attributes.HasField("memo")


# --- the child's own run


def child_host(**fields: Any) -> Host:
    host = Host()
    parent = ParentInfo(namespace=NAMESPACE, workflow_id="parent", run_id="parent-run", initiated_event_id=5)
    host.start_with(start_request(**fields), parent=parent, root=WorkflowExecution(workflow_id="parent", run_id="p"))
    return host


def test_a_child_begins_when_its_parent_knows_of_it() -> None:
    host = child_host()
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    run_id = host.info.run_id
    for _ in range(2):
        host.run(lambda work: start_child_run(work, run_id))
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    host.do()
    host.run(lambda work: start_child_run(work, run_id))
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED"


def test_a_childs_cron_schedule_delays_its_first_task() -> None:
    host = child_host(cron_schedule="@every 60s")
    run_id = host.info.run_id
    host.run(lambda work: start_child_run(work, run_id))
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    host.advance(timedelta(seconds=61))
    assert host.types()[-1] == "WORKFLOW_TASK_SCHEDULED"


@pytest.mark.parametrize(
    ("policy", "events"),
    [
        (ABANDON, ["WORKFLOW_TASK_SCHEDULED"]),
        (TERMINATE, ["WORKFLOW_EXECUTION_TERMINATED"]),
        (REQUEST_CANCEL, ["WORKFLOW_EXECUTION_CANCEL_REQUESTED", "WORKFLOW_TASK_SCHEDULED"]),
    ],
)
def test_an_orphan_is_not_left_half_way(policy: ParentClosePolicy.ValueType, events: list[str]) -> None:
    host = child_host()
    orphan = OrphanedChild(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        start_request_id="start",
        parent=WorkflowExecution(workflow_id="parent", run_id="parent-run"),
        policy=policy,
    )
    for _ in range(2):
        host.run(lambda work: settle_orphan(work, orphan))
    assert host.types()[1:] == events


def test_a_workflow_of_another_start_is_no_orphan() -> None:
    host = child_host()
    orphan = OrphanedChild(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        start_request_id="another",
        parent=WorkflowExecution(),
        policy=TERMINATE,
    )
    host.run(lambda work: settle_orphan(work, orphan))
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]


def signal(name: str = "s", request_id: str = "") -> SignalWorkflowExecutionRequest:
    return SignalWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID),
        signal_name=name,
        request_id=request_id,
    )
