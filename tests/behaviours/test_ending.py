"""Cancelling and terminating, once, twice, too late, and along a chain of runs."""

import grpc

from .harness import Refusal, Run, Server, attributes, command, refusal, types, unique


def not_found(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.NOT_FOUND, message, "NotFoundFailure")


COMPLETED = not_found("workflow execution already completed")


def unknown(workflow_id: str) -> Run:
    return Run(workflow_id, "", "")


async def test_b05_cancelling_a_completed_run_changes_nothing(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    before = await server.history(run)
    await server.cancel(run)
    assert await server.history(run) == before


async def test_b05_cancelling_twice_records_it_once(server: Server) -> None:
    run = await server.start()
    await server.cancel(run, reason="first")
    await server.cancel(run, reason="second")
    requested = [
        e for e in await server.history(run) if e.HasField("workflow_execution_cancel_requested_event_attributes")
    ]
    assert [attributes(e).cause for e in requested] == ["first"]


async def test_b05_cancelling_an_unknown_workflow(server: Server) -> None:
    workflow_id = unique("never")
    assert await refusal(server.cancel(unknown(workflow_id))) == not_found(f"workflow not found for ID: {workflow_id}")


async def test_b05_terminating_an_unknown_workflow(server: Server) -> None:
    workflow_id = unique("never")
    assert await refusal(server.terminate(unknown(workflow_id))) == not_found(
        f"workflow not found for ID: {workflow_id}"
    )


async def test_b05_terminating_a_closed_run(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    before = await server.history(run)
    assert await refusal(server.terminate(run)) == COMPLETED
    assert await server.history(run) == before


async def test_b05_cancelling_a_terminated_run_by_workflow_id(server: Server) -> None:
    run = await server.start()
    await server.terminate(run, reason="enough")
    await server.cancel(unknown(run.workflow_id))
    assert types(await server.history(run))[-1] == "WORKFLOW_EXECUTION_TERMINATED"


async def chain(server: Server) -> tuple[Run, Run]:
    """A run that continued as a second one."""
    first = await server.start()
    await server.do(first, command("continue_as_new_workflow_execution"))
    second_id = (await server.closed(first)).workflow_execution_continued_as_new_event_attributes.new_execution_run_id
    return first, Run(first.workflow_id, second_id, first.queue)


async def test_b06_terminate_with_the_first_run_id_of_the_chain_acts_on_the_current_run(server: Server) -> None:
    first, second = await chain(server)
    await server.terminate(first, first_execution_run_id=first.run_id)
    assert types([await server.closed(second)]) == ["WORKFLOW_EXECUTION_TERMINATED"]


async def test_b06_cancel_with_the_first_run_id_of_the_chain_acts_on_the_current_run(server: Server) -> None:
    first, second = await chain(server)
    await server.cancel(first, first_execution_run_id=first.run_id)
    assert "WORKFLOW_EXECUTION_CANCEL_REQUESTED" in types(await server.history(second))


async def test_b06_the_first_run_id_of_another_chain_is_not_found(server: Server) -> None:
    _, second = await chain(server)
    other = await server.start()
    for call in (server.terminate, server.cancel):
        assert await refusal(call(second, first_execution_run_id=other.run_id)) == not_found(
            "workflow execution not found"
        )
    assert (await server.describe(second)).workflow_execution_info.status == 1


async def test_b06_an_update_keeps_to_the_run_it_names(server: Server) -> None:
    first, _ = await chain(server)
    refused = await refusal(
        server.call(
            "UpdateWorkflowExecution",
            workflow_execution=first.execution,
            first_execution_run_id=first.run_id,
            wait_policy={"lifecycle_stage": "UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_COMPLETED"},
            request={"meta": {"update_id": "u"}, "input": {"name": "up"}},
        )
    )
    assert refused == COMPLETED
