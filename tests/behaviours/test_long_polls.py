"""Long polls that end without an answer, and the tokens that go on from there."""

import asyncio

from temporalio.api.workflowservice.v1 import ListWorkflowExecutionsResponse

from .harness import CLOSE_EVENT, Server, types, unique


async def test_b01_history_wait_outlives_its_window_and_goes_on(server: Server) -> None:
    run = await server.start()

    async def wait(token: bytes, deadline_s: float):
        return await server.call(
            "GetWorkflowExecutionHistory",
            deadline_s=deadline_s,
            execution=run.execution,
            wait_new_event=True,
            history_event_filter_type=CLOSE_EVENT,
            next_page_token=token,
        )

    first = await wait(b"", 2)
    assert not first.history.events
    assert first.next_page_token
    again = await wait(first.next_page_token, 2)
    assert not again.history.events
    assert again.next_page_token

    waiting = asyncio.create_task(wait(again.next_page_token, 15))
    await server.finish(run, "done")
    last = await waiting
    assert types(last.history.events) == ["WORKFLOW_EXECUTION_COMPLETED"]
    assert last.next_page_token == b""


async def test_b01_history_wait_for_any_event_outlives_its_window(server: Server) -> None:
    run = await server.start()
    first = await server.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True)
    assert types(first.history.events) == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]

    async def more(token: bytes, deadline_s: float):
        return await server.call(
            "GetWorkflowExecutionHistory",
            deadline_s=deadline_s,
            execution=run.execution,
            wait_new_event=True,
            next_page_token=token,
        )

    empty = await more(first.next_page_token, 2)
    assert not empty.history.events
    assert empty.next_page_token
    waiting = asyncio.create_task(more(empty.next_page_token, 15))
    await server.signal(run)
    assert types((await waiting).history.events) == ["WORKFLOW_EXECUTION_SIGNALED"]


async def test_b01_history_wait_on_a_closed_run_ends_at_once(server: Server) -> None:
    run = await server.start()
    await server.terminate(run)
    answer = await server.call(
        "GetWorkflowExecutionHistory",
        deadline_s=5,
        execution=run.execution,
        wait_new_event=True,
        history_event_filter_type=CLOSE_EVENT,
    )
    assert types(answer.history.events) == ["WORKFLOW_EXECUTION_TERMINATED"]
    assert answer.next_page_token == b""


async def test_b03_a_workflow_poll_that_expires_is_no_error(server: Server) -> None:
    task = await server.poll_workflow(unique("idle"), deadline_s=2.5)
    assert task.task_token == b""
    assert not task.HasField("workflow_execution")


async def test_b03_an_activity_poll_that_expires_is_no_error(server: Server) -> None:
    task = await server.poll_activity(unique("idle"), deadline_s=2.5)
    assert task.task_token == b""
    assert not task.HasField("workflow_execution")


async def test_b03_a_poll_cut_short_swallows_no_task(server: Server) -> None:
    queue = unique("queue")
    assert not (await server.poll_workflow(queue, deadline_s=2.2)).task_token
    run = await server.start(queue=queue)
    await server.finish(run)


async def test_b31_an_empty_page_token_is_the_first_page(server: Server) -> None:
    run = await server.start()
    query = f"WorkflowId = '{run.workflow_id}'".encode()
    # A stock message leaves an empty token out; another client may well write the empty field.
    wire = field(1, b"default") + field(3, b"") + field(4, query)
    listing = server.channel.unary_unary("/temporal.api.workflowservice.v1.WorkflowService/ListWorkflowExecutions")
    async with asyncio.timeout(10):  # a list may lag the execution
        while not (answer := ListWorkflowExecutionsResponse.FromString(await listing(wire, timeout=5))).executions:
            pass
    assert [e.execution.run_id for e in answer.executions] == [run.run_id]
    assert answer.next_page_token == b""


def field(number: int, value: bytes) -> bytes:
    """A length-delimited field on the wire."""
    return bytes([number << 3 | 2, len(value)]) + value
