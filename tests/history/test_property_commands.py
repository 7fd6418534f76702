"""Markers, search attributes and memo."""

from __future__ import annotations

import re

import pytest
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.sdk.v1 import UserMetadata

from history.commands import COMMANDS, BadCommand
from tests.history.commands import marker, upsert, upsert_memo
from tests.history.harness import payloads
from tests.history.worker_host import WorkerHost

Cause = WorkflowTaskFailedCause
CUSTOM = {"Word": "Keyword", "Words": "KeywordList", "Text": "Text", "Int": "Int", "Flag": "Bool", "When": "Datetime"}


@pytest.fixture
def host() -> WorkerHost:
    host = WorkerHost()
    host.begin()
    return host


def test_a_marker_keeps_what_the_worker_gave(host: WorkerHost) -> None:
    command = marker("side effect", details={"data": payloads("x")})
    command.user_metadata.CopyFrom(UserMetadata(summary=Payload(data=b"sum")))
    host.turn(command)
    recorded = host.attributes("marker_recorded")
    assert recorded.details["data"] == payloads("x")
    assert recorded.workflow_task_completed_event_id == 4
    assert host.history[-1].user_metadata.summary.data == b"sum"


@pytest.mark.parametrize(
    ("command", "message"), [(marker(""), "MarkerName is not set"), (marker("é" * 501), "exceeds length limit.")]
)
def test_a_bad_marker_fails_the_task(host: WorkerHost, command: Command, message: str) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(command)
    assert message in raised.value.message
    assert raised.value.cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES


def test_upserts_merge_and_a_null_removes(host: WorkerHost) -> None:
    host.turn(upsert(Word=b'"a"', Int=b"1"), custom=CUSTOM, force_create_new_workflow_task=True)
    host.turn(upsert(Word=b"null", Words=b'["x","y"]'), custom=CUSTOM)
    assert {name: value.data for name, value in host.info.search_attributes.items() if name in CUSTOM} == {
        "Int": b"1",
        "Words": b'["x","y"]',
    }
    assert host.visibility[host.info.run_id].search_attributes == host.info.search_attributes
    assert host.info.search_attributes["Int"].metadata["type"] == b"Int"
    written = host.attributes("upsert_workflow_search_attributes").search_attributes.indexed_fields
    assert {name: value.metadata["type"] for name, value in written.items()} == {
        "Word": b"Keyword",
        "Words": b"KeywordList",
    }


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (upsert(Nope=b"1"), "Namespace default has no mapping defined for search attribute Nope"),
        (upsert(WorkflowId=b'"x"'), "WorkflowId attribute can't be set in SearchAttributes"),
        (upsert(Int=b'"x"'), "invalid value for search attribute Int of type Int: x"),
        (upsert(Flag=b"1"), "invalid value for search attribute Flag of type Bool: 1"),
        (upsert(When=b'"today"'), "invalid value for search attribute When of type Datetime: today"),
        (upsert(), "IndexedFields is not set on UpsertWorkflowSearchAttributesCommand."),
    ],
)
def test_a_bad_search_attribute_fails_the_task(host: WorkerHost, command: Command, message: str) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(command, custom=CUSTOM)
    assert raised.value.message == f"BadSearchAttributes: {message}"
    assert host.attributes("workflow_task_failed").cause == Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES
    assert not raised.value.terminate


def test_search_attributes_that_grow_too_large_end_the_run(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(upsert(Text=b'"' + b"x" * 3_000 + b'"'), custom=CUSTOM)
    assert raised.value.terminate
    assert host.types()[-1] == "WORKFLOW_EXECUTION_TERMINATED"


def test_memo_upserts_merge(host: WorkerHost) -> None:
    host.turn(upsert_memo(a=b"1", b=b"2"), force_create_new_workflow_task=True)
    host.turn(upsert_memo(a=b"null", c=b"3"))
    assert {name: value.data for name, value in host.info.memo.items()} == {"b": b"2", "c": b"3"}
    assert host.visibility[host.info.run_id].memo == host.info.memo


def test_an_empty_memo_upsert_fails_the_task(host: WorkerHost) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(upsert_memo())
    assert raised.value.message.startswith("BadModifyWorkflowPropertiesAttributes: ")


@pytest.mark.parametrize("command_type", sorted(COMMANDS))
def test_a_command_without_attributes_is_refused(host: WorkerHost, command_type: int) -> None:
    with pytest.raises(BadCommand) as raised:
        host.turn(Command(command_type=command_type))  # type: ignore[arg-type]
    assert re.search(r"is not set on|: empty \w+CommandAttributes$", raised.value.message)
    assert host.types()[-1] == "WORKFLOW_TASK_FAILED"
