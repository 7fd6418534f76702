"""Completion callbacks as rules: when they are made, what is sent, what an answer leads to."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.common.v1 import Callback, Payload, Payloads
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.workflow.v1 import OnConflictOptions

from common.clock import ManualClock
from common.errors import FailedPrecondition
from history.callbacks.completion import CompletionRequest, completion_request
from history.callbacks.destinations import BUSY_FOR, OPEN_FOR, Destinations, HeldBack, destination_of
from history.callbacks.responses import Fault, fault_of
from history.config import HistoryConfig
from history.http_posts import Answer
from history.records import CallbackItem, TransferTask
from history.transitions.callbacks import Attempt, backoff, put_off, record_attempt
from history.transitions.delete import delete_expired, delete_run, delete_workflow
from history.transitions.terminate import terminate_run
from history.workspace import Workspace
from tests.history.harness import START, Host, command, payloads

URL = "https://caller.example:444/done?x=1"
NEXUS = Callback(nexus=Callback.Nexus(url=URL, header={"Token": "secret", "Content-Length": "7"}))


def to_make(host: Host) -> list[TransferTask]:
    return [task for task in host.transfer_tasks if task.kind == "invokeCallback"]


def closed(kind: str = "complete_workflow_execution", **fields: Any) -> Host:
    attributes = {"failure": {"message": "no", "application_failure_info": {}}} if kind.startswith("fail") else {}
    host = Host()
    host.start(completion_callbacks=[NEXUS], **fields)
    host.advance(1)
    host.do(command(kind, **attributes))
    return host


def item_of(host: Host) -> CallbackItem:
    return host.state.callbacks[1]


def tried(host: Host, error: str = "", *, retryable: bool = True) -> bool:
    """Record the try that the newest task is for."""
    task = to_make(host)[-1]
    attempt = Attempt(run_id=task.run_id, number=task.event_id, attempt=task.attempt)
    return host.run(lambda work: record_attempt(work, attempt, error=error, retryable=retryable, jitter=1.0))


def request_of(host: Host) -> CompletionRequest:
    return completion_request(host.state, item_of(host), host.events[host.info.run_id][-1])


# --- states


def test_a_callback_stands_by_until_its_run_ends_and_is_done_when_it_was_taken() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    assert (item_of(host).state, item_of(host).registered_at) == ("standby", START)
    host.do(command("complete_workflow_execution"))
    (task,) = to_make(host)
    assert (task.event_id, task.attempt, item_of(host).state) == (1, 0, "scheduled")
    tried(host)
    item = item_of(host)
    assert (item.state, item.attempt, item.last_attempt_at, item.last_failure) == ("succeeded", 1, host.now, None)


def test_a_failed_try_is_made_again_after_a_back_off_that_doubles() -> None:
    host = closed()
    tried(host, "connection refused")
    item = item_of(host)
    assert (item.state, item.attempt, item.next_attempt_at) == ("backingOff", 1, host.now + timedelta(seconds=1))
    assert item.last_failure == Failure(
        message="connection refused", application_failure_info=ApplicationFailureInfo(non_retryable=False)
    )
    host.advance(1)
    assert (item_of(host).state, item_of(host).next_attempt_at) == ("scheduled", None)
    assert to_make(host)[-1].attempt == 1
    tried(host, "again")
    assert item_of(host).next_attempt_at == host.now + timedelta(seconds=2)
    host.advance(2)
    tried(host)
    assert (item_of(host).state, item_of(host).attempt, item_of(host).last_failure) == ("succeeded", 3, None)
    assert not host.timer_tasks


def test_a_refusal_for_good_is_final() -> None:
    host = closed()
    tried(host, "handler error (NOT_FOUND)", retryable=False)
    assert (item_of(host).state, item_of(host).attempt) == ("failed", 1)
    assert item_of(host).last_failure is not None
    assert not host.timer_tasks


def test_a_late_answer_to_a_try_that_was_recorded_changes_nothing() -> None:
    host = closed()
    tried(host, "no")
    tried(host)  # the same try, by a process that was thought dead
    assert (item_of(host).state, item_of(host).attempt) == ("backingOff", 1)


def test_a_try_that_is_put_off_comes_back_without_counting() -> None:
    host = closed()
    attempt = Attempt(run_id=host.info.run_id, number=1, attempt=0)
    host.run(lambda work: put_off(work, attempt, until=host.now + timedelta(seconds=60)))
    assert (item_of(host).state, item_of(host).attempt) == ("scheduled", 0)
    host.advance(60)
    assert [task.attempt for task in to_make(host)] == [0, 0]


def test_waits_are_jittered_and_bounded() -> None:
    config = HistoryConfig()
    assert backoff(1, config=config, jitter=0.0) == timedelta(milliseconds=800)
    assert backoff(10_000, config=config, jitter=1.0) == timedelta(hours=1)


# --- which runs


@pytest.mark.parametrize("end", ["continue_as_new_workflow_execution", "fail_workflow_execution"])
def test_callbacks_go_on_with_the_chain(end: str) -> None:
    policy = {"initial_interval": {"seconds": 1}, "backoff_coefficient": 1, "maximum_attempts": 2}
    host = closed(end, retry_policy=policy)
    first = next(iter(host.states))
    assert to_make(host) == []
    assert host.states[first].callbacks[1].state == "standby"
    assert item_of(host).state == "standby"
    host.advance(2)
    host.do(command("complete_workflow_execution"))
    assert [task.run_id for task in to_make(host)] == [host.info.run_id]


def test_a_cron_run_has_no_callbacks_of_the_one_before() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS], cron_schedule="* * * * *")
    host.advance(60)
    host.do(command("complete_workflow_execution"))
    assert not host.state.callbacks
    assert to_make(host) == []


def test_a_run_that_was_reset_calls_nobody() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    host.run(lambda work: terminate_run(work.run(), reason="reset", identity="history-resetter"))
    assert to_make(host) == []


def attach(host: Host, request_id: str) -> None:
    host.start(
        request_id=request_id,
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
        on_conflict_options=OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True),
        completion_callbacks=[NEXUS],
    )


def test_callbacks_that_are_attached_to_a_running_workflow_are_called_too_and_link_to_their_request() -> None:
    host = Host()
    host.start()
    attach(host, "second")
    attach(host, "second")  # a repeated request attaches nothing more
    assert list(host.state.callbacks) == [1]
    host.do(command("complete_workflow_execution"))
    assert len(to_make(host)) == 1
    assert request_of(host).headers["nexus-link"] == (
        "<temporal:///namespaces/default/workflows/wf/run-1/history?eventType=WorkflowExecutionOptionsUpdated"
        '&referenceType=RequestIdReference&requestID=second>; type="temporal.api.common.v1.Link.WorkflowEvent"'
    )


def test_no_more_callbacks_are_attached_than_allowed() -> None:
    host = Host(config=HistoryConfig(callbacks_limit=1))
    host.start(completion_callbacks=[NEXUS])
    with pytest.raises(FailedPrecondition) as refused:
        attach(host, "second")
    assert refused.value.message == "cannot attach more than 1 callbacks to a workflow (1 callbacks already attached)"


# --- deletion


def test_a_run_that_is_deleted_goes_when_each_callback_had_a_try() -> None:
    host = Host()
    run_id = host.start(completion_callbacks=[NEXUS, NEXUS]).run_id
    host.run(lambda work: delete_workflow(work, run_id=""))
    first, second = [Attempt(run_id=run_id, number=task.event_id, attempt=0) for task in to_make(host)]
    assert not host.run(lambda work: record_attempt(work, first, error="again later"))

    def last(work: Workspace) -> None:
        assert put_off(work, second, until=host.now + timedelta(seconds=60))
        delete_run(work.run(run_id))

    host.run(last)
    assert host.states == {}
    assert host.visibility[run_id].delete
    host.advance(10)
    assert not host.timer_tasks


def test_retention_waits_for_no_callback() -> None:
    host = closed()
    run_id = host.info.run_id
    host.advance(10)
    assert not host.run(lambda work: delete_expired(work, run_id=run_id, closed_until=START))
    assert host.run(lambda work: delete_expired(work, run_id=run_id, closed_until=host.now))
    assert host.states == {}
    assert host.run(lambda work: delete_expired(work, run_id=run_id, closed_until=host.now))


# --- what is sent


def test_a_success_sends_the_result_as_it_is() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    host.advance(1.5)
    host.do(command("complete_workflow_execution", result=payloads("fine")))
    request = request_of(host)
    assert (request.url, request.body) == (URL, b'"fine"')
    assert request.headers == {
        "user-agent": "tinytemporal",
        "nexus-operation-start-time": START.strftime("%a, %d %b %Y %H:%M:%S GMT"),
        "nexus-operation-close-time": (START + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S.500Z"),
        "nexus-link": "<temporal:///namespaces/default/workflows/wf/run-1/history?eventID=1&"
        'eventType=WorkflowExecutionStarted&referenceType=EventReference>; type="temporal.api.common.v1.Link.WorkflowEvent"',
        "content-type": "application/json",
        "nexus-operation-state": "succeeded",
        "token": "secret",
    }


@pytest.mark.parametrize(
    "payload, headers",
    [
        (None, {}),
        (Payload(metadata={"encoding": b"binary/null"}), {}),
        (Payload(metadata={"encoding": b"binary/plain"}, data=b"\0"), {"content-type": "application/octet-stream"}),
        (
            Payload(metadata={"encoding": b"json/protobuf", "messageType": b"a.B"}, data=b"{}"),
            {"content-type": 'application/json; format=protobuf; message-type="a.B"'},
        ),
        (
            Payload(metadata={"encoding": b"binary/protobuf", "messageType": b"a.B"}, data=b"\1"),
            {"content-type": 'application/x-protobuf; message-type="a.B"'},
        ),
        (
            Payload(metadata={"encoding": b"unknown/nexus-content", "type": b"text/plain"}, data=b"hi"),
            {"content-type": "text/plain"},
        ),
    ],
)
def test_a_payload_has_a_media_type_where_that_says_all(payload: Payload | None, headers: dict[str, str]) -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    result = None if payload is None else Payloads(payloads=[payload])
    host.do(command("complete_workflow_execution", result=result))
    request = request_of(host)
    assert request.body == (b"" if payload is None else payload.data)
    assert {name: value for name, value in request.headers.items() if name.startswith("content-")} == headers


@pytest.mark.parametrize("metadata", [{}, {"encoding": b"json/plain", "more": b"x"}, {"encoding": b"binary/encrypted"}])
def test_any_other_payload_is_sent_whole(metadata: dict[str, bytes]) -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    payload = Payload(metadata=metadata, data=b"data")
    host.do(command("complete_workflow_execution", result=Payloads(payloads=[payload])))
    request = request_of(host)
    assert request.headers["content-type"] == "application/x-temporal-payload"
    assert Payload.FromString(request.body) == payload


def test_a_failure_is_sent_with_all_that_makes_it() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    failure = {
        "message": "outer",
        "stack_trace": "line 1",
        "application_failure_info": {"type": "Bad", "non_retryable": True},
        "cause": {"message": "inner", "application_failure_info": {}},
    }
    host.do(command("fail_workflow_execution", failure=failure))
    request = request_of(host)
    assert request.headers["nexus-operation-state"] == "failed"
    kind = {"type": "temporal.api.failure.v1.Failure"}
    assert json.loads(request.body) == {
        "message": "outer",
        "stackTrace": "line 1",
        "metadata": kind,
        "details": {
            "applicationFailureInfo": {"type": "Bad", "nonRetryable": True},
            "cause": {"message": "inner", "applicationFailureInfo": {}},
        },
        "cause": {"message": "inner", "metadata": kind, "details": {"applicationFailureInfo": {}}},
    }


def test_who_terminated_a_run_and_why_is_told_to_nobody_outside() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS])
    host.run(lambda work: terminate_run(work.run(), reason="private", identity="me"))
    request = request_of(host)
    assert request.headers["nexus-operation-state"] == "failed"
    body = json.loads(request.body)
    assert (body["message"], body["details"]) == ("operation terminated", {"terminatedFailureInfo": {}})


def test_a_cancelled_run_is_a_cancelled_operation() -> None:
    host = closed("cancel_workflow_execution")
    request = request_of(host)
    assert request.headers["nexus-operation-state"] == "canceled"
    body = json.loads(request.body)
    assert (body["message"], body["details"]) == ("operation canceled", {"canceledFailureInfo": {}})


def test_a_run_that_timed_out_is_a_failed_operation() -> None:
    host = Host()
    host.start(completion_callbacks=[NEXUS], workflow_run_timeout={"seconds": 5})
    host.advance(6)
    assert json.loads(request_of(host).body)["message"] == "operation exceeded internal timeout"


# --- what comes back

JSON = {"Content-Type": "application/json; charset=utf-8"}


@pytest.mark.parametrize(
    "status, headers, body, fault",
    [
        (200, {}, b"", None),
        (204, {}, b"", None),
        (404, {}, b"", Fault(message="handler error (NOT_FOUND)", retryable=False)),
        (404, {"Nexus-Request-Retryable": "true"}, b"", Fault(message="handler error (NOT_FOUND)", retryable=True)),
        (503, {}, b"", Fault(message="handler error (UNAVAILABLE)", retryable=True)),
        (503, {"Nexus-Request-Retryable": "False"}, b"", Fault(message="handler error (UNAVAILABLE)", retryable=False)),
        (302, {}, b"", Fault(message='unexpected response status: "302 Why"', retryable=True)),
        (418, JSON, b'{"message": "tea"}', Fault(message='unexpected response status: "418 Why": tea', retryable=True)),
        (500, JSON, b"[", Fault(message="handler error (INTERNAL)", retryable=True)),
        (
            500,
            JSON,
            b'{"message": "no", "metadata": {"type": "nexus.HandlerError"}, "details": {"type": "BAD_REQUEST"}}',
            Fault(message="handler error (BAD_REQUEST): no", retryable=False),
        ),
        (
            400,
            JSON,
            b'{"metadata": {"type": "nexus.HandlerError"}, "details": {"type": "CONFLICT", "retryableOverride": true}}',
            Fault(message="handler error (CONFLICT)", retryable=True),
        ),
    ],
)
def test_what_an_answer_means(status: int, headers: dict[str, str], body: bytes, fault: Fault | None) -> None:
    found = {name.lower(): [value] for name, value in headers.items()}
    assert fault_of(Answer(status=status, reason="Why", headers=found, body=body)) == fault


# --- destinations


def fail(destinations: Destinations, *, failed: bool = True) -> None:
    with destinations.place(destination_of("default", URL)) as outcome:
        outcome.failed = failed


def held_back(destinations: Destinations) -> timedelta:
    with pytest.raises(HeldBack) as held, destinations.place(destination_of("default", URL)):
        pass
    return held.value.until - ManualClock().now()


def test_a_destination_that_keeps_failing_is_left_alone_for_a_while_and_then_tried_by_one() -> None:
    clock = ManualClock()
    destinations = Destinations(clock=clock, at_once=4)
    key = destination_of("default", URL)
    for _ in range(6):
        assert not destinations.is_blocked(key)
        fail(destinations)
    assert destinations.is_blocked(key)
    assert not destinations.is_blocked(destination_of("other", URL))
    assert held_back(destinations) == OPEN_FOR
    clock.advance(OPEN_FOR)
    with destinations.place(key) as outcome:
        assert held_back(destinations) == OPEN_FOR + BUSY_FOR
        outcome.failed = True
    assert held_back(destinations) == 2 * OPEN_FOR
    clock.advance(OPEN_FOR)
    fail(destinations, failed=False)
    assert not destinations.is_blocked(key)
    for _ in range(5):
        fail(destinations)
    assert not destinations.is_blocked(key)


def test_a_destination_gets_so_many_requests_at_once() -> None:
    destinations = Destinations(clock=ManualClock(), at_once=1)
    with destinations.place(destination_of("default", URL)):
        assert held_back(destinations) == BUSY_FOR
        with destinations.place(destination_of("default", "https://elsewhere/")):
            pass
    fail(destinations, failed=False)
