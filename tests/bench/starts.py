"""`python -m tests.bench.starts --full URL --empty URL`: is starting workflows as fast on a full database as on an empty one?

`manage.py generate_executions 1000000` fills one; `manage.py migrate` is all that the other needs. A server runs on one, then on
the other, in turns; nobody polls, so that a start is all that is measured: the run, its first task, its row of the read model.
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
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws
from temporalio.api.workflowservice.v1.service_pb2_grpc import WorkflowServiceStub

from tests.bench.load import CALL_S, CHANNELS, RESULT
from tests.server_process import LiveServer

STARTS = 2_000
WARMUP = 300
CONCURRENCY = 50
ROUNDS = 5


async def starts_per_s(address: str) -> float:
    queue = f"bench-{uuid4().hex[:8]}"
    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(address, options=options) for _ in range(CHANNELS)]
    stubs = [WorkflowServiceStub(channel) for channel in channels]
    gate = asyncio.Semaphore(CONCURRENCY)

    async def start(number: int) -> None:
        request = ws.StartWorkflowExecutionRequest(
            namespace="default",
            workflow_id=f"{queue}-{number}",
            workflow_type=WorkflowType(name="bench"),
            task_queue=TaskQueue(name=queue),
            input=RESULT,
            request_id=str(uuid4()),
        )
        async with gate:
            await stubs[number % CHANNELS].StartWorkflowExecution(request, timeout=CALL_S)

    await asyncio.gather(*(start(number) for number in range(WARMUP)))
    began = time.perf_counter()
    await asyncio.gather(*(start(number) for number in range(WARMUP, WARMUP + STARTS)))
    took = time.perf_counter() - began
    for channel in channels:
        await channel.close()
    return STARTS / took


def measure(url: str, log: Path) -> float:
    server = LiveServer(database_url=url, log=log)
    server.start()
    try:
        return asyncio.run(starts_per_s(server.address))
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.starts", description=__doc__)
    parser.add_argument("--full", required=True, metavar="URL")
    parser.add_argument("--empty", required=True, metavar="URL")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--least-ratio", type=float, help="fail when full / empty is below this")
    options = parser.parse_args()
    figures: dict[str, list[float]] = {"empty": [], "full": []}
    with tempfile.TemporaryDirectory(prefix="tinytemporal-bench-") as folder:
        for number in range(options.rounds):
            for name, url in sorted({"empty": options.empty, "full": options.full}.items(), reverse=number % 2 == 1):
                figures[name].append(measure(url, Path(folder) / "server.log"))
                print(f"round {number + 1}, {name}: {figures[name][-1]:.0f} starts/s", flush=True)
    empty, full = (statistics.median(figures[name]) for name in ("empty", "full"))
    print(f"medians: empty {empty:.0f}/s, full {full:.0f}/s, ratio {full / empty:.2f}")
    if options.least_ratio is not None and full / empty < options.least_ratio:
        sys.exit(f"below {options.least_ratio}")


if __name__ == "__main__":
    main()
