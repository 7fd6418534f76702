"""A run over time, from events and from what is pending; and its picture."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import ActivityType
from temporalio.api.history import v1 as h

from common.codec import to_dict
from common.protos import from_timestamp
from tests.admin.executions.runs import activities, at, event, failure, json_payload, started
from tinytemporal_site.console.executions.drawing import LABELS, WIDTH, draw, table
from tinytemporal_site.console.executions.events import Event, event_of, failure_parts, last_word, rows_of, tell
from tinytemporal_site.console.executions.overview import overview, sample_ids
from tinytemporal_site.console.executions.timeline import Lane, Pending, Timeline, build


def read(events: Sequence[h.HistoryEvent]) -> list[Event]:
    """As the table has them."""
    found = []
    for one in events:
        data: Any = to_dict(one)
        name = "".join(part.capitalize() for part in data["eventType"].removeprefix("EVENT_TYPE_").split("_"))
        found.append(event_of(event_id=one.event_id, event_type=name, time=from_timestamp(one.event_time), data=data))
    return found


def events(*attributes: Message) -> list[Event]:
    """One a second."""
    return read([event(number, one) for number, one in enumerate(attributes, 1)])


def made(found: list[Event], *pending: Pending, closed: int | None = None, now: int = 100, **more: Any) -> Timeline:
    status = "Running" if closed is None else "Completed"
    closed_at = None if closed is None else at(closed)
    return build(found, pending, started_at=at(0), closed_at=closed_at, status=status, now=at(now), **more)


def spans(lane: Lane) -> list[tuple[float, float, str]]:
    return [((s.begin - at(0)).total_seconds(), (s.end - at(0)).total_seconds(), s.style) for s in lane.spans]


def lanes(timeline: Timeline) -> dict[str, Lane]:
    return {lane.label: lane for lane in timeline.lanes}


ACTIVITY = h.ActivityTaskScheduledEventAttributes(activity_id="7", activity_type=ActivityType(name="pay"))


def test_an_activity_waits_then_works() -> None:
    found = events(
        ACTIVITY,
        h.ActivityTaskStartedEventAttributes(scheduled_event_id=1, attempt=3, last_failure=failure("twice bad")),
        h.ActivityTaskCompletedEventAttributes(scheduled_event_id=1, started_event_id=2),
    )
    lane = lanes(made(found))["pay (7) ×3"]
    assert spans(lane) == [(1, 2, "retry"), (2, 3, "good")]
    assert "twice bad" in lane.spans[0].text


def test_workflow_tasks_share_a_lane() -> None:
    found = events(
        h.WorkflowTaskScheduledEventAttributes(),
        h.WorkflowTaskStartedEventAttributes(scheduled_event_id=1),
        h.WorkflowTaskFailedEventAttributes(
            scheduled_event_id=1, started_event_id=2, failure=failure("nondeterminism")
        ),
        h.WorkflowTaskScheduledEventAttributes(),
    )
    lane = lanes(made(found, now=6))["Workflow tasks"]
    assert spans(lane) == [(1, 2, "wait"), (2, 3, "bad"), (4, 6, "wait")]
    assert "nondeterminism" in lane.spans[1].text


def test_timers_children_updates_and_calls_have_lanes() -> None:
    found = events(
        h.TimerStartedEventAttributes(timer_id="t"),
        h.StartChildWorkflowExecutionInitiatedEventAttributes(workflow_id="kid"),
        h.ChildWorkflowExecutionStartedEventAttributes(initiated_event_id=2),
        h.ChildWorkflowExecutionTimedOutEventAttributes(initiated_event_id=2, started_event_id=3),
        h.TimerCanceledEventAttributes(timer_id="t", started_event_id=1),
        h.SignalExternalWorkflowExecutionInitiatedEventAttributes(signal_name="s"),
        h.ExternalWorkflowExecutionSignaledEventAttributes(initiated_event_id=6),
        h.WorkflowExecutionUpdateAcceptedEventAttributes(),
        h.WorkflowExecutionSignaledEventAttributes(signal_name="hello"),
        h.WorkflowExecutionUpdateCompletedEventAttributes(accepted_event_id=8),
    )
    by_label = lanes(made(found, closed=11))
    assert [spans(lane) for lane in list(by_label.values())[1:]] == [
        [],
        [(1, 5, "canceled")],
        [(2, 3, "wait"), (3, 4, "bad")],
        [(6, 7, "good")],
        [(8, 10, "good")],
    ]
    assert [point.text for point in by_label["Signals"].points] == ["Workflow execution signaled (event 9) hello"]


def test_what_is_pending_says_more_than_its_event() -> None:
    waits = Pending(
        kind="activity", event_id=1, label="pay", since=at(1), until=at(130), style="retry", text="attempt 4"
    )
    lane = lanes(made(events(ACTIVITY), waits))["pay (7)"]
    assert spans(lane)[0] == (1, 100, "retry")
    assert spans(lane)[1][2] == "ahead"
    assert lane.spans[0].text == "attempt 4"
    timer = Pending(kind="timer", event_id=40, label="timer x", since=at(0), until=at(10_000_000))
    timeline = made(events(ACTIVITY), timer)
    assert timeline.end - timeline.begin < timedelta(seconds=200)
    assert lanes(timeline)["timer x"].spans[-1].open_right


def test_the_end_of_the_run_ends_all() -> None:
    lane = lanes(made(events(ACTIVITY), closed=5))["pay (7)"]
    assert spans(lane) == [(1, 5, "canceled")]


def test_a_window_says_what_goes_on_beyond_it() -> None:
    found = read([event(500, h.ActivityTaskStartedEventAttributes(scheduled_event_id=3)), event(501, ACTIVITY)])
    timeline = made(found, closed=900, has_earlier=True, has_later=True)
    assert (timeline.begin, timeline.end) == (at(500), at(501))
    first, second = timeline.lanes[1:]
    assert first.spans[0].open_left
    assert first.spans[1].open_right
    assert second.spans[0].open_right


def test_many_lanes_are_bounded() -> None:
    timeline = made(read(list(activities(400))), now=2000)
    assert len(timeline.lanes) == 150
    assert timeline.left_out == 400 + 1 - 150


def test_links_lead_both_ways() -> None:
    rows = rows_of(read([started(), *activities(1)]))
    links = {row.event.id: [(link.event_id, link.word) for link in row.links] for row in rows}
    assert links == {
        1: [],
        2: [(3, "started"), (4, "completed")],
        3: [(2, "scheduled"), (4, "completed")],
        4: [(2, "scheduled"), (3, "started")],
    }


@pytest.mark.parametrize(
    "name, word",
    [
        ("TimerFired", "fired"),
        ("ActivityTaskTimedOut", "timed out"),
        ("ActivityTaskCancelRequested", "cancel requested"),
    ],
)
def test_last_word(name: str, word: str) -> None:
    assert last_word(name) == word


def test_failures_are_told_with_their_causes() -> None:
    attributes = h.WorkflowExecutionFailedEventAttributes(failure=failure("outer", cause=failure("inner")))
    [failed] = events(attributes)
    assert tell(failed) == "outer ← inner"
    assert [(part.type, part.stack_trace) for part in failure_parts(failed.attributes["failure"])] == [
        ("outer", "at outer"),
        ("inner", "at inner"),
    ]


def test_a_failure_that_was_put_into_a_payload_is_told() -> None:
    hidden = json_payload('{"message": "no funds", "stack_trace": "at pay"}')
    made = failure("Encoded failure")
    made.encoded_attributes.CopyFrom(hidden)
    [failed] = events(h.WorkflowExecutionFailedEventAttributes(failure=made))
    assert tell(failed) == "no funds"
    assert failure_parts(failed.attributes["failure"])[0].stack_trace == "at pay"


def test_what_the_author_wrote_is_told_first() -> None:
    made = event(1, ACTIVITY)
    made.user_metadata.summary.CopyFrom(json_payload('"charge the card"'))
    assert rows_of(read([made]))[0].told == "“charge the card” · pay · id 7"


@given(st.lists(st.integers(0, 100), min_size=0, max_size=70), st.integers(0, 100), st.integers(0, 100))
def test_a_long_run_as_a_whole(seconds: list[int], first: int, last: int) -> None:
    samples = [(number, at(second)) for number, second in enumerate(sorted(seconds), 1)]
    found = overview(samples, first=at(min(first, last)), last=at(max(first, last)))
    assert (found is None) == (len(samples) < 2)
    for piece in found.pieces if found else ():
        assert 0 <= piece.x <= WIDTH
        assert piece.width > 0


@pytest.mark.parametrize("last", [201, 1_000, 51_200])
def test_samples_are_few_and_reach_to_the_end(last: int) -> None:
    ids = sample_ids(last)
    assert (ids[0], ids[-1]) == (1, last)
    assert len(ids) <= 61


_KINDS = [field.message_type for field in h.HistoryEvent.DESCRIPTOR.oneofs_by_name["attributes"].fields]


@given(st.lists(st.tuples(st.sampled_from(_KINDS), st.integers(0, 9), st.integers(0, 9)), max_size=12), st.booleans())
def test_any_events_make_a_picture(kinds: list[tuple[Any, int, int]], is_window: bool) -> None:
    """Also those in an order, and with references, that no server writes."""
    found = []
    for number, (kind, reference, seconds) in enumerate(kinds, 1):
        attributes = kind._concrete_class()
        for name in ("scheduled_event_id", "started_event_id", "initiated_event_id", "accepted_event_id"):
            if name in kind.fields_by_name:
                setattr(attributes, name, reference)
        found.append(event(number, attributes, seconds=seconds))
    timeline = made(read(found), has_earlier=is_window, has_later=is_window)
    picture = draw(timeline)
    for bar in picture.bars:
        assert bar.x >= LABELS
        assert bar.x + bar.width <= WIDTH
        assert bar.width > 0
    table(timeline.lanes)
    rows_of(read(found))
