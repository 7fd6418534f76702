"""Workers versioned by build id, the older way: sets of compatible builds, and rules that assign builds and redirect them."""

import json
from typing import Any

import grpc
from temporalio.api.taskqueue.v1 import BuildIdAssignmentRule, CompatibleBuildIdRedirectRule
from temporalio.api.workflowservice import v1 as workflow_v1

from .harness import Refusal, Run, Server, attributes, refusal, unique

SETS = workflow_v1.UpdateWorkerBuildIdCompatibilityRequest
RULES = workflow_v1.UpdateWorkerVersioningRulesRequest


def of(build_id: str) -> dict[str, Any]:
    return {"build_id": build_id, "use_versioning": True}


async def workflow_task(server: Server, queue: str, build_id: str) -> Any:
    return await server.workflow_task(queue, worker_version_capabilities=of(build_id))


async def complete(server: Server, task: Any, build_id: str) -> None:
    await server.complete_task(task, worker_version_stamp=of(build_id))


async def change_rules(server: Server, queue: str, **operation: Any) -> None:
    token = (await server.call("GetWorkerVersioningRules", task_queue=queue)).conflict_token
    await server.call("UpdateWorkerVersioningRules", task_queue=queue, conflict_token=token, **operation)


async def started(server: Server, run: Run) -> list[tuple[str, int]]:
    """The builds and redirect counts of the started events of workflow tasks."""
    found = []
    for event in await server.history(run):
        if event.HasField("workflow_task_started_event_attributes"):
            started = attributes(event)
            found.append((started.worker_version.build_id, started.build_id_redirect_counter))
    return found


async def builds_of(server: Server, run: Run) -> tuple[str, list[str]]:
    """The assigned build, and the search attribute."""
    info = (await server.describe(run)).workflow_execution_info
    payload = info.search_attributes.indexed_fields["BuildIds"]
    return info.assigned_build_id, json.loads(payload.data)


async def test_version_sets(server: Server) -> None:
    queue = unique("queue")
    await server.call("UpdateWorkerBuildIdCompatibility", task_queue=queue, add_new_build_id_in_new_default_set="1.0")
    old = await server.start(queue=queue)
    await complete(server, await workflow_task(server, queue, "1.0"), "1.0")
    added = SETS.AddNewCompatibleVersion(new_build_id="1.1", existing_compatible_build_id="1.0")
    await server.call("UpdateWorkerBuildIdCompatibility", task_queue=queue, add_new_compatible_build_id=added)
    await server.call("UpdateWorkerBuildIdCompatibility", task_queue=queue, add_new_build_id_in_new_default_set="2.0")
    new = await server.start(queue=queue)
    await server.signal(old)

    assert await refusal(server.poll_workflow(queue, worker_version_capabilities=of("1.0"))) == Refusal(
        grpc.StatusCode.OUT_OF_RANGE, 'Task queue has a newer compatible build: "1.1"', "NewerBuildExistsFailure"
    )
    task = await workflow_task(server, queue, "2.0")
    assert task.workflow_execution == new.execution
    await complete(server, task, "2.0")
    task = await workflow_task(server, queue, "1.1")
    assert task.workflow_execution == old.execution
    await complete(server, task, "1.1")
    assert await builds_of(server, old) == ("", ["versioned:1.0", "versioned:1.1"])
    assert await started(server, old) == [("", 0), ("", 0)]
    reachable = await server.call("GetWorkerTaskReachability", build_ids=["1.0", "2.0"], task_queues=[queue])
    assert [list(build.task_queue_reachability[0].reachability)[:1] for build in reachable.build_id_reachability] == [
        [],
        [1],
    ]


async def test_versioning_rules(server: Server) -> None:
    queue = unique("queue")
    rule = BuildIdAssignmentRule(target_build_id="A")
    await change_rules(server, queue, insert_assignment_rule=RULES.InsertBuildIdAssignmentRule(rule=rule))
    run = await server.start(queue=queue)
    task = await workflow_task(server, queue, "A")
    assert await builds_of(server, run) == ("A", ["assigned:A", "versioned:A"])
    await complete(server, task, "A")
    await change_rules(server, queue, commit_build_id=RULES.CommitBuildId(target_build_id="B", force=True))
    new = await server.start(queue=queue)
    task = await workflow_task(server, queue, "B")
    assert task.workflow_execution == new.execution
    await complete(server, task, "B")

    redirect = CompatibleBuildIdRedirectRule(source_build_id="A", target_build_id="B")
    await change_rules(
        server, queue, add_compatible_redirect_rule=RULES.AddCompatibleBuildIdRedirectRule(rule=redirect)
    )
    await server.signal(run)
    assert await refusal(server.poll_workflow(queue, worker_version_capabilities=of("A"))) == Refusal(
        grpc.StatusCode.OUT_OF_RANGE, 'Task queue has a newer compatible build: "B"', "NewerBuildExistsFailure"
    )
    task = await workflow_task(server, queue, "B")
    assert task.workflow_execution == run.execution
    await complete(server, task, "B")
    assert await builds_of(server, run) == ("B", ["assigned:B", "versioned:A", "versioned:B"])
    assert await started(server, run) == [("A", 0), ("B", 1)]
