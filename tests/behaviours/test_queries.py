"""Queries that no worker can answer."""

import asyncio

import grpc

from .harness import Refusal, Run, Server, decoded, payloads, refusal, unique

NOT_READY = "WorkflowNotReadyFailure"


async def answer_query(server: Server, run: Run, *results: object) -> None:
    task = await server.workflow_task(run.queue)
    assert task.query.query_type
    await server.call(
        "RespondQueryTaskCompleted",
        task_token=task.task_token,
        completed_type="QUERY_RESULT_TYPE_ANSWERED",
        query_result=payloads(*results),
    )


async def test_b02_query_of_a_run_that_no_worker_ever_saw(server: Server) -> None:
    run = await server.start()
    await server.terminate(run)
    assert await refusal(server.query(run, deadline_s=5)) == Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "Workflow execution closed before WorkflowTaskStarted event", NOT_READY
    )


async def test_b02_query_after_the_workers_have_gone(server: Server) -> None:
    queue = unique("queue")
    answer = await server.call(
        "StartWorkflowExecution",
        workflow_id=unique("wf"),
        workflow_type={"name": "Any"},
        task_queue={"name": queue},
        request_eager_execution=True,
    )
    # An eager first task leaves a queue that nobody ever polled; a poll is remembered for 20 s.
    eager = answer.eager_workflow_task
    task = eager if eager.task_token else await server.workflow_task(queue)
    await server.complete_task(task)
    run = Run(task.workflow_execution.workflow_id, answer.run_id, queue)
    assert await refusal(server.query(run, deadline_s=3 if eager.task_token else 22)) == Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "no poller seen for task queue recently, worker may be down"
    )


async def test_b02_a_worker_that_comes_in_time_answers(server: Server) -> None:
    run = await server.start()
    await server.do(run)
    waiting = asyncio.create_task(server.query(run))
    await answer_query(server, run, "here")
    assert decoded((await waiting).query_result) == ["here"]


async def test_b02_query_of_a_closed_run_is_answered(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    waiting = asyncio.create_task(server.query(run))
    await answer_query(server, run, "closed")
    assert decoded((await waiting).query_result) == ["closed"]


async def test_b02_query_while_the_first_workflow_task_keeps_failing(server: Server) -> None:
    run = await server.start()
    for _ in range(3):
        await server.fail_task(await server.workflow_task(run.queue))
    assert await refusal(server.query(run, deadline_s=5)) == Refusal(
        grpc.StatusCode.FAILED_PRECONDITION,
        "Unable to query workflow due to Workflow Task in failed state.",
        NOT_READY,
    )


async def test_b02_query_rejected_by_condition(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    answer = await server.query(run, query_reject_condition="QUERY_REJECT_CONDITION_NOT_OPEN")
    assert answer.query_rejected.status == 2
