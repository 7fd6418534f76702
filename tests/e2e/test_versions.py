"""Workers of two versions of a deployment, with the stock SDK: pinned workflows stay, others go on at the current one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.api.workflowservice import v1 as ws
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkerDeploymentConfig

from common.clock import RealClock


class Waits:
    def __init__(self) -> None:
        self.done = False

    @workflow.signal
    def finish(self) -> None:
        self.done = True


@workflow.defn(name="Stays", versioning_behavior=VersioningBehavior.PINNED)
class StaysAt1(Waits):
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.done)
        return "v1"


@workflow.defn(name="Stays", versioning_behavior=VersioningBehavior.PINNED)
class StaysAt2(Waits):
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.done)
        return "v2"


@workflow.defn(name="GoesOn", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class GoesOnAt1(Waits):
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.done)
        return "v1"


@workflow.defn(name="GoesOn", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class GoesOnAt2(Waits):
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: self.done)
        return "v2"


async def until(look: Callable[[], Coroutine[Any, Any, bool]]) -> None:
    clock = RealClock()
    async with asyncio.timeout(60):
        while not await look():
            await clock.sleep(timedelta(milliseconds=50))


async def test_pinned_workflows_stay_and_others_upgrade(client: Client, queue: str) -> None:
    name = f"dep-{queue}"

    def worker(build_id: str, *workflows: type) -> Worker:
        version = WorkerDeploymentVersion(deployment_name=name, build_id=build_id)
        return Worker(
            client,
            task_queue=queue,
            workflows=workflows,
            workflow_runner=UnsandboxedWorkflowRunner(),
            deployment_config=WorkerDeploymentConfig(version=version, use_worker_versioning=True),
        )

    async def versions() -> int:
        request = ws.DescribeWorkerDeploymentRequest(namespace="default", deployment_name=name)
        try:
            answer = await client.workflow_service.describe_worker_deployment(request)
        except RPCError:
            return 0
        return len(answer.worker_deployment_info.version_summaries)

    async def make_current(build_id: str) -> None:
        await client.workflow_service.set_worker_deployment_current_version(
            ws.SetWorkerDeploymentCurrentVersionRequest(
                namespace="default", deployment_name=name, build_id=build_id, ignore_missing_task_queues=True
            )
        )

    async with worker("v1", StaysAt1, GoesOnAt1), worker("v2", StaysAt2, GoesOnAt2):

        async def both() -> bool:
            return await versions() == 2

        await until(both)
        await make_current("v1")
        stays = await client.start_workflow("Stays", id=f"stays-{queue}", task_queue=queue)
        goes_on = await client.start_workflow("GoesOn", id=f"goes-on-{queue}", task_queue=queue)

        async def begun() -> bool:
            found = [await handle.describe() for handle in (stays, goes_on)]
            return all(one.raw_description.workflow_execution_info.versioning_info.behavior for one in found)

        await until(begun)
        await make_current("v2")
        for handle in (stays, goes_on):
            await handle.signal("finish")
        assert (await stays.result(), await goes_on.result()) == ("v1", "v2")
        query = f"TemporalWorkerDeploymentVersion = '{name}:v2'"

        async def listed() -> bool:
            return [run.id async for run in client.list_workflows(query)] == [goes_on.id]

        await until(listed)
