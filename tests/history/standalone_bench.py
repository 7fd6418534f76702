"""Activities without a workflow on an engine over a real database, with a manual clock and a worker by hand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

from temporalio.api.activity.v1 import ActivityExecutionInfo, ActivityExecutionOutcome
from temporalio.api.common.v1 import ActivityType, RetryPolicy
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import ACTIVITY, key_of
from common.clock import ManualClock
from common.contracts.history import HistoryClient, RecordActivityTaskStarted
from common.contracts.matching import AddTask
from history.namespaces import NamespaceRegistry
from history.records import NamespaceRecord
from history.service import history_service
from history.state import ExecutionState
from history.verify import Difference, Verifier
from tests.frontend.fakes import MemoryNamespaceStore
from tests.history.engine_harness import Lab, running_lab
from tests.history.harness import seconds

NAMESPACE = "default"
POLICY = RetryPolicy(initial_interval=seconds(1), backoff_coefficient=2, maximum_interval=seconds(100))


def request(activity_id: str, **fields: Any) -> ws.StartActivityExecutionRequest:
    """As the frontend passes it on: with defaults in what the client left out."""
    given: dict[str, Any] = {
        "activity_type": ActivityType(name="Type"),
        "task_queue": TaskQueue(name="queue"),
        "start_to_close_timeout": seconds(10),
        "retry_policy": POLICY,
        "request_id": f"start-{activity_id}",
        "id_reuse_policy": 1,
        "id_conflict_policy": 1,
    }
    return ws.StartActivityExecutionRequest(namespace=NAMESPACE, activity_id=activity_id, **(given | fields))


def failed(**info: Any) -> Failure:
    return Failure(message="no", application_failure_info=ApplicationFailureInfo(type="Mine", **info))


class StandaloneBench:
    """`history` is what the frontend has; `poll` and what follows is a worker."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.clock: ManualClock = lab.clock
        self.history: HistoryClient = history_service(lab.engine)
        self._taken = 0

    async def start(self, activity_id: str = "a", **fields: Any) -> ws.StartActivityExecutionResponse:
        return await self.history.start_activity_execution(request(activity_id, **fields))

    async def describe(self, activity_id: str = "a", **fields: Any) -> ActivityExecutionInfo:
        asked = {"include_last_failure": True, "include_heartbeat_details": True} | fields
        answer = await self.history.describe_activity_execution(
            ws.DescribeActivityExecutionRequest(namespace=NAMESPACE, activity_id=activity_id, **asked)
        )
        return answer.info

    async def outcome(self, activity_id: str = "a") -> ActivityExecutionOutcome:
        answer = await self.history.poll_activity_execution(
            ws.PollActivityExecutionRequest(namespace=NAMESPACE, activity_id=activity_id)
        )
        return answer.outcome

    async def state(self, activity_id: str = "a", run_id: str = "") -> ExecutionState:
        key = key_of(ACTIVITY, activity_id)
        return await self.lab.engine.read(namespace=NAMESPACE, workflow_id=key, run_id=run_id)

    def of(self, message: Any, activity_id: str = "a", **fields: Any) -> Any:
        """A request about the activity."""
        return message(namespace=NAMESPACE, activity_id=activity_id, **({"request_id": "r"} | fields))

    # --- a worker

    @property
    def _handed_over(self) -> list[AddTask]:
        return [task for task in self.lab.matching.added if task.kind == "activity"]

    async def poll(self) -> ws.PollActivityTaskQueueResponse:
        """The next task that was handed to Matching."""
        await until(lambda: len(self._handed_over) > self._taken)
        task = self._handed_over[self._taken]
        self._taken += 1
        return await self.history.record_activity_task_started(
            RecordActivityTaskStarted(
                namespace=task.namespace,
                workflow_id=task.workflow_id,
                run_id=task.run_id,
                scheduled_event_id=task.scheduled_event_id,
                attempt=task.attempt,
                stamp=task.stamp,
                request_id=f"poll-{self._taken}",
                poll=ws.PollActivityTaskQueueRequest(namespace=NAMESPACE, identity="worker"),
            )
        )

    async def beat(self, token: bytes) -> ws.RecordActivityTaskHeartbeatResponse:
        return await self.history.record_activity_task_heartbeat(
            ws.RecordActivityTaskHeartbeatRequest(namespace=NAMESPACE, task_token=token)
        )

    async def fail(self, token: bytes, failure: Failure | None = None) -> None:
        await self.history.respond_activity_task_failed(
            ws.RespondActivityTaskFailedRequest(
                namespace=NAMESPACE, task_token=token, failure=failure or failed(), identity="worker"
            )
        )

    async def complete(self, token: bytes, **fields: Any) -> None:
        await self.history.respond_activity_task_completed(
            ws.RespondActivityTaskCompletedRequest(namespace=NAMESPACE, task_token=token, identity="worker", **fields)
        )

    # --- time and truth

    def advance(self, by: float) -> None:
        self.clock.advance(timedelta(seconds=by))

    async def verify(self) -> None:
        found: list[Difference] = []
        await Verifier(self.lab.store, shards=2).run(found.append)  # type: ignore[arg-type]
        assert found == []


async def until(holds: Callable[[], bool]) -> None:
    """Let the engine work until it holds."""
    async with asyncio.timeout(20):
        while not holds():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.002):
                    await asyncio.Event().wait()


@asynccontextmanager
async def running_bench(url: str, **lab: Any) -> AsyncIterator[StandaloneBench]:
    """What it leaves in the database agrees with itself."""
    async with running_lab(url, **lab) as made:
        names = MemoryNamespaceStore()
        await names.create(NamespaceRecord(name=NAMESPACE, namespace_id="ns", created_at=made.clock.now()))
        made.engine.namespaces = NamespaceRegistry(store=names, clock=made.clock)
        bench = StandaloneBench(made)
        yield bench
        await bench.verify()
