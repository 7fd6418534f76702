"""Resetting a workflow: what the new run has, what it gets of what came later, and what becomes of the old one."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyExcludeType, ResetReapplyType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest, SignalWorkflowExecutionRequest

from common.contracts.history import ChildClosed
from common.errors import InvalidArgument, NotFound
from history.transitions.children import close_child, record_started
from history.transitions.reset import reset_workflow
from history.transitions.signals import signal_workflow
from history.workspace import Workspace
from tests.history.commands import complete_workflow, schedule_activity, start_timer
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, seconds
from tests.history.updating import Answers, answer, update, updated

Exclude = ResetReapplyExcludeType


def reset_request(event_id: int, *, run_id: str = "", **fields: Any) -> ResetWorkflowExecutionRequest:
    fields.setdefault("request_id", "reset")
    return ResetWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID, run_id=run_id),
        reason="because",
        workflow_task_finish_event_id=event_id,
        **fields,
    )


def reset(host: Host, event_id: int, **fields: Any) -> str:
    request = reset_request(event_id, **fields)
    return host.run(lambda work: reset_workflow(work, request, events={}))


def signal(host: Host, name: str = "s", request_id: str = "") -> None:
    request = SignalWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID),
        signal_name=name,
        request_id=request_id,
    )
    host.run(lambda work: signal_workflow(work, request))


def started(**fields: Any) -> Host:
    host = Host()
    host.start(**fields)
    return host


def test_a_running_workflow_begins_again_at_its_first_task() -> None:
    host = started()
    host.do(start_timer())
    old = host.info.run_id
    host.advance(5)
    new = reset(host, 4)
    assert new == host.info.run_id != old
    assert host.types(old)[-1] == "WORKFLOW_EXECUTION_TERMINATED"
    assert host.last(old).identity == "history-resetter"
    assert host.states[old].info.reset_to_run_id == new
    assert host.types() == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    failed = host.events[new][3].workflow_task_failed_event_attributes
    assert (failed.base_run_id, failed.new_run_id, failed.failure.message) == (old, new, "because")
    assert host.info.started_at == host.now and host.info.original_started_at == host.now - timedelta(seconds=5)
    host.do(complete_workflow())


def test_a_task_that_was_only_scheduled_is_started_for_the_failure() -> None:
    host = started()
    host.do()
    reset(host, 3)
    assert host.types()[2:] == ["WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_FAILED", "WORKFLOW_TASK_SCHEDULED"]


def test_the_request_is_applied_once() -> None:
    host = started()
    host.do()
    assert reset(host, 4) == reset(host, 4)
    assert reset(host, 4, request_id="another") != host.states[host.info.run_id].info.original_run_id


@pytest.mark.parametrize(
    ("operation", "kind"),
    [({"signal_workflow": {"signal_name": "s"}}, r"\*workflow\.PostResetOperation_SignalWorkflow_$"), ({}, "<nil>$")],
)
def test_what_can_not_be_done_after_a_reset_prevents_it(operation: dict[str, Any], kind: str) -> None:
    host = started()
    host.do()
    with pytest.raises(InvalidArgument, match=f"unsupported post reset operation: {kind}"):
        reset(host, 4, post_reset_operations=[operation])
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED"


@pytest.mark.parametrize(("event_id", "text"), [(1, "must be > 1"), (99, "must be > 1"), (5, "Can only reset")])
def test_only_the_end_of_a_task_can_be_reset_to(event_id: int, text: str) -> None:
    host = started()
    host.do(start_timer())
    with pytest.raises(InvalidArgument, match=text):
        reset(host, event_id)


def test_an_unknown_run_is_not_found() -> None:
    with pytest.raises(NotFound):
        reset(started(), 4, run_id="other")


def test_timers_and_activities_go_on() -> None:
    host = started()
    host.do(start_timer(seconds=60), schedule_activity(schedule_to_close=100))
    signal(host)
    host.do()
    host.advance(20)
    reset(host, 10)
    assert [task.event_id for task in host.transfer_tasks if task.run_id == host.info.run_id] == [6, 11]
    (item,) = host.state.activities.values()
    assert item.first_scheduled_at == host.now
    host.advance(41)
    assert "TIMER_FIRED" in host.types()


def test_run_and_execution_timeouts_count_anew() -> None:
    host = started(workflow_execution_timeout=seconds(100), workflow_run_timeout=seconds(60))
    host.do()
    host.advance(50)
    reset(host, 4)
    assert host.info.run_expires_at == host.now + timedelta(seconds=60)
    assert host.info.execution_expires_at == host.now + timedelta(seconds=100)
    host.advance(30)
    assert "WORKFLOW_EXECUTION_TIMED_OUT" not in host.types()
    host.advance(31)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_TIMED_OUT"


# --- what came later


def test_signals_are_applied_again_also_those_that_waited() -> None:
    host = started()
    host.do()
    signal(host, "first", "r1")
    task = host.poll()
    signal(host, "waiting")
    assert task.task.started_event_id
    reset(host, 4)
    names = [
        event.workflow_execution_signaled_event_attributes.signal_name
        for event in host.events[host.info.run_id]
        if event.HasField("workflow_execution_signaled_event_attributes")
    ]
    assert names == ["first", "waiting"]
    signal(host, "first", "r1")
    assert host.info.signal_count == 2


def test_later_runs_of_the_chain_are_applied_too() -> None:
    host = started()
    host.do()
    first = host.info.run_id
    signal(host, "a")
    host.do(command("continue_as_new_workflow_execution"))
    signal(host, "b")
    reset(host, 4, run_id=first)
    assert host.types().count("WORKFLOW_EXECUTION_SIGNALED") == 2


@pytest.mark.parametrize(
    "fields",
    [
        {"reset_reapply_exclude_types": [Exclude.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL]},
        {"reset_reapply_type": ResetReapplyType.RESET_REAPPLY_TYPE_NONE},
    ],
)
def test_signals_can_be_left_out(fields: dict[str, Any]) -> None:
    host = started()
    host.do()
    signal(host)
    reset(host, 4, **fields)
    assert "WORKFLOW_EXECUTION_SIGNALED" not in host.types()


def test_updates_are_admitted_again_and_reach_the_worker_as_events() -> None:
    host = started()
    host.do()
    updated(host)
    reset(host, 4)
    assert host.types()[4:] == ["WORKFLOW_EXECUTION_UPDATE_ADMITTED", "WORKFLOW_TASK_SCHEDULED"]
    assert host.state.updates["U"].state == "admitted" and host.info.updates_in_flight == 1
    joined = update(host)
    assert joined.ticket is not None and joined.delivery is None
    task = host.poll()
    assert not task.messages
    answer(host, task, Answers(task).accept().complete())
    accepted = host.events[host.info.run_id][-2].workflow_execution_update_accepted_event_attributes
    assert not accepted.HasField("accepted_request")
    assert host.state.updates["U"].state == "completed" and not host.state.admitted
    reset(host, 4, request_id="again")
    assert host.state.updates["U"].state == "admitted"


def test_updates_can_be_left_out() -> None:
    host = started()
    host.do()
    updated(host)
    reset(host, 4, reset_reapply_type=ResetReapplyType.RESET_REAPPLY_TYPE_SIGNAL)
    assert not host.state.updates


# --- children


def child(host: Host) -> HistoryEvent:
    host.do(command("start_child_workflow_execution", workflow_id="child", workflow_type={"name": "Child"}))
    return host.events[host.info.run_id][-1]


def record(host: Host, initiated: HistoryEvent, run_id: str) -> str:
    return host.run(lambda work: record_started(work, run_id, initiated=initiated, child_run_id="child-run"))


def child_end(host: Host, initiated: HistoryEvent, run_id: str) -> str:
    event = HistoryEvent(event_type="EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED")
    request = ChildClosed(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        run_id=run_id,
        initiated_event_id=initiated.event_id,
        child=WorkflowExecution(workflow_id="child", run_id="child-run"),
        child_first_run_id="child-run",
        close_event=event,
    )
    return host.run(lambda work: close_child(work, request))


def test_a_running_child_becomes_the_new_runs() -> None:
    host = started()
    initiated = child(host)
    old = host.info.run_id
    record(host, initiated, old)
    host.do()
    request_id = host.state.children[5].create_request_id
    new = reset(host, 9)
    item = host.state.children[5]
    assert (item.run_id, item.create_request_id) == ("child-run", request_id)
    assert [task.kind for task in host.transfer_tasks if task.run_id == new] == ["startChild", "workflowTask"]
    assert child_end(host, initiated, old) == new
    assert child_end(host, initiated, new) == ""
    assert host.types()[-1] == "CHILD_WORKFLOW_EXECUTION_COMPLETED"


def test_what_became_of_a_child_later_is_applied_again() -> None:
    host = started()
    initiated = child(host)
    signal(host)
    host.do()
    old = host.info.run_id
    record(host, initiated, old)
    child_end(host, initiated, old)
    reset(host, 9)
    assert host.types()[-3:] == [
        "CHILD_WORKFLOW_EXECUTION_STARTED",
        "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    end = host.events[host.info.run_id][-2].child_workflow_execution_completed_event_attributes
    assert end.started_event_id == host.events[host.info.run_id][-3].event_id
    assert not host.state.children


# --- runs that have closed


def test_a_closed_run_is_reset_and_stays_as_it_is() -> None:
    host = started()
    host.do()
    signal(host)
    host.do(complete_workflow())
    old = host.info.run_id
    before = host.types(old)
    reset(host, 8, run_id=old)
    assert host.types(old) == before
    assert host.types()[-2:] == ["WORKFLOW_TASK_FAILED", "WORKFLOW_TASK_SCHEDULED"]


def test_events_known_ahead_are_not_asked_for() -> None:
    host = started()
    host.do(start_timer())
    run_id = host.info.run_id
    known = list(host.events[run_id])

    def transition(work: Workspace) -> str:
        draft = work.run(run_id)
        asked: list[int] = []
        draft._event_source = lambda event_id: asked.append(event_id) or host.events[run_id][event_id - 1]  # type: ignore[func-returns-value]
        new = reset_workflow(work, reset_request(4), events={run_id: known})
        assert not asked
        return new

    assert host.run(transition) == host.info.run_id
