"""The way from a page's thread to the services on the event loop: answers, absences, errors, and never a long wait."""

from __future__ import annotations

from typing import Any

import pytest
from temporalio.api.workflowservice import v1 as ws

from common import deadline
from common.clock import RealClock
from common.errors import DeadlineExceeded, NotFound, OutcomeUnknown, ShardOwnershipLost, Unavailable
from matching.records import QueueKey
from tests.admin.live_side import SILENT, history_told, hosts, matching_told, queue_told
from tinytemporal_site.console import live

NOW = RealClock().now()
KEY = QueueKey(namespace="n", task_queue="q", kind="workflow")


async def answer(_: live.Services) -> int:
    return 42


def raising(error: Exception) -> Any:
    async def ask(_: live.Services) -> int:
        raise error

    return ask


def test_without_services_everybody_is_away() -> None:
    assert live.call(answer) is live.NOTHING_BOUND
    assert live.call_all({"a": answer}) == {"a": live.NOTHING_BOUND}
    assert live.request("GetSystemInfo", ws.GetSystemInfoRequest()) is live.NOTHING_BOUND
    assert (live.history_hosts(), live.matching_hosts()) == ({}, {})
    assert live.queue(KEY.physical_queue) is live.NOTHING_BOUND
    assert live.run(namespace="n", workflow_id="w", run_id="r") is live.NOTHING_BOUND


def test_an_answer_comes_back() -> None:
    with hosts():
        assert live.call(answer) == 42


@pytest.mark.parametrize(
    "error",
    [Unavailable("gone"), ShardOwnershipLost(shard_id=1), OutcomeUnknown("broke"), DeadlineExceeded("late")],
    ids=lambda error: type(error).__name__,
)
def test_nobody_there_is_an_answer(error: Exception) -> None:
    with hosts():
        found = live.call(raising(error))
    assert isinstance(found, live.Away)
    assert not found
    assert found.in_doubt == isinstance(error, OutcomeUnknown | DeadlineExceeded)


def test_other_errors_are_the_callers() -> None:
    with hosts(), pytest.raises(NotFound, match="no such run"):
        live.call(raising(NotFound("no such run")))


def test_of_several_questions_one_may_fail() -> None:
    with hosts():
        found = live.call_all({"good": answer, "bad": raising(NotFound("x")), "worse": raising(ValueError("y"))})
    assert found["good"] == 42
    assert [isinstance(found[key], live.Away) for key in ("bad", "worse")] == [True, True]


def test_silence_is_not_waited_for() -> None:
    """The call on the loop ends too, and its caller's deadline went with it."""
    seen: dict[str, Any] = {}

    async def silent(found: live.Services) -> int:
        seen["deadline"] = deadline.current()
        try:
            await found.history_at(found.members("history")[0]).inspect_host()
        finally:
            seen["ended"] = True
        return 1

    clock = RealClock()
    with hosts(history={"here": SILENT}):
        began = clock.monotonic()
        found = live.call(silent, timeout=0.05)
        # Far below what a hang would take, far above what a busy machine needs.
        assert clock.monotonic() - began < 5
    assert isinstance(found, live.Away)
    assert found.in_doubt
    assert "No answer within 0.05 s" in found.reason
    assert seen["deadline"] is not None
    assert seen["ended"]


def test_each_host_tells_for_itself() -> None:
    told = history_told(1, now=NOW)
    with hosts(history={"here": told, "there": Unavailable("refused")}, matching={"there": SILENT}):
        history, matching = live.all_hosts()
    assert history["here"] == told
    assert history["there"] == live.Away(reason="refused")
    assert isinstance(matching["there"], live.Away)


def test_a_queue_is_found_where_it_is_loaded() -> None:
    queue = queue_told(KEY, now=NOW)
    with hosts(matching={"here": matching_told(now=NOW), "there": matching_told(queue, host="there", now=NOW)}):
        found = live.queue(KEY.physical_queue)
        other = live.queue(QueueKey(namespace="n", task_queue="other", kind="workflow").physical_queue)
    assert isinstance(found, live.LiveQueue)
    assert (found.host, found.queue, found.partition) == ("there", queue, queue.partitions[0])
    assert other is None


def test_a_queue_that_nobody_known_has_may_be_with_a_host_that_is_away() -> None:
    with hosts(matching={"here": matching_told(now=NOW), "there": Unavailable("refused")}):
        found = live.queue(KEY.physical_queue)
    assert found == live.Away(reason="refused")


def test_a_run_is_asked_of_its_shards_owner() -> None:
    with hosts(history={"here": history_told(1, now=NOW)}):
        found = live.run(namespace="n", workflow_id="w", run_id="r")
    assert not isinstance(found, live.Away)
    assert (found.is_cached, found.waiters) == (True, 1)
    with hosts():
        assert live.run(namespace="n", workflow_id="w", run_id="r") == live.Away(reason="no history host is known")
