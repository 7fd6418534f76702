"""Signals and cancel requests to other executions, in their sender's history."""

from typing import Any

import pytest
from temporalio.api.enums.v1 import (
    CancelExternalWorkflowExecutionFailedCause,
    SignalExternalWorkflowExecutionFailedCause,
    WorkflowTaskFailedCause,
)
from temporalio.api.history.v1 import HistoryEvent

from history.commands import BadCommand
from history.config import HistoryConfig
from history.transitions.external import record_sent
from tests.history.commands import complete_workflow
from tests.history.harness import Host, command, payloads

Cause = WorkflowTaskFailedCause


def signal(workflow_id: str = "other", run_id: str = "", name: str = "s", **fields: Any) -> Any:
    return command(
        "signal_external_workflow_execution",
        execution={"workflow_id": workflow_id, "run_id": run_id},
        signal_name=name,
        **fields,
    )


def cancel(workflow_id: str = "other", run_id: str = "", **fields: Any) -> Any:
    return command("request_cancel_external_workflow_execution", workflow_id=workflow_id, run_id=run_id, **fields)


def sent(*commands: Any) -> tuple[Host, HistoryEvent]:
    host = Host()
    host.start()
    host.do(*commands)
    return host, host.events[host.info.run_id][-1]


def test_a_signal_is_sent_and_confirmed() -> None:
    host, initiated = sent(signal(input=payloads("x"), child_workflow_only=True))
    assert (host.transfer_tasks[-1].kind, host.transfer_tasks[-1].event_id) == ("signalExternal", 5)
    run_id = host.info.run_id
    for _ in range(2):
        host.run(lambda work: record_sent(work, run_id, initiated=initiated))
    assert host.types()[4:] == [
        "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
        "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    confirmed = host.events[run_id][5].external_workflow_execution_signaled_event_attributes
    assert (confirmed.namespace, confirmed.workflow_execution.workflow_id) == ("default", "other")
    assert not host.state.external_signals


def test_a_signal_fails() -> None:
    host, initiated = sent(signal())
    run_id = host.info.run_id
    cause = (
        SignalExternalWorkflowExecutionFailedCause.SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND
    )
    host.run(lambda work: record_sent(work, run_id, initiated=initiated, cause=cause))
    assert host.types()[5] == "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"
    assert host.events[run_id][5].signal_external_workflow_execution_failed_event_attributes.cause == cause


def test_a_cancel_request_is_sent_and_confirmed() -> None:
    host, initiated = sent(cancel(reason="why"))
    assert host.transfer_tasks[-1].kind == "cancelExternal"
    run_id = host.info.run_id
    for _ in range(2):
        host.run(lambda work: record_sent(work, run_id, initiated=initiated))
    assert host.types()[5:] == ["EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED", "WORKFLOW_TASK_SCHEDULED"]
    assert not host.state.external_cancels


def test_a_cancel_request_fails() -> None:
    host, initiated = sent(cancel())
    run_id = host.info.run_id
    cause = (
        CancelExternalWorkflowExecutionFailedCause.CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED_CAUSE_NAMESPACE_NOT_FOUND
    )
    host.run(lambda work: record_sent(work, run_id, initiated=initiated, cause=cause))
    assert host.types()[5] == "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"


def test_nothing_is_recorded_in_a_closed_run() -> None:
    host, initiated = sent(signal(), complete_workflow())
    initiated = host.events[host.info.run_id][4]
    run_id = host.info.run_id
    host.run(lambda work: record_sent(work, run_id, initiated=initiated))
    assert host.types()[-1] == "WORKFLOW_EXECUTION_COMPLETED"


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (signal(workflow_id=""), "WorkflowId is not set"),
        (signal(name=""), "SignalName is not set"),
        (signal(run_id="no-uuid"), "Invalid RunId set"),
        (signal(workflow_id="x" * 1001), "exceeds length limit"),
        (signal(workflow_id="\ufdd0activity\ufdd0x"), "is reserved"),
        (signal(namespace="elsewhere"), "cross namespace commands are not allowed"),
    ],
)
def test_a_bad_signal_fails_the_task(bad: Any, text: str) -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand, match=text) as caught:
        host.do(bad)
    assert caught.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SIGNAL_WORKFLOW_EXECUTION_ATTRIBUTES


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        (cancel(workflow_id=""), "WorkflowId is not set"),
        (cancel(run_id="no-uuid"), "Invalid RunId set"),
        (cancel(workflow_id="x" * 1001), "exceeds length limit"),
        (cancel(workflow_id="\ufdd0activity\ufdd0x"), "is reserved"),
    ],
)
def test_a_bad_cancel_request_fails_the_task(bad: Any, text: str) -> None:
    host = Host()
    host.start()
    with pytest.raises(BadCommand, match=text) as caught:
        host.do(bad)
    assert caught.value.cause == (
        Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_ATTRIBUTES
    )


def test_a_child_is_not_started_and_canceled_at_once() -> None:
    host = Host()
    host.start()
    start = command("start_child_workflow_execution", workflow_id="child", workflow_type={"name": "Child"})
    with pytest.raises(BadCommand, match="not allowed in same workflow task"):
        host.do(start, cancel("child"))
    host.do(start)


def test_pending_ones_are_limited() -> None:
    host = Host(config=HistoryConfig(pending_signals_limit=1, pending_cancels_limit=1))
    host.start()
    with pytest.raises(BadCommand) as caught:
        host.do(signal(), signal())
    assert caught.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_SIGNALS_LIMIT_EXCEEDED
    with pytest.raises(BadCommand) as caught:
        host.do(cancel(), cancel())
    assert caught.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_PENDING_REQUEST_CANCEL_LIMIT_EXCEEDED
