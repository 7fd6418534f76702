"""One run on an engine and a real store, driven transition by transition, each alone in its commit and measured."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.codec import to_json
from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.contracts.tokens import TaskToken, decode_token
from common.records import encode
from history.state import ExecutionState
from history.store.base import ShardWrite
from history.transitions.activities import complete_activity, find_activity, record_heartbeat, start_activity_task
from history.transitions.begin import StartWorkflow
from history.transitions.signals import signal_workflow
from history.transitions.start import start_workflow
from history.transitions.task_completion import complete_workflow_task
from history.transitions.task_response import activity_task_response, workflow_task_response
from history.transitions.task_start import StartedTask, start_workflow_task
from history.workspace import Workspace
from tests.history.commands import marker, schedule_activity
from tests.history.engine_harness import Lab
from tests.history.harness import WORKFLOW_ID, start_request

T = TypeVar("T")


@dataclass
class Samples:
    """Of one kind of transition."""

    wall_us: list[float] = field(default_factory=list)
    """From the call to its durable answer."""
    cpu_us: list[float] = field(default_factory=list)
    """Of the whole process, the database's thread included."""
    rows: list[int] = field(default_factory=list)
    """Rows of the run that the commit writes."""
    sizes: list[int] = field(default_factory=list)
    """Their bytes of JSON."""

    def middle(self, name: str) -> float:
        return median(getattr(self, name))


class SingleRun:
    """A client, a worker and Matching for one run. What it does while `measured` is set counts."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.measured: dict[str, Samples] | None = None
        self.run_id = ""
        self._ids = itertools.count()

    async def _do(self, kind: str, transition: Callable[[Workspace], T]) -> T:
        samples = self.measured
        commits = self._lab.store.commits
        commits.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        result: T = await self._lab.update(WORKFLOW_ID, transition)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if samples is not None:
            sample = samples.setdefault(kind, Samples())
            sample.wall_us.append(wall * 1e6)
            sample.cpu_us.append(cpu * 1e6)
            written = [_written(write) for batch in commits for write in batch]
            sample.rows.append(sum(rows for rows, _ in written))
            sample.sizes.append(sum(size for _, size in written))
        return result

    async def state(self) -> ExecutionState:
        return await self._lab.engine.read(namespace="default", workflow_id=WORKFLOW_ID)

    async def begin(self) -> None:
        start = StartWorkflow(request=start_request(), namespace_id="ns-id")
        self.run_id = (await self._do("start", lambda work: start_workflow(work, start))).run_id

    async def signal(self) -> None:
        request = ws.SignalWorkflowExecutionRequest(
            namespace="default", workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID), signal_name="s"
        )
        await self._do("signal", lambda work: signal_workflow(work, request))

    async def workflow_task(self, *commands: Command) -> None:
        """Start the pending workflow task and complete it."""
        task = (await self.state()).info.workflow_task
        assert task is not None
        request = RecordWorkflowTaskStarted(
            namespace="default",
            workflow_id=WORKFLOW_ID,
            run_id=self.run_id,
            scheduled_event_id=task.scheduled_event_id,
            request_id=f"poll-{next(self._ids)}",
            poll=ws.PollWorkflowTaskQueueRequest(task_queue=TaskQueue(name="queue"), identity="worker"),
        )
        started = await self._do("start task", lambda work: start_workflow_task(work, request))
        token = _token(started)
        completion = ws.RespondWorkflowTaskCompletedRequest(commands=commands, identity="worker")
        await self._do("complete task", lambda work: complete_workflow_task(work, completion, token))

    async def activity(self) -> None:
        """Start the oldest pending activity, heartbeat, complete it."""
        item = next(iter((await self.state()).activities.values()))
        request = RecordActivityTaskStarted(
            namespace="default",
            workflow_id=WORKFLOW_ID,
            run_id=self.run_id,
            scheduled_event_id=item.scheduled_event_id,
            request_id=f"poll-{next(self._ids)}",
            poll=ws.PollActivityTaskQueueRequest(task_queue=TaskQueue(name="queue"), identity="worker"),
        )
        started = await self._do("start activity", lambda work: start_activity_task(work, request))
        token = decode_token(TaskToken, activity_task_response(started).task_token)

        def heartbeat(work: Workspace) -> None:
            draft = work.run(self.run_id)
            record_heartbeat(draft, find_activity(draft, token), details=None)

        def complete(work: Workspace) -> None:
            draft = work.run(self.run_id)
            complete_activity(draft, find_activity(draft, token), result=None, identity="worker")

        await self._do("heartbeat", heartbeat)
        await self._do("complete activity", complete)

    # --- getting somewhere

    async def grow_to(self, events: int) -> None:
        """Until the history has about so many events."""
        while (missing := events - (await self.state()).info.next_event_id) > 0:
            if (await self.state()).info.workflow_task is None:
                await self.signal()
            await self.workflow_task(*(marker(f"m{number}") for number in range(min(missing, 500))))

    async def pend(self, activities: int) -> None:
        """Until so many activities are pending."""
        missing = activities - len((await self.state()).activities)
        if (await self.state()).info.workflow_task is None:
            await self.signal()
        await self.workflow_task(*(self.schedule() for _ in range(missing)))

    def schedule(self) -> Command:
        return schedule_activity(f"a{next(self._ids)}", start_to_close=600, heartbeat=60)


def _token(started: StartedTask) -> TaskToken:
    return decode_token(TaskToken, workflow_task_response(started, events=[]).task_token)


def _written(write: ShardWrite) -> tuple[int, int]:
    rows = size = 0
    for run in write.runs:
        records: Sequence[Any] = [run.info, *(record for _, _, record in run.items)]
        rows += len(run.events) + len(run.items) + (run.info is not None)
        size += sum(len(encode(record)) for record in records if record is not None)
        size += sum(len(to_json(event)) for event in run.events)
    return rows, size
