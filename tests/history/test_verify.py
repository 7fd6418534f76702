"""manage.py verify finds what does not agree, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.history.v1 import HistoryEvent

from common.contracts.visibility import VisibilityIntent
from common.errors import PersistenceError
from history.records import CurrentRun
from history.state import ExecutionState
from history.verify import Difference, Totals, Verifier
from tests.history.harness import Host, command, payloads, seconds
from tests.history.test_signals import signal


class Stored:
    """A host's runs as an ExecutionStore and a read model."""

    def __init__(self, host: Host) -> None:
        self.states = dict(host.states)
        self.events = {run_id: list(events) for run_id, events in host.events.items()}
        self.current = host.current
        self.shown = dict(host.visibility)
        self.intents: list[VisibilityIntent] = []

    async def list_runs(self, *, shard_id: int, after: str, limit: int) -> list[str]:
        return [run_id for run_id in sorted(self.states) if run_id > after][:limit] if shard_id == 1 else []

    async def load_execution(self, *, shard_id: int, run_id: str) -> ExecutionState | None:
        state = self.states[run_id]
        if state is None:
            raise PersistenceError(
                table="executions", key=run_id, reason="Object missing required field `status` - at `$`"
            )
        return state

    async def load_events(self, *, shard_id: int, run_id: str, first: int, last: int) -> list[HistoryEvent]:
        return [event for event in self.events[run_id] if first <= event.event_id < last]

    async def load_current_run(self, *, shard_id: int, namespace: str, workflow_id: str) -> CurrentRun | None:
        return self.current

    async def load_visibility_tasks(self, *, shard_id: int, after: int, limit: int) -> list[VisibilityIntent]:
        return [intent for intent in self.intents if intent.task_id > after][:limit]

    async def compare(self, expected: VisibilityIntent) -> list[str]:
        shown = self.shown.get(expected.run_id)
        if shown is None:
            return ["no row"]
        same = replace(shown, task_id=0, state_transition_count=expected.state_transition_count)
        return [] if same == expected else ["differs"]

    def change(self, **fields: Any) -> None:
        """Change fields of the current run's stored state."""
        assert self.current is not None
        state = self.states[self.current.run_id]
        self.states[self.current.run_id] = replace(state, info=replace(state.info, **fields))


async def verify(stored: Stored) -> tuple[Totals, list[Difference]]:
    found: list[Difference] = []
    totals = await Verifier(stored, shards=2, read_model=stored).run(found.append)  # type: ignore[arg-type]
    return totals, found


def busy() -> Host:
    """A chain: a closed run, and an open one with an activity, a timer, a signal that waits and a remembered request."""
    host = Host()
    host.start(workflow_run_timeout=seconds(600))
    host.advance(2)
    host.do(command("continue_as_new_workflow_execution", input=payloads("x")))
    host.do(
        command("start_timer", timer_id="t", start_to_fire_timeout=seconds(60)),
        command(
            "schedule_activity_task",
            activity_id="a",
            activity_type={"name": "A"},
            task_queue={"name": "q"},
            start_to_close_timeout=seconds(9),
        ),
    )
    signal(host, request_id="s1")
    host.poll()
    signal(host, request_id="s2")
    return host


async def test_nothing_to_find() -> None:
    totals, found = await verify(Stored(busy()))
    assert found == []
    assert (totals.runs, totals.differences) == (2, 0)


def gone(stored: Stored) -> None:
    del stored.events[stored.current.run_id][3]  # type: ignore[union-attr]


def short(stored: Stored) -> None:
    stored.events[stored.current.run_id].pop()  # type: ignore[union-attr]


def too_long(stored: Stored) -> None:
    """As when an owner that was replaced overwrote the state."""
    events = stored.events[stored.current.run_id]  # type: ignore[union-attr]
    extra = HistoryEvent()
    extra.CopyFrom(events[-1])
    extra.event_id += 1
    events.append(extra)


def lost_timer(stored: Stored) -> None:
    state = stored.states[stored.current.run_id]  # type: ignore[union-attr]
    stored.states[state.info.run_id] = replace(state, timers={})


def lost_request(stored: Stored) -> None:
    state = stored.states[stored.current.run_id]  # type: ignore[union-attr]
    stored.states[state.info.run_id] = replace(state, request_ids={})


def malformed(stored: Stored) -> None:
    stored.states[stored.current.run_id] = None  # type: ignore[union-attr,assignment]


def not_current(stored: Stored) -> None:
    stored.current = replace(stored.current, run_id="run-1")


CLOSED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_COMPLETED


@pytest.mark.parametrize(
    ("spoil", "texts"),
    [
        (gone, ["event 4 is missing: 5 follows"]),
        (short, ["next_event_id: stored 10, from events 9"]),
        (too_long, ["event 10 is stored, but next_event_id is 10"]),
        (lost_timer, ["timer t: not stored, in the events"]),
        (
            lost_request,
            ["requestId s1: not stored, in the events", "requestId s2: not stored, in the events"],
        ),
        (malformed, ["executions[run-2]: Object missing required field `status` - at `$`"]),
        (lambda s: s.change(signal_count=7), ["signal_count: stored 7, from events 2"]),
        (
            lambda s: s.change(task_queue="elsewhere"),
            ["task_queue: stored elsewhere, from events queue", "visibility: differs"],
        ),
        (lambda s: s.change(deadline_at=None), ["deadline_at: stored None, but something falls due at"]),
        (
            lambda s: setattr(s, "current", replace(s.current, status=CLOSED)),
            ["current run's status: stored 2, expected 1"],
        ),
        (lambda s: s.shown.clear(), ["visibility: no row", "visibility: no row"]),
    ],
)
async def test_what_is_spoilt_is_found(spoil: Callable[[Stored], object], texts: list[str]) -> None:
    stored = Stored(busy())
    spoil(stored)
    totals, found = await verify(stored)
    assert sorted(difference.text[: len(text)] for difference, text in zip(found, texts, strict=True)) == sorted(texts)
    assert totals.differences == len(texts)


async def test_an_open_run_must_be_the_current_one() -> None:
    stored = Stored(busy())
    not_current(stored)
    _, found = await verify(stored)
    assert "current run: stored run-1, but this run is open" in [difference.text for difference in found]


async def test_a_closed_run_ends_with_its_close_event() -> None:
    host = Host()
    run_id = host.start().run_id
    host.do(command("complete_workflow_execution"))
    stored = Stored(host)
    other = HistoryEvent()
    other.CopyFrom(stored.events[run_id][3])
    other.event_id = 5
    stored.events[run_id][-1] = other
    _, found = await verify(stored)
    assert any(difference.text.startswith("close events: [], expected [5]") for difference in found)


async def test_a_read_model_that_lags_is_no_difference() -> None:
    host = busy()
    stored = Stored(host)
    run_id = host.info.run_id
    stored.intents = [replace(stored.shown[run_id], task_id=900)]
    del stored.shown[run_id]
    assert (await verify(stored))[1] == []
    stored.intents = [replace(stored.intents[0], workflow_type="Other", start_time=host.now + timedelta(seconds=1))]
    assert [difference.text.split(":")[1] for difference in (await verify(stored))[1]] == [
        " workflow_type",
        " start_time",
    ]
