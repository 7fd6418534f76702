"""A table, a History that is a fake, a clock that stands still: a schedule from its creation on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.common.v1 import Payloads
from temporalio.api.enums.v1 import ScheduleOverlapPolicy, WorkflowExecutionStatus
from temporalio.api.failure.v1 import Failure
from temporalio.api.schedule.v1 import IntervalSpec, Schedule, ScheduleInfo, SchedulePatch, ScheduleSpec
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from common.contracts.schedules import RunClosed, RunEnd, ScheduleRecord
from common.database import Database
from common.errors import WorkflowExecutionAlreadyStarted
from common.protos import duration
from history.config import HistoryConfig
from worker.schedules.loop import ScheduleLoop
from worker.schedules.runner import ScheduleRunner
from worker.schedules.service import ScheduleService
from worker.schedules.store import ScheduleStore

START = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
Status = WorkflowExecutionStatus
Policy = ScheduleOverlapPolicy


class FakeHistory:
    """Starts what it is told, once for each workflow id; the same request again gives the same run."""

    def __init__(self) -> None:
        self.starts: list[ws.StartWorkflowExecutionRequest] = []
        self.ends: list[Any] = []
        self.refusals: list[Exception] = []
        """Raised, one a call, before anything is done."""
        self.lost: list[Exception] = []
        """Raised, one a call, after it was done."""

    async def start_workflow_execution(
        self, request: ws.StartWorkflowExecutionRequest
    ) -> ws.StartWorkflowExecutionResponse:
        if self.refusals:
            raise self.refusals.pop(0)
        known = next((r for r in self.starts if r.workflow_id == request.workflow_id), None)
        if known is None:
            self.starts.append(request)
        elif known.request_id != request.request_id:
            raise WorkflowExecutionAlreadyStarted("running", start_request_id="", run_id="")
        if self.lost:
            raise self.lost.pop(0)
        return ws.StartWorkflowExecutionResponse(run_id=run_id(request.workflow_id))

    async def request_cancel_workflow_execution(self, request: ws.RequestCancelWorkflowExecutionRequest) -> None:
        self.ends.append(request)

    async def terminate_workflow_execution(self, request: ws.TerminateWorkflowExecutionRequest) -> None:
        self.ends.append(request)

    @property
    def started(self) -> list[str]:
        """The times in the ids of the runs."""
        return [request.workflow_id.partition("-")[2] for request in self.starts]


class Bench:
    def __init__(self, database: Database) -> None:
        self.clock = ManualClock(START)
        self.history = FakeHistory()
        self.store = ScheduleStore(database=database)
        self.service = ScheduleService(store=self.store, clock=self.clock)

    def runner(self) -> ScheduleRunner:
        return ScheduleRunner(
            store=self.store,
            history=self.history,  # type: ignore[arg-type]
            clock=self.clock,
            config=HistoryConfig(),
        )

    def loop(self) -> ScheduleLoop:
        loop = ScheduleLoop(store=self.store, runner=self.runner(), clock=self.clock)
        self.store.changed = loop.wake
        return loop

    async def create(self, schedule: Schedule, schedule_id: str = "s", **more: Any) -> ScheduleRecord:
        request = ws.CreateScheduleRequest(
            namespace="default", schedule_id=schedule_id, schedule=schedule, request_id="create", **more
        )
        self.service.canonicalize(request.schedule)
        return await self.service.create(request, namespace_id="namespace id")

    async def patch(self, request_id: str = "", **patch: Any) -> None:
        await self.service.patch(
            ws.PatchScheduleRequest(
                namespace="default", schedule_id="s", request_id=request_id, patch=SchedulePatch(**patch)
            )
        )

    async def update(self, schedule: Schedule, **more: Any) -> None:
        request = ws.UpdateScheduleRequest(namespace="default", schedule_id="s", schedule=schedule, **more)
        self.service.canonicalize(request.schedule)
        await self.service.update(request)

    async def run(self) -> None:
        """What is due now."""
        await self.runner().run(namespace="default", schedule_id="s")

    async def pass_time(self, delta: timedelta) -> None:
        """Comes whenever the schedule says, as the loop does, until so much time has passed."""
        until = self.clock.now() + delta
        while True:
            record = await self.store.find(namespace="default", schedule_id="s")
            if record is None or record.next_at is None or record.next_at > until:
                break
            self.clock.advance_to(record.next_at)
            await self.run()
        self.clock.advance_to(until)

    async def now(self) -> ScheduleRecord:
        return await self.store.get(namespace="default", schedule_id="s")

    async def info(self) -> ScheduleInfo:
        """What it shows; nothing may be due."""
        return (await self.service.describe(namespace="default", schedule_id="s")).info

    async def end(
        self,
        status: Status.ValueType = Status.WORKFLOW_EXECUTION_STATUS_COMPLETED,
        *,
        number: int = 0,
        result: Payloads | None = None,
        failure: Failure | None = None,
    ) -> None:
        """The end of the action of that number, as History tells it; by default of what runs."""
        record = await self.now()
        await self.service.run_closed(
            RunClosed(
                namespace="default",
                schedule_id="s",
                incarnation=record.incarnation,
                number=number or record.running[0].number,
                end=RunEnd(status=status, result=result, failure=failure),
            )
        )
        await self.run()


def run_id(workflow_id: str) -> str:
    return f"run of {workflow_id}"


def hourly(policy: Policy.ValueType = Policy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED, **state: Any) -> Schedule:
    schedule = Schedule(spec=ScheduleSpec(interval=[IntervalSpec(interval=duration(HOUR))]))
    action = schedule.action.start_workflow
    action.workflow_id, action.workflow_type.name, action.task_queue.name = "w", "Order", "queue"
    schedule.policies.overlap_policy = policy
    for name, value in state.items():
        setattr(schedule.state, name, value)
    return schedule


def at(hour: int, minute: int = 0) -> str:
    """As in the ids of runs."""
    return f"2027-01-01T{hour:02}:{minute:02}:00Z"
