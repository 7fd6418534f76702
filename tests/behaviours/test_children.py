"""Child workflows whose id is taken, whose parent has gone, or that are quicker than their parent."""

import asyncio

import grpc
from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import ParentClosePolicy, StartChildWorkflowExecutionFailedCause
from temporalio.api.history.v1 import HistoryEvent

from .harness import Run, Server, attributes, command, payloads, refusal, types, unique, until


def child(run: Run, child_id: str, **fields: object) -> Command:
    fields.setdefault("task_queue", {"name": run.queue})
    return command("start_child_workflow_execution", workflow_id=child_id, workflow_type={"name": "Child"}, **fields)


def concerns(event: HistoryEvent, child_id: str) -> bool:
    named = getattr(attributes(event), "workflow_execution", None)
    return named is not None and named.workflow_id == child_id


async def test_b08_a_child_whose_id_is_running_fails_to_start(server: Server) -> None:
    taken = await server.start()
    run = await server.start()
    await server.do(run, child(run, taken.workflow_id))
    task = await server.workflow_task(run.queue)
    assert task.workflow_execution.workflow_id == run.workflow_id
    failed = attributes(until("START_CHILD_WORKFLOW_EXECUTION_FAILED", task.history.events))
    assert failed.cause == (
        StartChildWorkflowExecutionFailedCause.START_CHILD_WORKFLOW_EXECUTION_FAILED_CAUSE_WORKFLOW_ALREADY_EXISTS
    )
    assert (failed.workflow_id, failed.initiated_event_id) == (taken.workflow_id, 5)
    await server.complete_task(task, command("complete_workflow_execution"))
    assert types([await server.closed(run)]) == ["WORKFLOW_EXECUTION_COMPLETED"]
    assert (await server.describe(taken)).workflow_execution_info.status == 1


async def test_b22_no_abandoned_child_is_left_without_its_first_task(server: Server) -> None:
    async def orphan() -> None:
        run, child_id, child_queue = await server.start(), unique("child"), unique("queue")
        start = child(
            run,
            child_id,
            task_queue={"name": child_queue},
            parent_close_policy=ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON,
        )
        await server.do(run, start, command("complete_workflow_execution"))
        assert types([await server.closed(run)]) == ["WORKFLOW_EXECUTION_COMPLETED"]
        # Whether the child still comes to be is a race that the official server always loses.
        task = await server.poll_workflow(child_queue, deadline_s=8)
        if task.task_token:
            await server.complete_task(task, command("complete_workflow_execution"))
            await server.closed(Run(child_id, "", child_queue))
        else:
            refused = await refusal(server.describe(Run(child_id, "", child_queue)))
            assert refused.code == grpc.StatusCode.NOT_FOUND

    await asyncio.gather(*[orphan() for _ in range(5)])


async def test_b22_a_quick_childs_events_reach_the_parent_in_order(server: Server) -> None:
    run, child_queue = await server.start(), unique("queue")
    ids = [unique("child") for _ in range(5)]
    task = await server.workflow_task(run.queue)
    await server.complete_task(task, *[child(run, i, task_queue={"name": child_queue}) for i in ids])
    for _ in ids:
        await server.complete_task(
            await server.workflow_task(child_queue), command("complete_workflow_execution", result=payloads("quick"))
        )

    events = await server.history(run)
    while types(events).count("CHILD_WORKFLOW_EXECUTION_COMPLETED") < len(ids):
        await server.do(run)
        events = await server.history(run)
    for child_id in ids:
        assert types(e for e in events if concerns(e, child_id)) == [
            "CHILD_WORKFLOW_EXECUTION_STARTED",
            "CHILD_WORKFLOW_EXECUTION_COMPLETED",
        ]
    await server.terminate(run)
