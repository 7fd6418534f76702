"""A run kept on one worker's own queue after that worker has gone."""

import asyncio

from .harness import Run, Server, decoded, payloads, sticky, sticky_queue, types, unique

AT_ONCE_S = 10.0  # far less than the sticky timeouts here, enough for a busy machine


async def cached(server: Server, *, timeout_s: float) -> tuple[Run, str]:
    """A run whose first task was answered by a worker that keeps it cached and polls its sticky queue once."""
    run, own = await server.start(), unique("sticky")
    task = await server.workflow_task(run.queue)
    await server.complete_task(task, sticky_attributes=sticky(own, normal=run.queue, timeout_s=timeout_s))
    idle = await server.poll_workflow(sticky_queue(own, normal=run.queue), deadline_s=2.2)
    assert not idle.task_token
    return run, own


async def test_b25_a_cached_run_gets_its_next_task_on_the_sticky_queue(server: Server) -> None:
    run, own = await cached(server, timeout_s=10)
    await server.signal(run)
    task = await server.workflow_task(sticky_queue(own, normal=run.queue))
    assert types(task.history.events) == [
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
    await server.complete_task(task)


async def test_b25_after_the_worker_has_gone_tasks_and_queries_go_to_the_normal_queue(server: Server) -> None:
    (signalled, _), (queried, _) = await asyncio.gather(cached(server, timeout_s=60), cached(server, timeout_s=60))
    # A worker counts as gone 10 s after its last poll; a history long poll waits that out.
    await server.nothing_happens(signalled, for_s=11.5)

    await server.signal(signalled)
    task = await server.workflow_task(signalled.queue, deadline_s=AT_ONCE_S)
    assert types(task.history.events)[0] == "WORKFLOW_EXECUTION_STARTED"
    assert "WORKFLOW_TASK_TIMED_OUT" not in types(await server.history(signalled))

    waiting = asyncio.create_task(server.query(queried))
    task = await server.workflow_task(queried.queue, deadline_s=AT_ONCE_S)
    assert types(task.history.events)[0] == "WORKFLOW_EXECUTION_STARTED"
    await server.call(
        "RespondQueryTaskCompleted", task_token=task.task_token, completed_type=1, query_result=payloads(1)
    )
    assert decoded((await waiting).query_result) == [1]


async def test_b25_shutdown_of_the_worker_sends_the_next_task_to_the_normal_queue(server: Server) -> None:
    run, own = await cached(server, timeout_s=60)
    await server.call("ShutdownWorker", sticky_task_queue=own, identity="worker", reason="done")
    await server.signal(run)
    task = await server.workflow_task(run.queue, deadline_s=AT_ONCE_S)
    assert types(task.history.events)[0] == "WORKFLOW_EXECUTION_STARTED"
    assert "WORKFLOW_TASK_TIMED_OUT" not in types(await server.history(run))


async def test_b25_shutdown_leaves_no_task_behind_on_the_sticky_queue(server: Server) -> None:
    run, own = await cached(server, timeout_s=2)
    await server.signal(run)
    await server.call("ShutdownWorker", sticky_task_queue=own, identity="worker", reason="done")
    task = await server.workflow_task(run.queue, deadline_s=8)
    assert types(task.history.events)[0] == "WORKFLOW_EXECUTION_STARTED"


async def test_b25_a_sticky_task_that_nobody_takes_times_out_to_the_normal_queue(server: Server) -> None:
    run, _ = await cached(server, timeout_s=1)
    await server.signal(run)
    task = await server.workflow_task(run.queue, deadline_s=8)
    assert types(task.history.events)[0] == "WORKFLOW_EXECUTION_STARTED"
    assert types(await server.history(run))[4:] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_TIMED_OUT",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
    ]
