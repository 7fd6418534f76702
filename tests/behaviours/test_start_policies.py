"""Starting a workflow whose id is, or was, in use; and starting in a namespace that is a moment old."""

import uuid
from typing import Any

import grpc
import pytest
from temporalio.api.errordetails.v1 import WorkflowExecutionAlreadyStartedFailure

from .harness import (
    Refusal,
    Run,
    Server,
    command,
    detail_of,
    error_of,
    payloads,
    refusal,
    seconds,
    types,
    unique,
)

REUSE = ["UNSPECIFIED", "ALLOW_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE", "TERMINATE_IF_RUNNING"]
CONFLICT = ["UNSPECIFIED", "FAIL", "USE_EXISTING", "TERMINATE_EXISTING"]


def invalid(message: str) -> Refusal:
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, message)


BOTH_POLICIES = invalid(
    "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING cannot be used together with "
    "a WorkflowIDConflictPolicy"
)
REJECT_AND_TERMINATE = invalid(
    "Invalid WorkflowIDReusePolicy: WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE cannot be used together with "
    "WorkflowIdConflictPolicy WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING"
)
RUNNING = "Workflow execution is already running. {which}."
FINISHED = "Workflow execution already finished. {which}. Workflow Id reuse policy: reject duplicate workflow Id."
SUCCEEDED = (
    "Workflow execution already finished successfully. {which}. "
    "Workflow Id reuse policy: allow duplicate workflow Id if last run failed."
)


async def start_again(server: Server, run: Run, reuse: str, conflict: str = "UNSPECIFIED") -> Any:
    return await server.call(
        "StartWorkflowExecution",
        workflow_id=run.workflow_id,
        workflow_type={"name": "Any"},
        task_queue={"name": run.queue},
        request_id=str(uuid.uuid4()),
        workflow_id_reuse_policy=f"WORKFLOW_ID_REUSE_POLICY_{reuse}",
        workflow_id_conflict_policy=f"WORKFLOW_ID_CONFLICT_POLICY_{conflict}",
    )


async def assert_already_started(again: Any, run: Run, message: str) -> None:
    error = await error_of(again)
    assert Refusal.of(error) == Refusal(
        grpc.StatusCode.ALREADY_EXISTS,
        message.format(which=f"WorkflowId: {run.workflow_id}, RunId: {run.run_id}"),
        "WorkflowExecutionAlreadyStartedFailure",
    )
    assert detail_of(error, WorkflowExecutionAlreadyStartedFailure).run_id == run.run_id


@pytest.mark.parametrize("conflict", CONFLICT)
@pytest.mark.parametrize("reuse", REUSE)
async def test_b07_start_while_running(server: Server, reuse: str, conflict: str) -> None:
    run = await server.start()
    again = start_again(server, run, reuse, conflict)
    if reuse == "TERMINATE_IF_RUNNING" and conflict != "UNSPECIFIED":
        assert await refusal(again) == BOTH_POLICIES
    elif reuse == "REJECT_DUPLICATE" and conflict == "TERMINATE_EXISTING":
        assert await refusal(again) == REJECT_AND_TERMINATE
    elif reuse == "TERMINATE_IF_RUNNING" or conflict == "TERMINATE_EXISTING":
        answer = await again
        assert answer.started
        assert answer.run_id != run.run_id
        assert types([await server.closed(run)]) == ["WORKFLOW_EXECUTION_TERMINATED"]
    elif conflict == "USE_EXISTING":
        answer = await again
        assert (answer.run_id, answer.started, answer.status) == (run.run_id, False, 1)
    else:
        await assert_already_started(again, run, RUNNING)


@pytest.mark.parametrize("conflict", ["UNSPECIFIED", "FAIL", "USE_EXISTING", "TERMINATE_EXISTING"])
@pytest.mark.parametrize("failed", [False, True], ids=["completed", "failed"])
@pytest.mark.parametrize("reuse", ["ALLOW_DUPLICATE", "ALLOW_DUPLICATE_FAILED_ONLY", "REJECT_DUPLICATE"])
async def test_b07_start_after_close(server: Server, reuse: str, failed: bool, conflict: str) -> None:
    run = await server.start()
    end = (
        command("fail_workflow_execution", failure={"message": "no"})
        if failed
        else command("complete_workflow_execution")
    )
    await server.do(run, end)
    again = start_again(server, run, reuse, conflict)
    if reuse == "REJECT_DUPLICATE" and conflict == "TERMINATE_EXISTING":
        assert await refusal(again) == REJECT_AND_TERMINATE
    elif reuse == "REJECT_DUPLICATE":
        await assert_already_started(again, run, FINISHED)
    elif reuse == "ALLOW_DUPLICATE_FAILED_ONLY" and not failed:
        await assert_already_started(again, run, SUCCEEDED)
    else:
        answer = await again
        assert answer.started
        assert answer.run_id != run.run_id


async def test_b07_terminate_if_running_after_close_starts(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    assert (await start_again(server, run, "TERMINATE_IF_RUNNING")).started
    assert types(await server.history(run))[-1] == "WORKFLOW_EXECUTION_COMPLETED"


async def test_b07_the_same_request_id_is_the_same_start(server: Server) -> None:
    request_id = str(uuid.uuid4())
    run = await server.start(request_id=request_id)
    again = await server.start(request_id=request_id, workflow_id=run.workflow_id, queue=run.queue)
    assert again.run_id == run.run_id
    await server.finish(run)
    assert (
        await server.start(request_id=request_id, workflow_id=run.workflow_id, queue=run.queue)
    ).run_id == run.run_id


async def test_b13_a_signal_is_recorded_once_for_its_request_id(server: Server) -> None:
    run = await server.start()
    request_id = str(uuid.uuid4())
    await server.signal(run, request_id=request_id, input=payloads(1))
    await server.signal(run, request_id=request_id, input=payloads(1))
    assert types(await server.history(run)).count("WORKFLOW_EXECUTION_SIGNALED") == 1
    await server.finish(run)
    before = await server.history(run)
    await server.signal(run, request_id=request_id, input=payloads(1))
    assert await server.history(run) == before


async def test_b13_a_new_signal_to_a_closed_run(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    assert await refusal(server.signal(run, request_id=str(uuid.uuid4()))) == Refusal(
        grpc.StatusCode.NOT_FOUND, "workflow execution already completed", "NotFoundFailure"
    )


async def test_b13_signal_with_start_is_one_for_its_request_id(server: Server, reference_server: bool) -> None:
    queue, workflow_id, request_id = unique("queue"), unique("wf"), str(uuid.uuid4())

    async def signal_with_start(key: str) -> Any:
        return await server.call(
            "SignalWithStartWorkflowExecution",
            workflow_id=workflow_id,
            workflow_type={"name": "Any"},
            task_queue={"name": queue},
            signal_name="go",
            request_id=key,
        )

    first = await signal_with_start(request_id)
    run = Run(workflow_id, first.run_id, queue)
    assert first.started
    again = await signal_with_start(request_id)
    assert again.run_id == first.run_id
    assert types(await server.history(run)).count("WORKFLOW_EXECUTION_SIGNALED") == 1

    await server.finish(run)
    before = await server.history(run)
    late = await signal_with_start(request_id)
    # The official server forgets the request with the run's end and starts anew; a retried call must not.
    assert (late.run_id == first.run_id) is not reference_server
    assert late.started is reference_server
    assert await server.history(run) == before


async def test_b13_signal_with_start_under_a_new_request_id_after_close(server: Server) -> None:
    run = await server.start()
    await server.finish(run)
    answer = await server.call(
        "SignalWithStartWorkflowExecution",
        workflow_id=run.workflow_id,
        workflow_type={"name": "Any"},
        task_queue={"name": run.queue},
        signal_name="go",
        request_id=str(uuid.uuid4()),
    )
    assert answer.started
    assert answer.run_id != run.run_id


@pytest.mark.parametrize("delay", [0.0, 1.0])
async def test_b18_cron_and_start_delay_exclude_each_other(server: Server, delay: float) -> None:
    refused = await refusal(server.start(cron_schedule="0 0 * * *", workflow_start_delay=seconds(delay)))
    assert refused == invalid("CronSchedule and WorkflowStartDelay may not be used together.")


async def test_b18_an_invalid_cron_schedule(server: Server) -> None:
    refused = await refusal(server.start(cron_schedule="now and then"))
    assert refused == invalid("invalid CronSchedule.")


async def test_b46_a_namespace_works_the_moment_it_is_registered(server: Server) -> None:
    name = unique("ns")
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=seconds(86400))
    fresh = server.within(name)
    run = await fresh.start()
    await fresh.finish(run, "at once")
    assert types([await fresh.closed(run)]) == ["WORKFLOW_EXECUTION_COMPLETED"]
    assert (await fresh.call("DescribeNamespace")).namespace_info.name == name


async def test_b46_a_worker_may_wait_in_a_fresh_namespace_before_any_start(server: Server) -> None:
    name = unique("ns")
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=seconds(86400))
    fresh = server.within(name)
    queue = unique("queue")
    assert not (await fresh.poll_workflow(queue, deadline_s=2.2)).task_token
    run = await fresh.start(queue=queue)
    await fresh.finish(run)


async def test_b46_registering_a_namespace_twice(server: Server) -> None:
    name = unique("ns")
    register = {"namespace": name, "workflow_execution_retention_period": seconds(86400)}
    await server.call("RegisterNamespace", **register)
    assert await refusal(server.call("RegisterNamespace", **register)) == Refusal(
        grpc.StatusCode.ALREADY_EXISTS, f'Namespace "{name}" already exists', "NamespaceAlreadyExistsFailure"
    )
