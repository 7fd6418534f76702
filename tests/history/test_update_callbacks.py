"""Completion callbacks of updates: when they are attached, when they are made, what they say.

What they say is as the official server (1.32.0) said it to a caller of these tests' kind.
"""

from __future__ import annotations

import json

import pytest
from temporalio.api.common.v1 import Callback
from temporalio.api.workflow.v1 import CallbackInfo

from common.errors import FailedPrecondition, InvalidArgument
from history.api.callback_infos import callback_infos
from history.callbacks.completion import CompletionRequest, completion_request, end_event_id
from history.commands import BadCommand
from history.config import HistoryConfig
from history.records import CallbackItem
from history.state import ExecutionState
from history.transitions.terminate import terminate_run
from history.transitions.updates import Admission, admit_update
from tests.history.harness import Host, command
from tests.history.test_callbacks import to_make
from tests.history.test_reset import reset, signal
from tests.history.updating import Answers, answer, update_request

ACCEPTED = "WorkflowExecutionUpdateAccepted"
ATTACHED = "WorkflowExecutionOptionsUpdated"


def nexus(name: str) -> Callback:
    return Callback(nexus=Callback.Nexus(url=f"https://caller.example/{name}"))


def update(host: Host, request_id: str = "r1", *names: str) -> Admission:
    request = update_request()
    request.request.request_id = request_id
    request.request.completion_callbacks.extend(nexus(name) for name in names)
    return host.run(lambda work: admit_update(work, request))


def accepted(*names: str, **start: object) -> Host:
    """A run with an accepted update."""
    host = idle(**start)
    update(host, "r1", *names)
    task = host.poll()
    answer(host, task, Answers(task).accept())
    return host


def idle(**start: object) -> Host:
    host = Host()
    host.start(**start)
    host.do()
    return host


def complete(host: Host, *more: object) -> None:
    """The worker completes the update in its next task."""
    signal(host)
    task = host.poll()
    answer(host, task, Answers(task).complete(), *more)


def states(host: Host, run_id: str = "") -> dict[str, str]:
    return {name_of(item): item.state for item in state_of(host, run_id).callbacks.values()}


def state_of(host: Host, run_id: str = "") -> ExecutionState:
    return host.states[run_id] if run_id else host.state


def name_of(item: CallbackItem) -> str:
    return item.callback.nexus.url.rpartition("/")[2]


def sent(host: Host, name: str, run_id: str = "") -> CompletionRequest:
    state = state_of(host, run_id)
    item = next(item for item in state.callbacks.values() if name_of(item) == name)
    event_id = end_event_id(state, item)
    event = host.events[state.info.run_id][event_id - 1] if event_id else None
    return completion_request(state, item, event)


def test_they_stand_by_from_the_acceptance_and_are_made_at_the_completion() -> None:
    host = accepted("a", "b")
    assert states(host) == {"a": "standby", "b": "standby"}
    shown = callback_infos(host.state, is_blocked=lambda *_: False)[0]
    completed = CallbackInfo.UpdateWorkflowExecutionCompleted(update_id="U")
    assert shown.trigger == CallbackInfo.Trigger(update_workflow_execution_completed=completed)
    complete(host)
    assert states(host) == {"a": "scheduled", "b": "scheduled"}
    assert [task.event_id for task in to_make(host)] == [1, 2]
    request = sent(host, "a")
    assert (request.headers["nexus-operation-state"], request.body) == ("succeeded", b'"U"')
    assert f"eventType={ACCEPTED}&referenceType=RequestIdReference&requestID=r1" in request.headers["nexus-link"]
    assert "nexus-operation-close-time" in request.headers


def test_an_update_that_is_rejected_leaves_none() -> None:
    host = idle()
    update(host, "r1", "a")
    task = host.poll()
    answer(host, task, Answers(task).reject())
    assert states(host) == {} and not to_make(host)


def test_a_later_caller_attaches_more_to_an_accepted_update_once() -> None:
    host = accepted("a")
    for _ in range(2):
        update(host, "r2", "b")
    update(host, "r3")
    assert host.types()[-2:] == ["WORKFLOW_EXECUTION_UPDATE_ACCEPTED", "WORKFLOW_EXECUTION_OPTIONS_UPDATED"]
    assert host.info.workflow_task is None
    event = host.events[host.info.run_id][-1]
    (attached,) = event.workflow_execution_options_updated_event_attributes.workflow_update_options
    assert (attached.update_id, attached.attached_request_id, event.worker_may_ignore) == ("U", "r2", True)
    complete(host)
    assert states(host) == {"a": "scheduled", "b": "scheduled"}
    assert (
        f"eventType={ATTACHED}&referenceType=RequestIdReference&requestID=r2" in sent(host, "b").headers["nexus-link"]
    )


def test_those_attached_while_a_worker_has_a_task_are_made_as_well() -> None:
    host = accepted("a")
    signal(host)
    task = host.poll()
    update(host, "r2", "b")
    assert host.types()[-1] == "WORKFLOW_TASK_STARTED"
    answer(host, task, Answers(task).complete())
    assert host.types()[-3:-1] == ["WORKFLOW_EXECUTION_UPDATE_COMPLETED", "WORKFLOW_EXECUTION_OPTIONS_UPDATED"]
    assert states(host) == {"a": "scheduled", "b": "scheduled"}


def test_those_of_callers_that_come_before_the_update_is_accepted_wait_for_its_acceptance() -> None:
    host = idle()
    update(host, "r1", "a")
    update(host, "r0", "early")
    task = host.poll()
    for request_id, name in (("r2", "b"), ("r2", "b"), ("r3", "c")):
        update(host, request_id, name)
    answer(host, task, Answers(task).accept().complete())
    assert states(host) == {"a": "scheduled", "early": "scheduled", "b": "scheduled", "c": "scheduled"}


def test_a_completed_update_takes_no_more() -> None:
    host = accepted("a")
    complete(host)
    before = host.types()
    update(host, "r2", "b")
    assert host.types() == before and states(host) == {"a": "scheduled"}


def test_callbacks_need_a_request_id() -> None:
    message = "invalid \\*update.Request: request_id is required when completion_callbacks are set"
    with pytest.raises(InvalidArgument, match=message):
        update(idle(), "", "a")
    with pytest.raises(InvalidArgument, match=message):
        update(accepted("a"), "", "b")


def test_a_run_that_closes_with_the_update_undone_says_so() -> None:
    host = accepted("a", completion_callbacks=[nexus("chain")])
    host.run(lambda work: terminate_run(work.run(), reason="enough"))
    assert states(host) == {"chain": "scheduled", "a": "scheduled"}
    request = sent(host, "a")
    assert request.headers["nexus-operation-state"] == "failed"
    assert json.loads(request.body)["details"]["applicationFailureInfo"]["type"] == "AcceptedUpdateCompletedWorkflow"


def test_they_do_not_go_on_with_the_chain() -> None:
    host = accepted("a", completion_callbacks=[nexus("chain")])
    first = host.info.run_id
    signal(host)
    host.do(command("continue_as_new_workflow_execution"))
    assert host.info.run_id != first
    assert (states(host, first), states(host)) == ({"chain": "standby", "a": "scheduled"}, {"chain": "standby"})
    assert b"AcceptedUpdateCompletedWorkflow" in sent(host, "a", first).body


def test_a_reset_takes_them_over_and_a_rejection_is_told_then() -> None:
    host = accepted("a")
    first = host.info.run_id
    update(host, "r2", "b")
    reset(host, 4)
    assert (states(host, first), states(host)) == ({"a": "standby", "b": "standby"},) * 2
    assert not to_make(host)
    task = host.poll()
    answer(host, task, Answers(task).reject())
    assert states(host) == {"a": "scheduled", "b": "scheduled"}
    request = sent(host, "a")
    assert (request.headers["nexus-operation-state"], json.loads(request.body)["message"]) == ("failed", "no")
    assert not {"nexus-link", "nexus-operation-start-time", "nexus-operation-close-time"} & request.headers.keys()


def test_an_update_that_a_reset_admitted_again_is_accepted_with_one_callback() -> None:
    host = accepted("a")
    reset(host, 4)
    task = host.poll()
    answer(host, task, Answers(task).accept().complete())
    assert states(host) == {"a": "scheduled"}


def test_too_many_are_refused() -> None:
    host = accepted(*(f"n{number}" for number in range(32)))
    with pytest.raises(
        FailedPrecondition, match=r"more than 32 callbacks to a workflow \(32 callbacks already attached\)"
    ):
        update(host, "r2", "b")


def test_a_request_with_too_many_fails_the_task_that_accepts_it() -> None:
    host = Host(config=HistoryConfig(update_callbacks_limit=1))
    host.start()
    host.do()
    update(host, "r1", "a", "b")
    task = host.poll()
    with pytest.raises(BadCommand, match="cannot attach more than 1 callbacks"):
        answer(host, task, Answers(task).accept())
    assert states(host) == {}
