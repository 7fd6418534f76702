"""`python -m tests.bench.admin [--runs N] [--events N] [--kind sqlite]`: what the admin's pages cost on a big database.

A throw-away database is filled: the read model with `generate_visibility`, and for each of its runs an execution with its
events. Then every page is asked for many times through Django's test client. `--url` measures a database that was filled
before; `--keep` leaves the new one there for that until Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.databases import manage, server_environment
from tests.postgres import Cluster

ASKED = 15
FAST_MS = 200


@contextmanager
def database(kind: str) -> Iterator[str]:
    """The URL of an empty one."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/big.sqlite3"
        return
    cluster = Cluster(durable=True)
    cluster.create()
    cluster.start()
    try:
        yield cluster.url
    finally:
        cluster.remove()


def fill(url: str, *, runs: int, events: int) -> None:
    manage("migrate", "--verbosity=0", database_url=url)
    manage("generate_visibility", str(runs), database_url=url)
    print("the read model is filled", flush=True)
    set_up(url)
    from tests.bench.admin_rows import fill_history

    fill_history(events=events)


def set_up(url: str) -> None:
    """Django in this process, on that database."""
    os.environ.update(server_environment(database_url=url, DEBUG="false"))
    import django

    django.setup()


def pages() -> dict[str, str]:
    """Name → address. Of lists the first page and a far one, of runs a middle one."""
    from history.models import Execution

    rows = Execution.objects.order_by("run_id").values_list("run_id", "workflow_id")
    run_id, workflow_id = rows[Execution.objects.count() // 2]
    of_list = {
        "executions": {},
        "executions: workflow id begins": {"id": workflow_id[:-2]},
        "executions: workflow id begins, all": {"id": "order-"},
        "executions: workflow id is": {"id": workflow_id, "id_is": "exact"},
        "executions: run id begins": {"id": run_id[:13]},
        "executions: status": {"status": "Failed"},
        "executions: type and queue": {"type": "Type-7", "queue": "queue-3"},
        "executions: time": {"since": "2026-01-02T00:00", "until": "2026-01-02T01:00"},
        "executions: filter": {"filter": "SampleKeyword = 'customer-7' AND ExecutionStatus != 'Completed'"},
        "executions: nothing found": {"type": "None such"},
    }
    found = {
        name: f"/admin/executions/?{urlencode({'namespace': 'measured', **asked})}" for name, asked in of_list.items()
    }
    found["a run"] = f"/admin/executions/{run_id}/"
    found["a run: its moving part"] = f"/admin/executions/{run_id}/?part=moving"
    for action in ("terminate", "reset", "retry"):
        found[f"a run: {action}?"] = f"/admin/executions/{run_id}/do/{action}/"
    chosen = [("operation", "terminate"), *(("run", each) for each, _ in rows[:100])]
    found["a hundred runs: terminate?"] = f"/admin/batches/new/?{urlencode(chosen)}"
    for name in ("", "queues/", "hosts/", "batches/"):
        found[f"/admin/{name}"] = f"/admin/{name}"
    for name in (
        "history/executionview",
        "history/historyeventview",
        "history/currentrunview",
        "visibility/visibility",
    ):
        found[f"rows: {name}"] = f"/admin/{name}/"
    found["rows: an execution"] = f"/admin/history/executionview/{run_id}/change/"
    return found


def measure() -> bool:
    """Prints a table; whether every page was fast."""
    from django.contrib.auth.models import User
    from django.db import connection
    from django.test import Client
    from django.test.utils import CaptureQueriesContext, setup_test_environment

    setup_test_environment()
    user, _ = User.objects.get_or_create(username="measurer", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    print("| page | median ms | slowest ms | queries |\n| --- | ---: | ---: | ---: |")
    is_fast = True
    for name, path in pages().items():
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(path)
        asked = len(queries)
        times = [_ask(client, path) for _ in range(ASKED)]
        median = statistics.median(times)
        is_fast &= median < FAST_MS
        note = "" if answer.status_code in (200, 302) else f" ({answer.status_code})"
        print(f"| {name}{note} | {median:.0f} | {max(times):.0f} | {asked} |", flush=True)
    return is_fast


def _ask(client: Any, path: str) -> float:
    begin = time.perf_counter()
    client.get(path)
    return (time.perf_counter() - begin) * 1_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=20, help="of each run")
    parser.add_argument("--kind", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--url", help="of a database that is filled already")
    parser.add_argument("--keep", type=Path, help="keep the database, its URL is written to this file")
    asked = parser.parse_args()
    if asked.url:
        set_up(asked.url)
        return 0 if measure() else 1
    with database(asked.kind) as url:
        fill(url, runs=asked.runs, events=asked.events)
        is_fast = measure()
        if asked.keep:
            asked.keep.write_text(url)
            print(f"{url} stays until Ctrl-C", flush=True)
            signal.pause()
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
