"""What a history refers to that is stored elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Header, Memo, Payload, Payloads, SearchAttributes
from temporalio.api.enums.v1 import EventType
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import UserMetadata

from history.api.describe_workflow_execution import execution_info
from history.external_payloads import external_payloads, may_refer
from history.transitions.visibility import visibility_of
from tests.history.commands import complete_workflow
from tests.history.harness import Host, command
from tests.history.test_reset import reset


def outside(*sizes: int) -> Payload:
    return Payload(
        metadata={"encoding": b"json/external"},
        data=b"where",
        external_payloads=[Payload.ExternalPayloadDetails(size_bytes=size) for size in sizes],
    )


def several(*found: Payload) -> Payloads:
    return Payloads(payloads=found)


def event(kind: str, **attributes: Any) -> HistoryEvent:
    event_type = EventType.Value(f"EVENT_TYPE_{kind.upper()}")
    return HistoryEvent(event_id=1, event_type=event_type, **{f"{kind}_event_attributes": attributes})


@pytest.mark.parametrize(
    "found, expected",
    [
        (event("workflow_execution_started", input=several(outside(10, 20), outside(3))), (3, 33)),
        (event("workflow_execution_started", header=Header(fields={"a": outside(1), "b": outside(2)})), (2, 3)),
        (event("workflow_execution_started", memo=Memo(fields={"m": outside(0)})), (1, 0)),
        (
            event("workflow_execution_started", search_attributes=SearchAttributes(indexed_fields={"s": outside(5)})),
            (0, 0),
        ),
        (
            event(
                "activity_task_failed",
                failure=Failure(
                    cause=Failure(
                        encoded_attributes=outside(7),
                        application_failure_info=ApplicationFailureInfo(details=several(outside(1 << 40))),
                    )
                ),
            ),
            (2, 7 + (1 << 40)),
        ),
        (event("marker_recorded", details={"d": several(outside(2))}), (1, 2)),
        (HistoryEvent(event_type=1, user_metadata=UserMetadata(summary=outside(4))), (1, 4)),
        (
            event("workflow_execution_update_accepted", accepted_request={"input": {"args": several(outside(6))}}),
            (1, 6),
        ),
        (event("timer_fired", timer_id="t"), (0, 0)),
        (event("workflow_execution_signaled", input=several(Payload(data=b"\x1a\x02\x08\x01" * 9))), (0, 0)),
        (event("workflow_execution_signaled", input=several(Payload(data=b"x" * 9_000), outside(8))), (1, 8)),
    ],
)
def test_what_counts(found: HistoryEvent, expected: tuple[int, int]) -> None:
    assert external_payloads(found) == expected
    assert may_refer(found.SerializeToString()) or expected == (0, 0)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5))
def test_no_size_escapes_the_quick_look(sizes: list[int]) -> None:
    found = event("workflow_execution_signaled", input=several(outside(*sizes)))
    assert may_refer(found.SerializeToString())
    assert external_payloads(found) == (len(sizes), sum(sizes))


def test_the_quick_look_passes_what_is_usual() -> None:
    usual = event("workflow_execution_signaled", signal_name="s", input=several(Payload(data=b'"hello"')))
    assert not may_refer(usual.SerializeToString())


def test_a_run_says_what_its_history_refers_to() -> None:
    """Folding gives the same (the harness replays each transition), and a reset run starts from what it copied."""
    host = Host()
    host.start(input=several(outside(100)))
    host.do()
    host.start(
        input=several(outside(1)),
        workflow_id_conflict_policy="WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING",
        request_id="b",
    )
    info = execution_info(host.info)
    assert (info.external_payload_count, info.external_payload_size_bytes) == (1, 100)
    reset(host, 4)
    assert (host.info.external_payload_count, host.info.external_payload_size) == (1, 100)
    host.do(command("complete_workflow_execution", result=several(outside(20), outside(3))))
    assert (host.info.external_payload_count, host.info.external_payload_size) == (3, 123)


def test_lists_show_it_once_the_run_has_closed() -> None:
    host = Host()
    host.start(input=several(outside(100)))
    shown = visibility_of(host.info, task_id=1, transitions=1).search_attributes
    assert "TemporalExternalPayloadCount" not in shown
    host.do(complete_workflow())
    shown = visibility_of(host.info, task_id=1, transitions=1).search_attributes
    assert shown["TemporalExternalPayloadCount"].data == b"1"
    assert shown["TemporalExternalPayloadSizeBytes"].data == b"100"
    assert shown["TemporalExternalPayloadSizeBytes"].metadata["type"] == b"Int"
    assert "TemporalExternalPayloadCount" not in execution_info(host.info).search_attributes.indexed_fields
