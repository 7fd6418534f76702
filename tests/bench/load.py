"""The load: a client and a worker in one process over raw gRPC, so that a figure shows the server and not an SDK.

Each workflow is started and awaited by a client call; pollers play its worker. The worker keeps no state but what a
task's history tells it, with a sticky queue as every SDK has.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import grpc
from google.protobuf.duration_pb2 import Duration
from temporalio.api.command.v1 import (
    Command,
    CompleteWorkflowExecutionCommandAttributes,
    ScheduleActivityTaskCommandAttributes,
)
from temporalio.api.common.v1 import ActivityType, Payload, Payloads, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import CommandType, EventType, HistoryEventFilterType, TaskQueueKind
from temporalio.api.taskqueue.v1 import StickyExecutionAttributes, TaskQueue
from temporalio.api.workflowservice import v1 as ws
from temporalio.api.workflowservice.v1.service_pb2_grpc import WorkflowServiceStub

RESULT = Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=b'"' + b"x" * 64 + b'"')])
CHANNELS = 4
CALL_S = 60.0
POLL_S = 90.0
FINISH = Command(
    command_type=CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
    complete_workflow_execution_command_attributes=CompleteWorkflowExecutionCommandAttributes(result=RESULT),
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`activities` activities, all at once (`fanout`) or one after another, then the workflow completes."""

    name: str
    activities: int = 0
    fanout: bool = False
    workflows: int
    concurrency: int
    pollers: int = 10


@dataclass(kw_only=True)
class Figures:
    """What one run of a scenario gave; times in milliseconds."""

    workflows_per_s: float
    p50_ms: float
    p99_ms: float
    completed: int
    errors: Counter[str] = field(default_factory=Counter)


class Load:
    """One scenario against one address. `run` makes the channels, warms up, measures and stops its pollers."""

    def __init__(self, *, address: str, scenario: Scenario) -> None:
        self._address = address
        self._scenario = scenario
        self._queue = f"bench-{uuid4().hex[:8]}"
        self._stubs: list[Any] = []
        self._turn = 0
        self._errors: Counter[str] = Counter()
        self._scheduled: dict[str, int] = {}
        """Run id → activities scheduled so far, of runs that are not over."""

    @property
    def _stub(self) -> Any:
        self._turn += 1
        return self._stubs[self._turn % CHANNELS]

    async def run(self, *, warmup: int, on_measure: Callable[[], None]) -> Figures:
        """`on_measure` is called when the warm-up is over and the measured part begins."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        channels = [grpc.aio.insecure_channel(self._address, options=options) for _ in range(CHANNELS)]
        self._stubs = [WorkflowServiceStub(channel) for channel in channels]
        pollers = [asyncio.create_task(poller) for poller in self._pollers()]
        try:
            await self._many(range(-warmup, 0))
            on_measure()
            began = time.perf_counter()
            latencies = await self._many(range(self._scenario.workflows))
            took = time.perf_counter() - began
        finally:
            for poller in pollers:
                poller.cancel()
            await asyncio.gather(*pollers, return_exceptions=True)
            for channel in channels:
                await channel.close()
        done = sorted(1_000 * latency for latency in latencies)
        return Figures(
            workflows_per_s=len(done) / took,
            p50_ms=statistics.median(done),
            p99_ms=done[int(len(done) * 0.99)],
            completed=len(done),
            errors=self._errors,
        )

    async def _many(self, numbers: Iterable[int]) -> list[float]:
        gate = asyncio.Semaphore(self._scenario.concurrency)

        async def one(number: int) -> float | None:
            async with gate:
                began = time.perf_counter()
                try:
                    await self._workflow(number)
                except grpc.aio.AioRpcError as error:
                    self._errors[f"client {error.code().name}"] += 1
                    return None
                return time.perf_counter() - began

        results = await asyncio.gather(*(one(number) for number in numbers))
        return [result for result in results if result is not None]

    async def _workflow(self, number: int) -> None:
        workflow_id = f"{self._queue}-{number}"
        started = await self._stub.StartWorkflowExecution(
            ws.StartWorkflowExecutionRequest(
                namespace="default",
                workflow_id=workflow_id,
                workflow_type=WorkflowType(name="bench"),
                task_queue=TaskQueue(name=self._queue),
                input=RESULT,
                request_id=str(uuid4()),
            ),
            timeout=CALL_S,
        )
        execution = WorkflowExecution(workflow_id=workflow_id, run_id=started.run_id)
        token = b""
        while True:
            answer = await self._stub.GetWorkflowExecutionHistory(
                ws.GetWorkflowExecutionHistoryRequest(
                    namespace="default",
                    execution=execution,
                    wait_new_event=True,
                    next_page_token=token,
                    history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
                ),
                timeout=POLL_S,
            )
            if answer.history.events:
                self._scheduled.pop(started.run_id, None)
                return
            token = answer.next_page_token

    def _pollers(self) -> list[Any]:
        sticky = TaskQueue(
            name=f"{self._queue}-sticky", kind=TaskQueueKind.TASK_QUEUE_KIND_STICKY, normal_name=self._queue
        )
        pollers: list[Any] = []
        for _ in range(self._scenario.pollers):
            pollers.append(self._poll(self._workflow_task, queue=TaskQueue(name=self._queue), sticky=sticky))
            pollers.append(self._poll(self._workflow_task, queue=sticky, sticky=sticky))
            if self._scenario.activities:
                pollers.append(self._poll(self._activity_task, queue=TaskQueue(name=self._queue), sticky=sticky))
        return pollers

    async def _poll(self, handle: Callable[..., Any], *, queue: TaskQueue, sticky: TaskQueue) -> None:
        while True:
            try:
                await handle(queue=queue, sticky=sticky)
            except grpc.aio.AioRpcError as error:
                self._errors[f"worker {error.code().name}"] += 1

    async def _workflow_task(self, *, queue: TaskQueue, sticky: TaskQueue) -> None:
        task = await self._stub.PollWorkflowTaskQueue(
            ws.PollWorkflowTaskQueueRequest(namespace="default", task_queue=queue, identity="bench"), timeout=POLL_S
        )
        if not task.task_token:
            return
        await self._stub.RespondWorkflowTaskCompleted(
            ws.RespondWorkflowTaskCompletedRequest(
                namespace="default",
                task_token=task.task_token,
                identity="bench",
                commands=self._commands(task),
                sticky_attributes=StickyExecutionAttributes(
                    worker_task_queue=sticky, schedule_to_start_timeout=Duration(seconds=10)
                ),
            ),
            timeout=CALL_S,
        )

    def _commands(self, task: ws.PollWorkflowTaskQueueResponse) -> list[Command]:
        wanted = self._scenario.activities
        run_id = task.workflow_execution.run_id
        scheduled = self._scheduled.get(run_id, 0)
        finished = sum(
            event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED for event in task.history.events
        )
        done = self._scheduled.get(f"{run_id} done", 0) + finished
        if done >= wanted:
            self._scheduled.pop(f"{run_id} done", None)
            return [FINISH]
        self._scheduled[f"{run_id} done"] = done
        upto = wanted if self._scenario.fanout else min(wanted, done + 1)
        self._scheduled[run_id] = max(scheduled, upto)
        return [self._activity(number) for number in range(scheduled + 1, upto + 1)]

    def _activity(self, number: int) -> Command:
        return Command(
            command_type=CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
            schedule_activity_task_command_attributes=ScheduleActivityTaskCommandAttributes(
                activity_id=str(number),
                activity_type=ActivityType(name="echo"),
                task_queue=TaskQueue(name=self._queue),
                input=RESULT,
                schedule_to_close_timeout=Duration(seconds=60),
                start_to_close_timeout=Duration(seconds=30),
            ),
        )

    async def _activity_task(self, *, queue: TaskQueue, sticky: TaskQueue) -> None:
        del sticky
        task = await self._stub.PollActivityTaskQueue(
            ws.PollActivityTaskQueueRequest(namespace="default", task_queue=queue, identity="bench"), timeout=POLL_S
        )
        if task.task_token:
            await self._stub.RespondActivityTaskCompleted(
                ws.RespondActivityTaskCompletedRequest(
                    namespace="default", task_token=task.task_token, identity="bench", result=RESULT
                ),
                timeout=CALL_S,
            )
