"""The walkthrough commands do what their descriptions say, on both databases."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

from tests.databases import PROJECT, manage, server_environment


def steps(printed: str) -> list[dict[str, Any]]:
    decoder = json.JSONDecoder()
    found, at = [], 0
    while at < len(printed.rstrip()):
        step, at = decoder.raw_decode(printed, at)
        found.append(step)
        at += 1
    return found


def test_matching_lifecycle() -> None:
    """Needs no tables in the configured database."""
    walked = steps(manage("matching_lifecycle", database_url="sqlite://:memory:"))
    stored = [step["persistedQueue"] and step["persistedQueue"]["storedTaskRows"] for step in walked]
    assert stored == [None, [1, 2, 3], [1, 2, 3], [1, 2, 3], [], []]
    levels = [step["persistedQueue"] and step["persistedQueue"]["ackLevel"] for step in walked]
    assert levels == [None, 0, 0, 0, 3, 3]
    assert [step["outstanding"] for step in walked] == [None, 3, 2, None, 0, None]
    loaded = [step["loadedQueueProgress"] for step in walked]
    assert [progress and progress["rangeId"] for progress in loaded] == [None, 1, 1, None, 2, None]
    assert loaded[2]["dispatchedAboveGap"] == 1
    assert loaded[1]["generation"] < loaded[4]["generation"]


def test_a_workflow_across_two_processes(database_url: str) -> None:
    started = manage("persistence_start", database_url=database_url)
    assert started.count("Executing greet activity") == 1
    found = re.search(r"manage\.py persistence_resume (\S+)", started)
    assert found is not None
    workflow_id = found[1]
    seen = manage("inspect", "--rows", workflow_id, database_url=database_url)
    for expected in ("ActivityTaskCompleted", "WorkflowExecutionSignaled", "\ntimer_tasks: 1 rows", workflow_id):
        assert expected in seen
    resumed = manage("persistence_resume", workflow_id, database_url=database_url)
    assert "Executing" not in resumed
    assert "Completed: Hello, Ada! Approved by Grace." in resumed
    assert "\ntimer_tasks: 0 rows" in manage("inspect", "--rows", workflow_id, database_url=database_url)
    manage("verify", database_url=database_url)


def test_recovery(database_url: str) -> None:
    printed = manage("recovery", database_url=database_url)
    for expected in ("slept", "heard a signal", "heard another", "done by attempt 2"):
        assert expected in printed
    manage("verify", database_url=database_url)


def test_what_needs_the_data_later_refuses_a_database_in_memory() -> None:
    done = subprocess.run(
        [sys.executable, PROJECT / "manage.py", "persistence_start"],
        env=server_environment(database_url="sqlite://:memory:"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "A database in memory ends with its process" in done.stderr
