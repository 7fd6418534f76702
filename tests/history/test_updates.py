"""Updates: admitted, delivered, accepted, rejected, completed, and what becomes of them when a run closes."""

import pytest
from google.protobuf.any_pb2 import Any as Packed
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowTaskFailedCause
from temporalio.api.protocol.v1 import Message
from temporalio.api.update.v1 import Request
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest

from common.errors import (
    Aborted,
    FailedPrecondition,
    MultiOperationFailed,
    NotFound,
    ResourceExhausted,
    WorkflowExecutionAlreadyStarted,
    WorkflowNotReady,
)
from history.api.update_stages import ACCEPTED, ADMITTED, COMPLETED, UpdateForgotten, UpdateMoved, status_of
from history.commands import BadCommand
from history.config import HistoryConfig
from history.transitions.begin import StartWorkflow
from history.transitions.deadlines import earliest_deadline
from history.transitions.signals import signal_workflow
from history.transitions.timeouts import fire_deadlines
from history.transitions.updates import StartAndUpdate, start_and_update
from tests.history.commands import complete_workflow, start_timer
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, payloads, start_request
from tests.history.updating import Answers, answer, update, update_request, updated

BAD_MESSAGE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_UPDATE_WORKFLOW_EXECUTION_MESSAGE


def idle(**config: int) -> Host:
    host = Host(config=HistoryConfig(**config))
    host.start()
    host.do()
    return host


def signal(host: Host) -> None:
    request = SignalWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID), signal_name="s"
    )
    host.run(lambda work: signal_workflow(work, request))


# --- on their way


def test_an_idle_run_gets_a_speculative_task() -> None:
    host = idle()
    admission = update(host)
    assert admission.delivery is not None and admission.delivery.event_id == 5
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED"
    started = host.poll()
    assert started.task.kind == "speculative" and started.task.started_event_id == 6
    (message,) = started.messages
    assert (message.id, message.protocol_instance_id, message.event_id) == ("U/request", "U", 5)
    request = Request()
    assert message.body.Unpack(request) and request.input.name == "up"
    answer(host, started, Answers(started).accept().complete())
    assert host.types()[4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    ]
    item = host.state.updates["U"]
    assert (item.state, item.accepted_event_id, item.completed_event_id) == ("completed", 8, 9)
    assert item.outcome is not None and item.outcome.success == payloads("U")
    assert not host.state.admitted


def test_a_rejected_update_leaves_nothing_behind() -> None:
    host = idle()
    admission = update(host)
    started = host.poll()
    completion = answer(host, started, Answers(started).reject())
    assert completion.reset_history_event_id == 3
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED" and len(host.types()) == 4
    assert host.state.speculative_task is None and not host.state.admitted
    assert admission.ticket is not None and admission.ticket.outcome is not None
    assert status_of(host.state, "U", admission.ticket).outcome == admission.ticket.outcome
    assert admission.ticket.outcome.failure.message == "no"


def test_an_update_rides_on_a_task_that_waits() -> None:
    host = Host()
    host.start()
    assert update(host).delivery is None
    started = host.poll()
    assert len(started.messages) == 1 and started.task.kind == "normal"
    answer(host, started, Answers(started).reject())
    assert host.types()[-1] == "WORKFLOW_TASK_COMPLETED"


def test_an_update_that_comes_while_a_task_is_started_gets_the_next() -> None:
    host = idle()
    signal(host)
    started = host.poll()
    update(host)
    completion = host.complete(started, return_new_workflow_task=True)
    assert completion.next_task is not None
    assert completion.next_task.task.kind == "speculative" and len(completion.next_task.messages) == 1


def test_other_events_make_the_speculative_task_a_real_one() -> None:
    host = idle()
    update(host)
    signal(host)
    assert host.types()[4:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_EXECUTION_SIGNALED"]
    assert host.info.workflow_task is not None and host.state.speculative_task is None


def test_a_speculative_task_that_fails_leaves_its_events_and_the_update_goes_out_again() -> None:
    host = idle()
    update(host)
    started = host.poll()
    with pytest.raises(BadCommand):
        host.complete(started, command("start_timer"))
    assert host.types()[4:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_FAILED"]


def test_a_speculative_task_that_nobody_takes_becomes_a_stored_one() -> None:
    host = idle()
    update(host)
    run_id = host.info.run_id
    deadline = earliest_deadline(host.info, host.state.speculative_task)
    assert deadline is not None and host.info.deadline_at is None
    host.now = deadline
    host.run(lambda work: fire_deadlines(work, run_id))
    assert host.types()[4:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_TIMED_OUT", "WORKFLOW_TASK_SCHEDULED"]
    assert len(host.poll().messages) == 1


def test_a_worker_that_ignores_an_update_has_rejected_it() -> None:
    host = idle()
    admission = update(host)
    host.complete(host.poll())
    assert admission.ticket is not None and admission.ticket.outcome is not None
    assert admission.ticket.outcome.failure.application_failure_info.type == "UnprocessedUpdate"


def test_a_heartbeat_keeps_the_update_with_its_worker() -> None:
    host = idle()
    update(host)
    completion = host.complete(host.poll(), force_create_new_workflow_task=True, return_new_workflow_task=True)
    assert list(host.state.admitted) == ["U"] and not completion.next_task.messages


def test_messages_without_commands_come_after_all_commands() -> None:
    host = idle()
    update(host)
    started = host.poll()
    answer(host, started, Answers(started, ordered=False).accept().complete(), start_timer())
    assert host.types()[-3:] == [
        "TIMER_STARTED",
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    ]


# --- joining and limits


def test_a_known_id_joins_its_update() -> None:
    host = idle()
    first = update(host)
    assert update(host).ticket is first.ticket and update(host).delivery is None
    started = host.poll()
    answer(host, started, Answers(started).accept())
    assert update(host).ticket is None
    assert status_of(host.state, "U", first.ticket).stage == ACCEPTED


def test_updates_in_flight_are_limited() -> None:
    host = idle(updates_in_flight_limit=2)
    update(host, "a")
    update(host, "b")
    with pytest.raises(ResourceExhausted, match=r"has been reached \(2\)"):
        update(host, "c")
    update(host, "a")
    started = host.poll()
    answer(host, started, Answers(started).accept("a").reject("b"))
    update(host, "c")
    with pytest.raises(ResourceExhausted):
        update(host, "d")


def test_all_updates_of_a_run_are_limited() -> None:
    host = idle(updates_total_limit=2)
    updated(host, "a")
    update(host, "b")
    with pytest.raises(FailedPrecondition, match="total number of distinct updates"):
        update(host, "c")
    update(host, "a")


def test_a_run_whose_task_keeps_failing_takes_no_updates() -> None:
    host = idle()
    signal(host)
    run_id = host.info.run_id
    for _ in range(2):
        started = host.poll()
        host.now += started.task.start_to_close
        host.run(lambda work: fire_deadlines(work, run_id))
    with pytest.raises(WorkflowNotReady):
        update(host)


def test_another_chain_is_not_meant() -> None:
    host = idle()
    with pytest.raises(NotFound):
        update(host, first_execution_run_id="other")


# --- the end of a run


def test_after_the_end_known_updates_answer_and_new_ones_are_refused() -> None:
    host = idle()
    updated(host)
    signal(host)
    host.do(complete_workflow())
    assert status_of(host.state, "U", update(host).ticket).stage == COMPLETED
    with pytest.raises(NotFound, match="workflow execution already completed"):
        update(host, "V")


def test_an_accepted_update_fails_with_its_run() -> None:
    host = idle()
    admission = update(host)
    started = host.poll()
    answer(host, started, Answers(started).accept(), complete_workflow())
    status = status_of(host.state, "U", admission.ticket)
    assert status.stage == COMPLETED and status.outcome is not None
    assert status.outcome.failure.application_failure_info.type == "AcceptedUpdateCompletedWorkflow"


def test_an_admitted_update_ends_with_its_run() -> None:
    host = idle()
    signal(host)
    started = host.poll()
    admission = update(host)
    host.complete(started, complete_workflow())
    with pytest.raises(NotFound, match="aborted by closing workflow"):
        status_of(host.state, "U", admission.ticket)
    assert not host.state.admitted


def test_an_admitted_update_may_go_on_to_the_next_run() -> None:
    host = idle()
    signal(host)
    started = host.poll()
    admission = update(host)
    host.complete(started, command("continue_as_new_workflow_execution"))
    with pytest.raises(UpdateMoved):
        status_of(host.states[admission.run_id], "U", admission.ticket)
    assert update(host).run_id == host.info.run_id != admission.run_id


def test_a_rejection_counts_even_when_the_run_ends_with_it() -> None:
    host = idle()
    admission = update(host)
    started = host.poll()
    answer(host, started, Answers(started).reject(), complete_workflow())
    assert admission.ticket is not None and admission.ticket.outcome is not None


def test_what_the_server_forgot_is_told() -> None:
    host = idle()
    admission = update(host)
    assert status_of(host.state, "U", admission.ticket).stage == ADMITTED
    host.state.admitted.clear()
    with pytest.raises(UpdateForgotten):
        status_of(host.state, "U", admission.ticket)


# --- bad messages


def test_an_answer_repeats_the_request_for_a_server_that_forgot_it() -> None:
    host = idle()
    update(host)
    started = host.poll()
    host.state.admitted.clear()
    answer(host, started, Answers(started).accept(repeat_request=True).complete())
    assert host.state.updates["U"].state == "completed"


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        (lambda task: Answers(task).accept("X"), "update X wasn't found on the server"),
        (lambda task: Answers(task).complete(), "while in state Sent"),
        (lambda task: Answers(task).accept().complete(meta_id="Y"), "meta.update_id != U"),
        (lambda task: Answers(task).accept().accept(), "absent message ID"),
    ],
)
def test_a_message_that_does_not_fit_fails_the_task(answers: object, text: str) -> None:
    host = idle()
    admission = update(host)
    started = host.poll()
    with pytest.raises(BadCommand, match=text) as caught:
        answer(host, started, answers(started))  # type: ignore[operator]
    assert caught.value.cause == BAD_MESSAGE
    assert admission.ticket is not None and isinstance(admission.ticket.error, WorkflowNotReady)


def test_a_foreign_protocol_fails_the_task() -> None:
    host = idle()
    update(host)
    started = host.poll()
    packed = Packed()
    packed.Pack(WorkflowExecution())
    with pytest.raises(BadCommand, match="unsupported protocol type"):
        host.complete(started, messages=[Message(id="m", protocol_instance_id="U", body=packed)])


# --- update with start


def both(host: Host, *, update_id: str = "U", **start: object) -> StartAndUpdate:
    request = StartWorkflow(request=start_request(**start), namespace_id="ns-id")
    return host.run(lambda work: start_and_update(work, request, update_request(update_id)))


USE_EXISTING = WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING


def test_update_with_start_starts_and_delivers_with_the_first_task() -> None:
    host = Host()
    done = both(host)
    assert done.start.kind == "new" and done.admission.delivery is None
    assert len(host.poll().messages) == 1


def test_update_with_start_uses_the_running_workflow_when_it_may() -> None:
    host = idle()
    done = both(host, request_id="other", workflow_id_conflict_policy=USE_EXISTING)
    assert (done.start.kind, done.start.started, done.admission.run_id) == ("reused", False, host.info.run_id)
    assert both(host, request_id="third").admission.ticket is done.admission.ticket
    assert both(host, update_id="V").start.kind == "reused"


def test_update_with_start_fails_whole() -> None:
    host = idle()
    with pytest.raises(MultiOperationFailed) as caught:
        both(host, request_id="other")
    start, second = caught.value.errors
    assert isinstance(start, WorkflowExecutionAlreadyStarted) and isinstance(second, Aborted)
    assert not host.state.admitted


def test_update_with_start_answers_from_a_closed_run_that_knows_the_update() -> None:
    host = idle()
    updated(host)
    signal(host)
    host.do(complete_workflow())
    run_id = host.info.run_id
    assert both(host, request_id="other").admission.run_id == run_id
    assert both(host, request_id="third", update_id="V").start.kind == "new"
