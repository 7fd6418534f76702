"""Search attributes that nobody registered."""

import grpc
from temporalio.api.enums.v1 import WorkflowTaskFailedCause

from .harness import Refusal, Server, attributes, command, payloads, refusal, types, until


async def test_b35_upserting_an_unregistered_search_attribute_fails_the_task(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    upsert = command(
        "upsert_workflow_search_attributes",
        search_attributes={"indexed_fields": {"Unregistered": payloads("x").payloads[0]}},
    )
    refused = await refusal(server.complete_task(task, upsert))
    words = "BadSearchAttributes: Namespace default has no mapping defined for search attribute Unregistered"
    assert refused == Refusal(grpc.StatusCode.INVALID_ARGUMENT, words)
    failed = attributes(until("WORKFLOW_TASK_FAILED", await server.history(run)))
    assert failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES
    assert failed.failure.message == words
    again = await server.workflow_task(run.queue)
    assert again.attempt == 2
    await server.complete_task(again, command("complete_workflow_execution"))
    assert types([await server.closed(run)]) == ["WORKFLOW_EXECUTION_COMPLETED"]


async def test_b35_the_wrong_type_for_a_registered_search_attribute_fails_the_task(server: Server) -> None:
    run = await server.start()
    task = await server.workflow_task(run.queue)
    value = payloads("not a time").payloads[0]
    upsert = command(
        "upsert_workflow_search_attributes", search_attributes={"indexed_fields": {"TemporalScheduledStartTime": value}}
    )
    refused = await refusal(server.complete_task(task, upsert))
    assert refused == Refusal(
        grpc.StatusCode.INVALID_ARGUMENT,
        "BadSearchAttributes: invalid value for search attribute TemporalScheduledStartTime of type Datetime: not a time",
    )
    failed = attributes(until("WORKFLOW_TASK_FAILED", await server.history(run)))
    assert failed.cause == WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES
    await server.terminate(run)
