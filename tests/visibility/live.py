"""`python -m tests.visibility.live`: the queries of `recorded.json` put to the official server and to ours, both running, over the
same runs made on each: the same runs found, in the same order, the same counts, groups and status codes. `test_recorded.py` says which
queries differ and why; any other difference is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.search_attributes import TYPE_VALUES
from tests.behaviours.harness import Run, Server, application_failure, command, seconds
from tests.compare.peers import PEERS, official
from tests.visibility.runs import CUSTOM
from tests.visibility.test_recorded import DIFFERENT, RECORDED, RUNS

NAMESPACE = "filters"
SETTLED_S = 60.0
BY_ITSELF = ("child-1", "grandchild-1", "first")
"""Runs that come of others, and one of an older recording."""
ENDS = {
    Status.WORKFLOW_EXECUTION_STATUS_COMPLETED: command("complete_workflow_execution"),
    Status.WORKFLOW_EXECUTION_STATUS_FAILED: command("fail_workflow_execution", failure=application_failure("no")),
    Status.WORKFLOW_EXECUTION_STATUS_CANCELED: command("cancel_workflow_execution"),
    Status.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW: command(
        "continue_as_new_workflow_execution", workflow_type={"name": "Order"}, task_queue={"name": "later"}
    ),
}


async def prepared(address: str) -> Server:
    """A namespace with the attributes and the runs of the recording."""
    server = Server(grpc.aio.insecure_channel(address)).within(NAMESPACE)
    await server.call("RegisterNamespace", workflow_execution_retention_period=seconds(86_400))
    async with asyncio.timeout(SETTLED_S):
        added = {name: TYPE_VALUES[kind] for name, kind in CUSTOM.items()}
        await server.operator_service.AddSearchAttributes(
            AddSearchAttributesRequest(namespace=NAMESPACE, search_attributes=added)
        )
    wanted = [info for info in RUNS if info.execution.workflow_id not in BY_ITSELF and info.task_queue != "later"]
    runs = [
        (info, await started(server, info)) for info in sorted(wanted, key=lambda info: info.start_time.ToNanoseconds())
    ]
    taken: dict[str, Any] = {}
    for info, run in sorted(runs, key=lambda pair: pair[0].close_time.ToNanoseconds()):
        await ended(server, info, run, taken)
    await families(server, {info.execution.workflow_id: run for info, run in runs})
    await settled(server, len(wanted) + 3)
    return server


async def started(server: Server, info: WorkflowExecutionInfo) -> Run:
    times_out = info.status == Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT
    own = {name: value for name, value in info.search_attributes.indexed_fields.items() if name != "BuildIds"}
    return await server.start(
        queue=info.task_queue,
        workflow_id=info.execution.workflow_id,
        workflow_type={"name": info.type.name},
        search_attributes={"indexed_fields": own},
        memo=info.memo,
        **({"workflow_run_timeout": seconds(1)} if times_out else {}),
    )


async def ended(server: Server, info: WorkflowExecutionInfo, run: Run, taken: dict[str, Any]) -> None:
    """`taken` holds the tasks of other runs that came before the one that was asked for."""
    if info.status == Status.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
        await server.closed(run)
    elif info.status == Status.WORKFLOW_EXECUTION_STATUS_TERMINATED:
        await server.terminate(run)
    elif info.status in ENDS:
        if info.status == Status.WORKFLOW_EXECUTION_STATUS_CANCELED:
            await server.cancel(run)
        while run.workflow_id not in taken:
            task = await server.workflow_task(info.task_queue)
            taken[task.workflow_execution.workflow_id] = task
        await server.complete_task(taken[run.workflow_id], ENDS[info.status])


async def families(server: Server, runs: dict[str, Run]) -> None:
    parent = runs["parent-1"]
    for child, queue in (("child-1", "children"), ("grandchild-1", "grandchildren")):
        begin = command(
            "start_child_workflow_execution",
            workflow_id=child,
            workflow_type={"name": "Child"},
            task_queue={"name": queue},
        )
        await server.do(parent, begin)
        await server.reached(parent, "CHILD_WORKFLOW_EXECUTION_STARTED")
        parent = Run(child, "", queue)
    paused = runs["paused-1"]
    await server.call(
        "PauseWorkflowExecution",
        workflow_id=paused.workflow_id,
        run_id=paused.run_id,
        identity="t",
        reason="r",
        request_id="p",
    )


async def settled(server: Server, number: int) -> None:
    async with asyncio.timeout(SETTLED_S):
        for query, expected in (
            ("TemporalNamespaceDivision IS NULL OR RunId != ''", number),
            ("CloseTime IS NOT NULL", 6),
        ):
            while (await server.call("CountWorkflowExecutions", query=query)).count != expected:
                pass


async def answer(server: Server, query: str) -> tuple[Any, ...]:
    """What is compared: the runs in order, the count and its groups; or the refusals of both calls."""
    seen: list[Any] = []
    for method in ("ListWorkflowExecutions", "CountWorkflowExecutions"):
        try:
            found = await server.call(method, query=query)
        except grpc.aio.AioRpcError as error:
            seen.append(error.code().name)
            continue
        if method == "ListWorkflowExecutions":
            seen.append([(info.execution.workflow_id, info.status) for info in found.executions])
        else:
            groups = sorted((group.group_values[0].data, group.count) for group in found.groups)
            seen.append((found.count, groups))
    return tuple(seen)


async def compare(theirs: str, ours: str) -> int:
    official_server, own_server = await asyncio.gather(prepared(theirs), prepared(ours))
    queries = [recorded["query"] for recorded in RECORDED["answers"] if recorded["query"] not in DIFFERENT]
    differences, refused = 0, 0
    for query in queries:
        expected, actual = await asyncio.gather(answer(official_server, query), answer(own_server, query))
        refused += isinstance(actual[0], str)
        if expected != actual:
            differences += 1
            print(f"{query!r}\n  official: {expected}\n  ours:     {actual}")
    print(f"{len(queries)} queries, {refused} of them refused: {differences} differences")
    return differences


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.visibility.live", description=__doc__)
    parser.add_argument("--peer", choices=list(PEERS), default="sqlite")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tinytemporal-live-") as name:
        folder = Path(name)
        with official(folder) as theirs, PEERS[options.peer](folder) as ours:
            sys.exit(asyncio.run(compare(theirs.address, ours.address)) > 0)


if __name__ == "__main__":
    main()
