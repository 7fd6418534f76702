"""`python -m tests.bench.admin [--runs N] [--events N] [--kind sqlite]`: what the admin's pages cost on a big database.

A throw-away database is filled: the read model with `generate_visibility`, and for each of its runs an execution with its
events; the other tables get rows, too. Then every page (`admin_pages.py`) is asked for many times through Django's test client.
`--url` measures a database that was filled before, `--only TEXT` the pages with that in their names; `--keep` leaves the new
database there for that until Ctrl-C.
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

from tests.databases import manage, server_environment
from tests.postgres import Cluster

ASKED = 15
FAST_MS = 200
MOST_MS = 5_000
"""A page that takes long is asked for less often."""


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
    from tests.bench.admin_tables import fill_tables

    fill_history(events=events)
    fill_tables()


def set_up(url: str) -> None:
    """Django in this process, on that database."""
    os.environ.update(server_environment(database_url=url, DEBUG="false"))
    import django

    django.setup()


def measure(*, only: str = "") -> bool:
    """Prints a table; whether every page was fast."""
    from django.contrib.auth.models import User
    from django.test import Client
    from django.test.utils import setup_test_environment

    from tests.bench.admin_pages import pages

    setup_test_environment()
    user, _ = User.objects.get_or_create(username="measurer", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(user)
    print("| page | median ms | slowest ms | queries |\n| --- | ---: | ---: | ---: |")
    slow = [name for name, path in pages(client).items() if only in name and not _is_fast(client, name, path)]
    print(f"slower than {FAST_MS} ms: {', '.join(slow) or 'none'}")
    return not slow


def _is_fast(client: Any, name: str, path: str) -> bool:
    """Asks for the page again and again and prints its line; a page that fails is not fast."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        answer = client.get(path)
    asked = len(queries)
    is_there = answer.status_code in (200, 302)
    note = "" if is_there else f" ({answer.status_code})"
    times: list[float] = []
    while len(times) < ASKED and sum(times) < MOST_MS:
        times.append(_ask(client, path))
    median = statistics.median(times)
    print(f"| {name}{note} | {median:.0f} | {max(times):.0f} | {asked} |", flush=True)
    return median < FAST_MS and is_there


def _ask(client: Any, path: str) -> float:
    begin = time.perf_counter()
    answer = client.get(path)
    if answer.streaming:
        for _ in answer:
            pass
    return (time.perf_counter() - begin) * 1_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=20, help="of each run")
    parser.add_argument("--kind", choices=["postgresql", "sqlite"], default="postgresql")
    parser.add_argument("--url", help="of a database that is filled already")
    parser.add_argument("--keep", type=Path, help="keep the database, its URL is written to this file")
    parser.add_argument("--only", default="", help="pages with this in their names")
    asked = parser.parse_args()
    if asked.url:
        set_up(asked.url)
        return 0 if measure(only=asked.only) else 1
    with database(asked.kind) as url:
        fill(url, runs=asked.runs, events=asked.events)
        is_fast = measure(only=asked.only)
        if asked.keep:
            asked.keep.write_text(url)
            print(f"{url} stays until Ctrl-C", flush=True)
            signal.pause()
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
