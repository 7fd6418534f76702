"""The load driver of `tests.bench`, made to go on for ever through failures, with a channel to each frontend.

What the measuring driver may take for granted is not so here: a completion's answer may be lost and its task come again, so the
worker looks at the whole history each time (and has no sticky queue; the SDK's load has).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import grpc
from google.protobuf.duration_pb2 import Duration
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType, HistoryEventFilterType, WorkflowIdReusePolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws
from temporalio.api.workflowservice.v1.service_pb2_grpc import WorkflowServiceStub

from common.clock import Clock
from tests.bench.load import FINISH, RESULT, Load, Scenario
from tests.chaos.throughput import Throughput

CALL_S = 3.0
WAIT_S = 3.0
POLL_S = 4.0
PAUSE = timedelta(milliseconds=100)
ACTIVITIES = 2
POLLERS = 6


class RawLoad(Load):
    """`start_and_wait` by any number of starters between `open` and `close`. `acknowledged`, `ends`: as of `SdkLoad`."""

    def __init__(self, *, addresses: list[str], throughput: Throughput, clock: Clock) -> None:
        scenario = Scenario(name="chaos", activities=ACTIVITIES, workflows=0, concurrency=0, pollers=POLLERS)
        super().__init__(address=addresses[0], scenario=scenario)
        self._addresses = addresses
        self._throughput = throughput
        self._clock = clock
        self._channels: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.ends = asyncio.Event()
        self.acknowledged: set[str] = set()
        self.completed: set[str] = set()

    @property
    def errors(self) -> Counter[str]:
        return self._errors

    async def open(self) -> None:
        options = [("grpc.max_reconnect_backoff_ms", 500)]
        self._channels = [grpc.aio.insecure_channel(address, options=options) for address in self._addresses]
        self._stubs = [WorkflowServiceStub(channel) for channel in self._channels]
        self._tasks = [asyncio.create_task(poller) for poller in self._pollers()]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels:
            await channel.close()

    async def start_and_wait(self, *, first: int, pace: timedelta) -> None:
        """At the `first` frontend until it fails, then at the next, and so on."""
        at = first
        while not self.ends.is_set():
            workflow_id = f"raw-{uuid4().hex}"
            at = await self._start(workflow_id, at)
            at = await self._wait_for(workflow_id, at)
            await self._clock.sleep(pace)

    async def _start(self, workflow_id: str, at: int) -> int:
        request = ws.StartWorkflowExecutionRequest(
            namespace="default",
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name="ChaosRaw"),
            task_queue=TaskQueue(name=self._queue),
            input=RESULT,
            request_id=str(uuid4()),
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
            workflow_task_timeout=Duration(seconds=3),
        )
        # The same request again is the same start, so it is repeated until it is answered.
        _, at = await self._repeat("start", at, lambda stub: stub.StartWorkflowExecution(request, timeout=CALL_S))
        self.acknowledged.add(workflow_id)
        return at

    async def _wait_for(self, workflow_id: str, at: int) -> int:
        request = ws.GetWorkflowExecutionHistoryRequest(
            namespace="default",
            execution=WorkflowExecution(workflow_id=workflow_id),
            wait_new_event=True,
            history_event_filter_type=HistoryEventFilterType.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
        )
        while True:
            answer, at = await self._repeat(
                "result", at, lambda stub: stub.GetWorkflowExecutionHistory(request, timeout=WAIT_S)
            )
            if answer.history.events:
                break
        self.completed.add(workflow_id)
        self._throughput.completed()
        return at

    async def _repeat(self, name: str, at: int, call: Callable[[Any], Any]) -> tuple[Any, int]:
        """The answer, and the frontend that gave it."""
        while True:
            try:
                return await call(self._stubs[at % len(self._stubs)]), at
            except grpc.aio.AioRpcError as error:
                self._errors[f"raw {name} {error.code().name}"] += 1
                at += 1
                await self._clock.sleep(PAUSE)

    def _pollers(self) -> list[Any]:
        queue = TaskQueue(name=self._queue)
        handlers = [self._workflow_task, self._activity_task] * POLLERS
        return [self._poll(handle, queue=queue, sticky=queue) for handle in handlers]

    async def _poll(self, handle: Callable[..., Any], *, queue: TaskQueue, sticky: TaskQueue) -> None:
        """At one frontend until it fails, then at the next."""
        del sticky
        self._turn += 1
        at = self._turn // 2  # pollers of both kinds at each
        while True:
            try:
                await handle(queue=queue, at=at % len(self._stubs))
            except grpc.aio.AioRpcError as error:
                self._errors[f"raw worker {error.code().name}"] += 1
                at += 1
                await self._clock.sleep(PAUSE)

    async def _workflow_task(self, *, queue: TaskQueue, at: int) -> None:  # type: ignore[override]
        task = await self._stubs[at].PollWorkflowTaskQueue(
            ws.PollWorkflowTaskQueueRequest(namespace="default", task_queue=queue, identity="chaos"), timeout=POLL_S
        )
        if task.task_token:
            done = ws.RespondWorkflowTaskCompletedRequest(
                namespace="default", task_token=task.task_token, identity="chaos", commands=self._commands(task)
            )
            await self._answer(at, lambda stub: stub.RespondWorkflowTaskCompleted(done, timeout=CALL_S))

    async def _activity_task(self, *, queue: TaskQueue, at: int) -> None:  # type: ignore[override]
        task = await self._stubs[at].PollActivityTaskQueue(
            ws.PollActivityTaskQueueRequest(namespace="default", task_queue=queue, identity="chaos"), timeout=POLL_S
        )
        if task.task_token:
            done = ws.RespondActivityTaskCompletedRequest(
                namespace="default", task_token=task.task_token, identity="chaos", result=RESULT
            )
            await self._answer(at, lambda stub: stub.RespondActivityTaskCompleted(done, timeout=CALL_S))

    async def _answer(self, at: int, call: Callable[[Any], Any]) -> None:
        """To the frontend that the task came from, or to the other when that one is not there any more."""
        try:
            await call(self._stubs[at])
        except grpc.aio.AioRpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
            await call(self._stubs[(at + 1) % len(self._stubs)])

    def _commands(self, task: ws.PollWorkflowTaskQueueResponse) -> list[Command]:
        kinds = [event.event_type for event in task.history.events]
        scheduled = kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
        completed = kinds.count(EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED)
        if completed < scheduled:
            return []
        return [FINISH] if completed >= ACTIVITIES else [self._activity(scheduled + 1)]

    def _activity(self, number: int) -> Command:
        command = super()._activity(number)
        attributes = command.schedule_activity_task_command_attributes
        attributes.ClearField("schedule_to_close_timeout")
        attributes.start_to_close_timeout.CopyFrom(Duration(seconds=3))
        return command
