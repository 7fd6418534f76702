"""`python -m tests.bench.starts --full URL --empty URL`: is starting workflows as fast on a full database as on an empty one?

`manage.py generate_executions 1000000` fills one; `manage.py migrate` is all that the other needs. A server runs on each, and the
load goes to one, then to the other, in turns, so that a machine that is now quicker and now slower is so for both; the ratio is the
median of those of neighbouring turns. Nobody polls: a start is all that is measured, the run, its first task, its row of the read model.
CPU is that of the server and of PostgreSQL, which other work on the machine hardly changes; PostgreSQL must run on this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import grpc
import psutil
import psycopg
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws
from temporalio.api.workflowservice.v1.service_pb2_grpc import WorkflowServiceStub

from tests.bench.load import CALL_S, CHANNELS, RESULT
from tests.bench.processes import cpu_s
from tests.server_process import LiveServer

STARTS = 1_000
WARMUP = 500
CONCURRENCY = 50
ROUNDS = 12


class Target:
    """A server on one of the databases, its channels, and what was measured."""

    def __init__(self, url: str, *, log: Path) -> None:
        self.server = LiveServer(database_url=url, log=log)
        self.figures: list[float] = []
        self.cpu_ms: list[float] = []
        """CPU for each start, of the server and its PostgreSQL, which serves nobody else."""
        self._postgres = _postmaster(url)
        self._stubs: list[WorkflowServiceStub] = []

    def open(self) -> list[grpc.aio.Channel]:
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(self.server.address, options=options) for _ in range(CHANNELS)]
        self._stubs = [WorkflowServiceStub(channel) for channel in channels]
        return channels

    async def turn(self) -> None:
        pids = [self.server.pid, self._postgres]
        before = cpu_s(pids)
        self.figures.append(await self.starts_per_s(STARTS))
        self.cpu_ms.append(1_000 * (cpu_s(pids) - before) / STARTS)

    def last(self) -> str:
        return f"{self.figures[-1]:.0f}/s at {self.cpu_ms[-1]:.2f} ms"

    async def starts_per_s(self, number: int) -> float:
        queue = f"bench-{uuid4().hex[:8]}"
        gate = asyncio.Semaphore(CONCURRENCY)

        async def start(index: int) -> None:
            request = ws.StartWorkflowExecutionRequest(
                namespace="default",
                workflow_id=f"{queue}-{index}",
                workflow_type=WorkflowType(name="bench"),
                task_queue=TaskQueue(name=queue),
                input=RESULT,
                request_id=str(uuid4()),
            )
            async with gate:
                await self._stubs[index % CHANNELS].StartWorkflowExecution(request, timeout=CALL_S)

        began = time.perf_counter()
        await asyncio.gather(*(start(index) for index in range(number)))
        return number / (time.perf_counter() - began)


def _postmaster(url: str) -> int:
    """PostgreSQL's first process, whose children serve the connections."""
    with psycopg.connect(url) as connection:
        return psutil.Process(connection.info.backend_pid).ppid()


async def measure(empty: Target, full: Target, *, rounds: int) -> None:
    channels = [*empty.open(), *full.open()]
    for target in (empty, full):
        await target.starts_per_s(WARMUP)
    for number in range(rounds):
        for target in (empty, full) if number % 2 else (full, empty):
            await target.turn()
        print(f"round {number + 1}: empty {empty.last()}, full {full.last()}", flush=True)
    for channel in channels:
        await channel.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.starts", description=__doc__)
    parser.add_argument("--full", required=True, metavar="URL")
    parser.add_argument("--empty", required=True, metavar="URL")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--least-ratio", type=float, help="fail when full / empty is below this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinytemporal-bench-") as folder:
        empty, full = (Target(url, log=Path(folder) / "server.log") for url in (options.empty, options.full))
        try:
            for target in (empty, full):
                target.server.start()
            asyncio.run(measure(empty, full, rounds=options.rounds))
        finally:
            for target in (empty, full):
                target.server.stop()
    ratio = statistics.median(f / e for e, f in zip(empty.figures, full.figures, strict=True))
    slow, fast = (statistics.median(target.figures) for target in (full, empty))
    cpu = statistics.median(e / f for e, f in zip(empty.cpu_ms, full.cpu_ms, strict=True))
    costs = f"empty {statistics.median(empty.cpu_ms):.2f} ms, full {statistics.median(full.cpu_ms):.2f} ms"
    print(f"medians: empty {fast:.0f}/s, full {slow:.0f}/s; ratio {ratio:.2f}")
    print(f"CPU of a start: {costs}; ratio {cpu:.2f}")
    if options.least_ratio is not None and ratio < options.least_ratio:
        sys.exit(f"below {options.least_ratio}")


if __name__ == "__main__":
    main()
