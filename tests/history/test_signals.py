"""Signals and signal-with-start."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.errors import InvalidArgument, NotFound, WorkflowExecutionAlreadyStarted
from history.api.signal_with_start_workflow_execution import as_start_request
from history.commands import BadCommand
from history.config import HistoryConfig
from history.transitions.begin import StartWorkflow
from history.transitions.signals import signal_with_start, signal_workflow
from history.transitions.start import StartOutcome
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, payloads

Conflict, Reuse = WorkflowIdConflictPolicy, WorkflowIdReusePolicy


def signal(host: Host, name: str = "go", *, run_id: str = "", child_only: bool = False, **fields: Any) -> str:
    external = fields.pop("external", None)
    request = ws.SignalWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID, run_id=run_id),
        signal_name=name,
        identity="client",
        **fields,
    )
    return host.run(lambda work: signal_workflow(work, request, child_only=child_only, external=external))


def signal_start(host: Host, request_id: str = "sws", **fields: Any) -> StartOutcome:
    delay = fields.get("workflow_start_delay", Duration())
    request = ws.SignalWithStartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        workflow_type=WorkflowType(name="Type"),
        task_queue=TaskQueue(name="queue"),
        signal_name="go",
        signal_input=payloads("in"),
        request_id=request_id,
        **fields,
    )
    start = StartWorkflow(
        request=as_start_request(request), namespace_id="ns-id", first_task_backoff=delay.ToTimedelta()
    )
    return host.run(lambda work: signal_with_start(work, request, start))


def test_a_signal_is_an_event_and_wakes_the_worker() -> None:
    host = Host()
    first = host.start()
    host.do()
    assert signal(host, input=payloads("x"), request_id="s1") == first.run_id
    assert host.types()[-2:] == ["WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_SCHEDULED"]
    assert host.info.signal_count == 1


def test_b13_a_repeated_signal_changes_nothing_even_after_the_end() -> None:
    host = Host()
    first = host.start()
    signal(host, request_id="s1")
    signal(host, request_id="s1")
    assert host.types().count("WORKFLOW_EXECUTION_SIGNALED") == 1
    host.do(command("complete_workflow_execution"))
    before = host.types()
    assert signal(host, request_id="s1") == first.run_id
    assert host.types() == before
    with pytest.raises(NotFound, match=r"^workflow execution already completed$"):
        signal(host, request_id="s2")


def test_a_signal_without_request_id_is_never_a_repetition() -> None:
    host = Host()
    host.start()
    signal(host)
    signal(host)
    assert host.info.signal_count == 2


def test_b12_a_signal_during_the_task_keeps_the_run_open() -> None:
    host = Host()
    host.start()
    started = host.poll()
    signal(host)
    with pytest.raises(BadCommand) as failed:
        host.complete(started, command("complete_workflow_execution"))
    assert failed.value.message == "UnhandledCommand"
    assert host.types()[2:] == [
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_FAILED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_signals_over_the_limit_are_refused() -> None:
    host = Host(config=HistoryConfig(signals_limit=2))
    host.start()
    signal(host)
    signal(host)
    with pytest.raises(InvalidArgument, match="exceeded workflow execution limit for signal events"):
        signal(host)


def test_a_payload_over_the_limit_is_refused() -> None:
    host = Host(config=HistoryConfig(blob_limit=100))
    host.start()
    with pytest.raises(InvalidArgument, match="Blob data size exceeds limit"):
        signal(host, input=payloads("x" * 100))


def test_a_delayed_run_hears_of_a_signal_with_its_first_task() -> None:
    host = Host()
    host.start(workflow_start_delay=Duration(seconds=5))
    signal(host)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_EXECUTION_SIGNALED"]
    host.advance(5)
    assert host.types()[-1] == "WORKFLOW_TASK_SCHEDULED"


def test_a_child_only_signal_needs_the_parent() -> None:
    host = Host()
    host.start()
    sender = WorkflowExecution(workflow_id="other", run_id="r")
    with pytest.raises(NotFound, match="workflow parent does not match"):
        signal(host, child_only=True, external=sender)
    signal(host, external=sender)
    assert (
        host.events[host.info.run_id][2].workflow_execution_signaled_event_attributes.external_workflow_execution
        == sender
    )


def test_signal_with_start_starts_with_the_signal_before_the_first_task() -> None:
    host = Host()
    outcome = signal_start(host)
    assert outcome.started
    assert host.types() == [
        "WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
    ]


def test_signal_with_start_signals_what_runs() -> None:
    host = Host()
    first = host.start()
    outcome = signal_start(host)
    assert (outcome.run_id, outcome.started) == (first.run_id, False)
    assert host.types()[-1] == "WORKFLOW_EXECUTION_SIGNALED"


def test_signal_with_start_does_not_wait_for_a_start_delay() -> None:
    host = Host()
    host.start(workflow_start_delay=Duration(seconds=60))
    signal_start(host)
    assert host.types()[-1] == "WORKFLOW_TASK_SCHEDULED"
    host.advance(61)
    assert host.types().count("WORKFLOW_TASK_SCHEDULED") == 1


def test_signal_with_start_may_start_with_a_delay() -> None:
    host = Host()
    signal_start(host, workflow_start_delay=Duration(seconds=5))
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_EXECUTION_SIGNALED"]
    host.advance(5)
    assert host.types()[-1] == "WORKFLOW_TASK_SCHEDULED"


def test_b13_signal_with_start_is_one_for_its_request_id() -> None:
    host = Host()
    first = signal_start(host)
    again = signal_start(host)
    assert (again.run_id, again.started) == (first.run_id, False)
    host.do(command("complete_workflow_execution"))
    late = signal_start(host)
    assert (late.run_id, late.started) == (first.run_id, False)
    assert host.types().count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert signal_start(host, "another").run_id != first.run_id


def test_signal_with_start_obeys_the_id_policies() -> None:
    host = Host()
    first = host.start()
    with pytest.raises(WorkflowExecutionAlreadyStarted):
        signal_start(host, workflow_id_conflict_policy=Conflict.WORKFLOW_ID_CONFLICT_POLICY_FAIL)
    second = signal_start(host, workflow_id_conflict_policy=Conflict.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING)
    assert host.types(first.run_id)[-1] == "WORKFLOW_EXECUTION_TERMINATED"
    assert second.started
    host.do(command("complete_workflow_execution"))
    with pytest.raises(WorkflowExecutionAlreadyStarted):
        signal_start(host, "third", workflow_id_reuse_policy=Reuse.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
