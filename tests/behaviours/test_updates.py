"""Updates: repeated, rejected, too many, and after the end."""

import asyncio

import grpc
from temporalio.api.enums.v1 import ResourceExhaustedCause, ResourceExhaustedScope, SuggestContinueAsNewReason
from temporalio.api.errordetails.v1 import ResourceExhaustedFailure

from .harness import (
    Refusal,
    Run,
    Server,
    attributes,
    command,
    decoded,
    detail_of,
    error_of,
    refusal,
    types,
    until,
)
from .updating import ACCEPTED, Answers, answer, outcomes, result, update

IN_FLIGHT_LIMIT = 10
TOTAL_LIMIT = 2000


async def idle_run(server: Server) -> Run:
    run = await server.start()
    await server.do(run)
    return run


async def updated(server: Server, run: Run, update_id: str) -> list[object]:
    """Sends one update and answers it as the worker; gives its outcome."""
    calling = asyncio.create_task(update(server, run, update_id))
    task = await server.workflow_task(run.queue)
    await answer(server, task, outcomes(task))
    return decoded((await calling).outcome.success)


async def test_b10_an_update_repeated_after_the_end_gives_its_outcome(server: Server) -> None:
    run = await idle_run(server)
    assert await updated(server, run, "U") == ["U"]
    assert decoded((await update(server, run, "U", deadline_s=5)).outcome.success) == ["U"]
    await server.signal(run)
    await server.finish(run)
    before = await server.history(run)
    assert decoded((await update(server, run, "U", deadline_s=5)).outcome.success) == ["U"]
    assert await refusal(update(server, run, "V", deadline_s=5)) == Refusal(
        grpc.StatusCode.NOT_FOUND, "workflow execution already completed", "NotFoundFailure"
    )
    assert await server.history(run) == before


async def test_b10_an_accepted_update_fails_when_the_workflow_ends(server: Server) -> None:
    run = await idle_run(server)
    calling = asyncio.create_task(update(server, run, "U"))
    task = await server.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    await answer(server, task, answers, command("complete_workflow_execution"))
    failure = (await calling).outcome.failure
    assert failure.message == "Workflow Update failed because the Workflow completed before the Update completed."
    assert failure.application_failure_info.type == "AcceptedUpdateCompletedWorkflow"


async def test_b15_a_rejected_update_leaves_nothing_behind(server: Server) -> None:
    run = await idle_run(server)
    before = await server.history(run)
    calling = asyncio.create_task(update(server, run, "U"))
    task = await server.workflow_task(run.queue)
    assert types(task.history.events)[-2:] == ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED"]
    answers = Answers()
    answers.reject(task.messages[0], "not now")
    await answer(server, task, answers)
    assert (await calling).outcome.failure.message == "not now"
    assert await server.history(run) == before

    await server.signal(run)
    await server.finish(run)
    events = await server.history(run)
    assert [e.event_id for e in events] == list(range(1, len(events) + 1))
    assert types(events)[len(before) :] == [
        "WORKFLOW_EXECUTION_SIGNALED",
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_COMPLETED",
    ]


async def test_b15_an_accepted_update_keeps_its_task(server: Server) -> None:
    run = await idle_run(server)
    await updated(server, run, "U")
    assert types(await server.history(run))[4:] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_COMPLETED",
        "WORKFLOW_EXECUTION_UPDATE_ACCEPTED",
        "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    ]


async def test_b15_a_speculative_task_that_fails_leaves_its_events(server: Server) -> None:
    run = await idle_run(server)
    calling = asyncio.create_task(update(server, run, "U"))
    await server.fail_task(await server.workflow_task(run.queue))
    again = await server.workflow_task(run.queue)
    assert types(await server.history(run))[4:7] == [
        "WORKFLOW_TASK_SCHEDULED",
        "WORKFLOW_TASK_STARTED",
        "WORKFLOW_TASK_FAILED",
    ]
    await answer(server, again, outcomes(again))
    assert decoded((await calling).outcome.success) == ["U"]
    events = await server.history(run)
    assert [e.event_id for e in events] == list(range(1, len(events) + 1))


def assert_too_many_in_flight(error: grpc.aio.AioRpcError) -> None:
    assert Refusal.of(error) == Refusal(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "limit on number of concurrent in-flight updates has been reached (10)",
        "ResourceExhaustedFailure",
    )
    detail = detail_of(error, ResourceExhaustedFailure)
    assert detail.cause == ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT
    assert detail.scope == ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE


async def test_b16_of_eleven_admitted_updates_one_is_refused_at_once(server: Server) -> None:
    run = await idle_run(server)
    calls = [asyncio.create_task(update(server, run, f"u{n}")) for n in range(IN_FLIGHT_LIMIT + 1)]
    done, _ = await asyncio.wait(calls, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    assert_too_many_in_flight(await error_of(done.pop()))
    await server.terminate(run)
    await asyncio.gather(*calls, return_exceptions=True)


async def test_b16_with_ten_accepted_updates_another_is_refused_and_a_repeated_one_joins(server: Server) -> None:
    run = await idle_run(server)
    calls = [asyncio.create_task(update(server, run, f"u{n}", stage=ACCEPTED)) for n in range(IN_FLIGHT_LIMIT)]
    asked = []
    while len(asked) < IN_FLIGHT_LIMIT:
        task = await server.workflow_task(run.queue)
        answers = Answers()
        for message in task.messages:
            answers.accept(message)
        await answer(server, task, answers)
        asked += task.messages
    await asyncio.gather(*calls)

    assert_too_many_in_flight(await error_of(update(server, run, "one too many", deadline_s=5)))
    joining = asyncio.create_task(update(server, run, "u1"))
    await server.signal(run)
    late = Answers()
    for message in asked:
        late.complete(message, message.protocol_instance_id)
    await answer(server, await server.workflow_task(run.queue), late)
    assert await result(server, await joining) == ["u1"]
    assert await updated(server, run, "now there is room") == ["now there is room"]


async def test_b16_rejected_updates_do_not_count_and_the_total_is_limited(server: Server) -> None:
    run = await idle_run(server)
    calling = asyncio.create_task(update(server, run, "rejected"))
    task = await server.workflow_task(run.queue)
    answers = Answers()
    answers.reject(task.messages[0], "no")
    await answer(server, task, answers)
    await calling

    sent = 0
    while sent < TOTAL_LIMIT:
        calls = [asyncio.create_task(update(server, run, f"u{sent + n}")) for n in range(IN_FLIGHT_LIMIT)]
        done = 0
        while done < IN_FLIGHT_LIMIT:
            task = await server.workflow_task(run.queue)
            await answer(server, task, outcomes(task))
            done += len(task.messages)
        await asyncio.gather(*calls)
        sent += IN_FLIGHT_LIMIT

    refused = await refusal(update(server, run, "one too many", deadline_s=5))
    assert (refused.code, refused.detail) == (grpc.StatusCode.FAILED_PRECONDITION, "")
    assert refused.message.startswith(
        "The limit on the total number of distinct updates in this workflow has been reached (2000)."
    )
    assert decoded((await update(server, run, "u7", deadline_s=5)).outcome.success) == ["u7"]
    started = attributes(until("WORKFLOW_TASK_STARTED", await server.history(run)))
    assert started.suggest_continue_as_new
    reason = SuggestContinueAsNewReason.SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES
    assert reason in started.suggest_continue_as_new_reasons


async def test_b16_an_update_waits_for_acceptance_only_when_asked(server: Server) -> None:
    run = await idle_run(server)
    calling = asyncio.create_task(update(server, run, "U", stage=ACCEPTED))
    task = await server.workflow_task(run.queue)
    answers = Answers()
    answers.accept(task.messages[0])
    await answer(server, task, answers)
    reply = await calling
    assert reply.stage == 2
    assert not reply.HasField("outcome")
