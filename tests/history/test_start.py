"""Starting runs: id policies, repeated requests, delays, deadlines, and what the started event keeps."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import Callback, Link, Memo, Payload, Priority, RetryPolicy, SearchAttributes
from temporalio.api.enums.v1 import WorkflowExecutionStatus, WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.sdk.v1 import UserMetadata
from temporalio.api.workflow.v1 import OnConflictOptions

from common.errors import WorkflowExecutionAlreadyStarted
from history.records import ParentInfo
from history.transitions.eager import eager_task, start_eager_task
from history.transitions.start import start_workflow
from tests.history.harness import START, Host, command, payloads, seconds, start_request

REUSE = ["UNSPECIFIED", "ALLOW_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE", "TERMINATE_IF_RUNNING"]
CONFLICT = ["UNSPECIFIED", "FAIL", "USE_EXISTING", "TERMINATE_EXISTING"]
NEXUS = Callback(nexus=Callback.Nexus(url="http://callback.example"))


def again(reuse: str = "UNSPECIFIED", conflict: str = "UNSPECIFIED", **fields: object) -> dict[str, object]:
    return {
        "request_id": "again",
        "workflow_id_reuse_policy": WorkflowIdReusePolicy.Value(f"WORKFLOW_ID_REUSE_POLICY_{reuse}"),
        "workflow_id_conflict_policy": WorkflowIdConflictPolicy.Value(f"WORKFLOW_ID_CONFLICT_POLICY_{conflict}"),
        **fields,
    }


def test_a_started_run_has_a_workflow_task_and_a_row_in_the_read_model() -> None:
    host = Host()
    outcome = host.start()
    assert (outcome.started, outcome.kind, outcome.first_run_id) == (True, "new", outcome.run_id)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    assert [task.kind for task in host.transfer_tasks] == ["workflowTask"]
    assert host.visibility[outcome.run_id].status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING
    assert host.info.started_at == host.info.execution_time == START


@pytest.mark.parametrize("conflict", CONFLICT)
@pytest.mark.parametrize("reuse", REUSE)
def test_b07_start_while_running(reuse: str, conflict: str) -> None:
    host = Host()
    first = host.start()
    if reuse == "TERMINATE_IF_RUNNING" or conflict == "TERMINATE_EXISTING":
        second = host.start(**again(reuse, conflict))
        assert second.started
        assert host.info.run_id == second.run_id != first.run_id
        assert host.types(first.run_id)[-1] == "WORKFLOW_EXECUTION_TERMINATED"
        terminated = host.last(first.run_id)
        assert terminated.reason == "TerminateIfRunning WorkflowIdReusePolicy"
        assert terminated.identity == "history-service"
        assert terminated.details.payloads[0].data == f'"terminated by new runID: {second.run_id}"'.encode()
    elif conflict == "USE_EXISTING":
        second = host.start(**again(reuse, conflict))
        assert (second.run_id, second.started, second.attached) == (first.run_id, False, False)
        assert len(host.types()) == 2
    else:
        with pytest.raises(WorkflowExecutionAlreadyStarted) as refused:
            host.start(**again(reuse, conflict))
        assert refused.value.message == (
            f"Workflow execution is already running. WorkflowId: wf, RunId: {first.run_id}."
        )
        assert (refused.value.start_request_id, refused.value.run_id) == ("start", first.run_id)


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("reuse", REUSE)
def test_b07_start_after_close(reuse: str, failed: bool) -> None:
    host = Host()
    first = host.start()
    end = (
        command("fail_workflow_execution", failure={"message": "no"})
        if failed
        else command("complete_workflow_execution")
    )
    host.do(end)
    refuses = reuse == "REJECT_DUPLICATE" or (reuse == "ALLOW_DUPLICATE_FAILED_ONLY" and not failed)
    if not refuses:
        assert host.start(**again(reuse)).started
        assert host.info.run_id != first.run_id
        return
    with pytest.raises(WorkflowExecutionAlreadyStarted) as refused:
        host.start(**again(reuse))
    assert refused.value.message.startswith("Workflow execution already finished")
    assert refused.value.run_id == first.run_id


def test_a_repeated_request_is_the_same_start_even_after_the_end() -> None:
    host = Host()
    first = host.start()
    repeated = host.start()
    assert (repeated.run_id, repeated.started, repeated.kind) == (first.run_id, True, "repeated")
    host.do(command("complete_workflow_execution"))
    late = host.start()
    assert (late.run_id, late.status) == (
        first.run_id,
        WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED,
    )


def test_use_existing_attaches_what_is_asked_for_and_remembers_the_request() -> None:
    host = Host()
    first = host.start()
    link = Link(workflow=Link.Workflow(namespace="default", workflow_id="other", run_id="r"))
    fields = again(
        conflict="USE_EXISTING",
        on_conflict_options=OnConflictOptions(
            attach_request_id=True, attach_completion_callbacks=True, attach_links=True
        ),
        completion_callbacks=[NEXUS],
        links=[link],
    )
    assert host.start(**fields).attached
    event = host.events[first.run_id][-1]
    assert event.worker_may_ignore
    assert list(event.links) == [link]
    assert host.last().attached_request_id == "again"
    assert [item.callback for item in host.state.callbacks.values()] == [NEXUS]
    repeated = host.start(**fields)
    assert (repeated.kind, repeated.started, repeated.attached) == ("repeated", False, True)
    assert len(host.types()) == 3


def test_an_attached_request_id_gets_its_event_when_the_buffer_is_flushed() -> None:
    host = Host()
    host.start()
    started = host.poll()
    host.start(**again(conflict="USE_EXISTING", on_conflict_options=OnConflictOptions(attach_request_id=True)))
    assert host.state.request_ids["again"].event_id == 0
    host.complete(started)
    assert host.state.request_ids["again"].event_id == 5


def test_a_start_delay_holds_back_the_first_workflow_task() -> None:
    host = Host()
    host.start(workflow_start_delay=Duration(seconds=30), workflow_run_timeout=seconds(60))
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    assert host.info.execution_time == START + timedelta(seconds=30)
    # A run's time begins with its first workflow task.
    assert host.info.run_expires_at == START + timedelta(seconds=90)
    host.advance(29.9)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    host.advance(0.2)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]


@pytest.mark.parametrize(
    ("run", "execution", "expected_run", "expires"),
    [(0, 0, 0, None), (5, 0, 5, 5), (0, 7, 7, 7), (5, 7, 5, 5), (9, 7, 7, 7)],
)
def test_timeouts_limit_each_other(run: int, execution: int, expected_run: int, expires: int | None) -> None:
    host = Host()
    host.start(workflow_run_timeout=seconds(run), workflow_execution_timeout=seconds(execution))
    info = host.info
    assert info.run_timeout == timedelta(seconds=expected_run)
    assert info.run_expires_at == (None if expires is None else START + timedelta(seconds=expires))
    assert info.execution_expires_at == (START + timedelta(seconds=execution) if execution else None)
    first_task_ends = START + info.task_timeout
    assert info.deadline_at == min(first_task_ends, info.run_expires_at or first_task_ends)


@pytest.mark.parametrize(("asked", "run", "given"), [(0, 0, 10), (300, 0, 120), (20, 5, 5), (3, 0, 3)])
def test_b36_workflow_task_timeouts_have_a_default_and_a_maximum(asked: int, run: int, given: int) -> None:
    host = Host()
    host.start(workflow_task_timeout=seconds(asked), workflow_run_timeout=seconds(run))
    assert host.info.task_timeout == timedelta(seconds=given)


def test_the_started_event_and_the_state_keep_what_the_client_gave() -> None:
    payload = Payload(metadata={"encoding": b"json/plain"}, data=b"1")
    link = Link(workflow=Link.Workflow(namespace="default", workflow_id="other", run_id="r"))
    metadata = UserMetadata(summary=payload)
    host = Host()
    host.start(
        input=payloads("in"),
        memo=Memo(fields={"note": payload}),
        search_attributes=SearchAttributes(indexed_fields={"CustomInt": payload}),
        retry_policy=RetryPolicy(maximum_attempts=3),
        priority=Priority(priority_key=2),
        completion_callbacks=[NEXUS],
        links=[link],
        user_metadata=metadata,
    )
    event = host.events[host.info.run_id][0]
    attributes = event.workflow_execution_started_event_attributes
    assert attributes.input == payloads("in")
    assert (attributes.identity, attributes.attempt, attributes.workflow_id) == ("client", 1, "wf")
    assert (event.user_metadata, list(event.links)) == (metadata, [link])
    info = host.info
    assert info.memo == {"note": payload}
    assert info.search_attributes == {"CustomInt": payload}
    assert info.retry_policy == RetryPolicy(maximum_attempts=3)
    assert info.priority == Priority(priority_key=2)
    assert (info.links, info.user_metadata) == ([link], metadata)
    assert [item.callback for item in host.state.callbacks.values()] == [NEXUS]
    assert host.visibility[info.run_id].memo == {"note": payload}


def test_a_child_knows_its_family_and_waits_for_its_parent() -> None:
    parent = ParentInfo(
        namespace="default", namespace_id="ns-id", workflow_id="parent", run_id="p", initiated_event_id=5
    )
    host = Host()
    host.start_with(start_request(), parent=parent)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED"]
    assert host.info.parent == parent
    assert host.transfer_tasks == []


def test_an_eager_start_answers_with_the_first_workflow_task() -> None:
    host = Host()
    request = start_request(request_eager_execution=True)

    def start(work):  # type: ignore[no-untyped-def]
        from history.transitions.begin import StartWorkflow

        outcome = start_workflow(work, StartWorkflow(request=request, namespace_id="ns-id", eager=True))
        draft = work.run(outcome.run_id)
        start_eager_task(draft, request=request)
        return eager_task(draft)

    task = host.run(start)
    assert host.types() == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    assert host.transfer_tasks == []
    assert host.events[host.info.run_id][0].workflow_execution_started_event_attributes.eager_execution_accepted
    assert (task.started_event_id, task.attempt, len(task.history.events)) == (3, 1, 3)
    assert host.info.deadline_at == START + timedelta(seconds=10)
