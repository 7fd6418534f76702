"""Cancel requests, terminating, deleting: which run they act on, and that repeating them is harmless."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflowservice import v1 as ws

from common.errors import NotFound
from history.records import ParentInfo
from history.transitions.cancel import request_cancel
from history.transitions.delete import delete_workflow
from history.transitions.terminate import terminate_workflow
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, payloads, start_request

PARENT = ParentInfo(namespace="default", namespace_id="ns-id", workflow_id="parent", run_id="p", initiated_event_id=5)
TERMINATED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_TERMINATED


def execution(run_id: str) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=WORKFLOW_ID, run_id=run_id)


def cancel(host: Host, *, run_id: str = "", **fields: Any) -> None:
    request = ws.RequestCancelWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_execution=execution(run_id), identity="client", **fields
    )
    host.run(lambda work: request_cancel(work, request))


def terminate(host: Host, *, run_id: str = "", parent: WorkflowExecution | None = None, **fields: Any) -> None:
    request = ws.TerminateWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_execution=execution(run_id), identity="client", **fields
    )
    host.run(lambda work: terminate_workflow(work, request, parent=parent))


def delete(host: Host, *, run_id: str = "") -> None:
    host.run(lambda work: delete_workflow(work, run_id=run_id))


def chain(host: Host) -> tuple[str, str]:
    """r1 continued as r2."""
    first = host.start()
    host.do(command("continue_as_new_workflow_execution"))
    return first.run_id, host.info.run_id


def test_b05_a_cancel_request_is_written_once() -> None:
    host = Host()
    host.start()
    cancel(host, reason="enough", request_id="c1")
    cancel(host, reason="again", request_id="c2")
    assert host.types().count("WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1
    attributes = host.last()
    assert (attributes.cause, attributes.identity) == ("enough", "client")
    assert (host.info.cancel_requested, host.info.cancel_request_id) == (True, "c1")


def test_b05_cancelling_a_closed_run_succeeds_and_changes_nothing() -> None:
    host = Host()
    host.start()
    host.do(command("complete_workflow_execution"))
    before = host.types()
    cancel(host)
    assert host.types() == before


@pytest.mark.parametrize("act", [cancel, terminate, delete])
def test_b05_unknown_executions_are_not_found(act: Any) -> None:
    host = Host()
    with pytest.raises(NotFound, match=r"^workflow not found for ID: wf$"):
        act(host)
    host.start()
    with pytest.raises(NotFound, match=r'^workflow execution not found for workflow ID "wf" and run ID "nope"$'):
        act(host, run_id="nope")


def test_b05_terminating_a_closed_run_is_not_found() -> None:
    host = Host()
    host.start()
    terminate(host)
    with pytest.raises(NotFound, match=r"^workflow execution already completed$"):
        terminate(host)


def test_a_cancel_request_does_not_wait_for_a_start_delay() -> None:
    host = Host()
    host.start(workflow_start_delay=Duration(seconds=60))
    cancel(host)
    assert host.types()[-2:] == ["WORKFLOW_EXECUTION_CANCEL_REQUESTED", "WORKFLOW_TASK_SCHEDULED"]


def test_a_worker_obeys_a_cancel_request() -> None:
    host = Host()
    host.start()
    cancel(host)
    host.do(command("cancel_workflow_execution", details=payloads("bye")))
    assert host.types()[-1] == "WORKFLOW_EXECUTION_CANCELED"
    assert host.last().details == payloads("bye")
    assert host.info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED


@pytest.mark.parametrize("act", [cancel, terminate])
def test_b06_a_first_run_id_means_the_chain(act: Any) -> None:
    host = Host()
    first, second = chain(host)
    act(host, run_id=first, first_execution_run_id=first)
    kind = "TERMINATED" if act is terminate else "CANCEL_REQUESTED"
    assert f"WORKFLOW_EXECUTION_{kind}" in host.types(second)
    assert f"WORKFLOW_EXECUTION_{kind}" not in host.types(first)


@pytest.mark.parametrize("act", [cancel, terminate])
def test_b06_another_chains_first_run_id_is_not_found(act: Any) -> None:
    host = Host()
    host.start()
    with pytest.raises(NotFound, match=r"^workflow execution not found$"):
        act(host, first_execution_run_id="another")


def test_terminating_fails_the_started_task_and_keeps_what_it_held_back() -> None:
    host = Host()
    host.start()
    host.poll()
    cancel(host)
    terminate(host, reason="stop", details=payloads("d"))
    assert host.types()[-3:] == [
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_CANCEL_REQUESTED",
        "WORKFLOW_EXECUTION_TERMINATED",
    ]
    assert (host.last().reason, host.last().details, host.last().identity) == ("stop", payloads("d"), "client")
    assert host.info.status == TERMINATED
    assert host.info.workflow_task is None
    assert host.info.deadline_at is None
    assert host.visibility[host.info.run_id].status == TERMINATED
    assert host.visibility[host.info.run_id].history_length == len(host.types())


def test_terminating_drops_what_the_run_waits_for() -> None:
    host = Host()
    host.start()
    host.do(
        command("start_timer", timer_id="t", start_to_fire_timeout=Duration(seconds=60)),
        command(
            "schedule_activity_task",
            activity_id="a",
            activity_type={"name": "A"},
            task_queue={"name": "q"},
            start_to_close_timeout=Duration(seconds=9),
        ),
    )
    assert len(host.timer_tasks) == 1
    terminate(host)
    assert (host.state.timers, host.state.activities, host.timer_tasks) == ({}, {}, {})


def test_terminating_as_a_parent_needs_to_be_it() -> None:
    host = Host()
    host.start_with(start_request(), parent=PARENT)
    with pytest.raises(NotFound, match="workflow parent does not match"):
        terminate(host, parent=WorkflowExecution(workflow_id="stranger", run_id="p"))
    terminate(host, parent=WorkflowExecution(workflow_id="parent", run_id="p"))
    assert host.info.status == TERMINATED


def test_deleting_a_closed_run_removes_everything() -> None:
    host = Host()
    run_id = host.start().run_id
    host.do(command("complete_workflow_execution"))
    delete(host)
    assert (host.states, host.events, host.current) == ({}, {}, None)
    assert host.visibility[run_id].delete
    with pytest.raises(NotFound):
        delete(host)


def test_deleting_a_running_run_ends_it_first() -> None:
    host = Host()
    run_id = host.start().run_id
    host.poll()
    delete(host)
    assert host.states == {}
    assert host.visibility[run_id].delete


def test_deleting_a_child_waits_until_its_parent_has_heard() -> None:
    host = Host()
    host.start_with(start_request(), parent=PARENT)
    delete(host)
    assert host.info.status == TERMINATED
    assert [task.kind for task in host.transfer_tasks] == ["deleteExecution"]


def test_deleting_an_older_run_leaves_the_current_one() -> None:
    host = Host()
    first, second = chain(host)
    delete(host, run_id=first)
    assert list(host.states) == [second]
    assert host.current is not None
    assert host.current.run_id == second
