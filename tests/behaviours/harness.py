"""A raw-gRPC client and a one-step-at-a-time worker.

No SDK stands between a test and the server, so a test says exactly which calls it makes and sees exactly what comes
back. Every call carries a deadline, which is also how "at once" is asserted: a late answer is DEADLINE_EXCEEDED.
"""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.enums.v1 import CommandType, EventType
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.operatorservice import v1 as operator_v1
from temporalio.api.taskqueue.v1 import StickyExecutionAttributes, TaskQueue
from temporalio.api.workflowservice import v1 as workflow_v1

STICKY = 2  # TASK_QUEUE_KIND_STICKY
CLOSE_EVENT = 2  # HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT
PATIENCE_S = 15.0


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def seconds(value: float) -> Duration:
    """`value` seconds, to the microsecond; negative ones carry the sign in both fields, as proto3 asks."""
    micros = round(value * 1_000_000)
    whole, rest = divmod(abs(micros), 1_000_000)
    sign = -1 if micros < 0 else 1
    return Duration(seconds=sign * whole, nanos=sign * rest * 1000)


def payloads(*values: Any) -> Payloads:
    return Payloads(
        payloads=[Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(v).encode()) for v in values]
    )


def decoded(values: Payloads) -> list[Any]:
    return [json.loads(p.data) for p in values.payloads]


def command(kind: str, **attributes: Any) -> Command:
    """`command("start_timer", timer_id="t", ...)`: the command of that type with those attributes."""
    return Command(
        command_type=CommandType.Value(f"COMMAND_TYPE_{kind.upper()}"), **{f"{kind}_command_attributes": attributes}
    )


def application_failure(message: str, **info: Any) -> Failure:
    return Failure(message=message, application_failure_info=info or {"type": "Boom"})


@dataclass(frozen=True)
class Refusal:
    """A gRPC error as an SDK sees it: the code, the words, and the message type in `grpc-status-details-bin`."""

    code: grpc.StatusCode
    message: str
    detail: str = ""

    @classmethod
    def of(cls, error: grpc.aio.AioRpcError) -> "Refusal":
        status = status_of(error)
        names = [any_.TypeName().removeprefix("temporal.api.errordetails.v1.") for any_ in status.details]
        return cls(error.code(), error.details() or "", ",".join(names))


def status_of(error: grpc.aio.AioRpcError) -> Status:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return Status.FromString(value)
    return Status()


def detail_of(error: grpc.aio.AioRpcError, kind: type[Message]) -> Any:
    """The error's only details message, which must be a `kind`."""
    (packed,) = status_of(error).details
    detail = kind()
    assert packed.Unpack(detail), packed.TypeName()
    return detail


async def error_of(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error
    raise AssertionError(f"the call succeeded: {answer!r}")


async def refusal(call: Awaitable[Any]) -> Refusal:
    return Refusal.of(await error_of(call))


@dataclass(frozen=True)
class Run:
    workflow_id: str
    run_id: str
    queue: str

    @property
    def execution(self) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=self.workflow_id, run_id=self.run_id)


def types(events: Iterable[HistoryEvent]) -> list[str]:
    """Event types without their common prefix, such as TIMER_FIRED."""
    return [EventType.Name(e.event_type).removeprefix("EVENT_TYPE_") for e in events]


def attributes(event: HistoryEvent) -> Any:
    return getattr(event, event.WhichOneof("attributes"))


def moment(event: HistoryEvent) -> float:
    return event.event_time.ToNanoseconds() / 1e9


def until(kind: str, events: list[HistoryEvent]) -> HistoryEvent:
    """The last event of that type."""
    return [e for e in events if EventType.Name(e.event_type) == f"EVENT_TYPE_{kind}"][-1]


class Server:
    """Calls to one frontend, in one namespace. Fields are keyword arguments named as in the API."""

    def __init__(self, channel: grpc.aio.Channel, namespace: str = "default") -> None:
        self.channel = channel
        self.namespace = namespace
        self.workflow_service = workflow_v1.WorkflowServiceStub(channel)
        self.operator_service = operator_v1.OperatorServiceStub(channel)

    def within(self, namespace: str) -> "Server":
        return Server(self.channel, namespace)

    async def call(self, method: str, *, deadline_s: float | None = PATIENCE_S, **fields: Any) -> Any:
        request_type = getattr(workflow_v1, f"{method}Request")
        if "namespace" in request_type.DESCRIPTOR.fields_by_name:
            fields.setdefault("namespace", self.namespace)
        return await getattr(self.workflow_service, method)(request_type(**fields), timeout=deadline_s)

    # What a client does

    async def start(self, *, queue: str | None = None, **fields: Any) -> Run:
        queue = queue or unique("queue")
        workflow_id = fields.setdefault("workflow_id", unique("wf"))
        fields.setdefault("workflow_type", {"name": "Any"})
        fields.setdefault("request_id", str(uuid.uuid4()))
        answer = await self.call("StartWorkflowExecution", task_queue={"name": queue}, identity="client", **fields)
        return Run(workflow_id, answer.run_id, queue)

    def signal(self, run: Run, name: str = "go", **fields: Any) -> Awaitable[Any]:
        fields.setdefault("workflow_execution", run.execution)
        return self.call("SignalWorkflowExecution", signal_name=name, identity="client", **fields)

    def terminate(self, run: Run, **fields: Any) -> Awaitable[Any]:
        fields.setdefault("workflow_execution", run.execution)
        return self.call("TerminateWorkflowExecution", identity="client", **fields)

    def cancel(self, run: Run, **fields: Any) -> Awaitable[Any]:
        fields.setdefault("workflow_execution", run.execution)
        return self.call("RequestCancelWorkflowExecution", identity="client", **fields)

    def query(self, run: Run, name: str = "state", *, deadline_s: float = PATIENCE_S, **fields: Any) -> Awaitable[Any]:
        return self.call(
            "QueryWorkflow",
            deadline_s=deadline_s,
            execution=run.execution,
            query={"query_type": name},
            **fields,
        )

    def describe(self, run: Run) -> Awaitable[Any]:
        return self.call("DescribeWorkflowExecution", execution=run.execution)

    async def pending_activity(self, run: Run) -> Any:
        (pending,) = (await self.describe(run)).pending_activities
        return pending

    async def history(self, run: Run) -> list[HistoryEvent]:
        events, token = [], b""
        while True:
            answer = await self.call("GetWorkflowExecutionHistory", execution=run.execution, next_page_token=token)
            events += answer.history.events
            token = answer.next_page_token
            if not token:
                return events

    async def closed(self, run: Run, *, deadline_s: float = PATIENCE_S) -> HistoryEvent:
        """Waits for the run's close event."""
        async with asyncio.timeout(deadline_s):
            token = b""
            while True:
                answer = await self.call(
                    "GetWorkflowExecutionHistory",
                    deadline_s=deadline_s,
                    execution=run.execution,
                    wait_new_event=True,
                    next_page_token=token,
                    history_event_filter_type=CLOSE_EVENT,
                )
                token = answer.next_page_token
                if answer.history.events:
                    return answer.history.events[-1]

    async def reached(self, run: Run, kind: str, *, deadline_s: float = PATIENCE_S) -> list[HistoryEvent]:
        """Follows the history by long polls until an event of that type; gives all events up to then."""
        async with asyncio.timeout(deadline_s):
            events, token = [], b""
            while kind not in types(events):
                answer = await self.call(
                    "GetWorkflowExecutionHistory",
                    deadline_s=deadline_s,
                    execution=run.execution,
                    wait_new_event=True,
                    next_page_token=token,
                )
                events += answer.history.events
                token = answer.next_page_token
                assert token or kind in types(events), f"closed without {kind}: {types(events)}"
            return events

    async def nothing_happens(self, run: Run, *, for_s: float) -> None:
        """A history long poll over `for_s` seconds brings no new event."""
        first = await self.call("GetWorkflowExecutionHistory", execution=run.execution, wait_new_event=True)
        token = first.next_page_token
        answer = await self.call(
            "GetWorkflowExecutionHistory",
            deadline_s=for_s,
            execution=run.execution,
            wait_new_event=True,
            next_page_token=token,
        )
        assert not answer.history.events, types(answer.history.events)

    # What a worker does

    def poll_workflow(self, queue: str | TaskQueue, *, deadline_s: float = PATIENCE_S, **fields: Any) -> Awaitable[Any]:
        """One poll; an empty task token when there is nothing until just before the deadline."""
        fields.setdefault("identity", "worker")
        return self.call("PollWorkflowTaskQueue", deadline_s=deadline_s, task_queue=_queue(queue), **fields)

    async def workflow_task(self, queue: str | TaskQueue, **fields: Any) -> Any:
        task = await self.poll_workflow(queue, **fields)
        assert task.task_token, f"no workflow task on {queue}"
        return task

    def complete_task(self, task: Any, *commands: Command, **fields: Any) -> Awaitable[Any]:
        return self.call(
            "RespondWorkflowTaskCompleted", task_token=task.task_token, commands=commands, identity="worker", **fields
        )

    def fail_task(self, task: Any, cause: str = "WORKFLOW_WORKER_UNHANDLED_FAILURE", **fields: Any) -> Awaitable[Any]:
        return self.call(
            "RespondWorkflowTaskFailed",
            task_token=task.task_token,
            cause=f"WORKFLOW_TASK_FAILED_CAUSE_{cause}",
            identity="worker",
            **fields,
        )

    async def do(self, run: Run, *commands: Command, **fields: Any) -> Any:
        """Takes the run's next workflow task and answers it with those commands."""
        task = await self.workflow_task(run.queue)
        assert task.workflow_execution.workflow_id == run.workflow_id
        await self.complete_task(task, *commands, **fields)
        return task

    async def finish(self, run: Run, *results: Any) -> None:
        await self.do(run, command("complete_workflow_execution", result=payloads(*results)))

    def poll_activity(self, queue: str, *, deadline_s: float = PATIENCE_S, **fields: Any) -> Awaitable[Any]:
        fields.setdefault("identity", "worker")
        return self.call("PollActivityTaskQueue", deadline_s=deadline_s, task_queue={"name": queue}, **fields)

    async def activity_task(self, queue: str, **fields: Any) -> Any:
        task = await self.poll_activity(queue, **fields)
        assert task.task_token, f"no activity task on {queue}"
        return task

    def complete_activity(self, task: Any, *results: Any) -> Awaitable[Any]:
        return self.call("RespondActivityTaskCompleted", task_token=task.task_token, result=payloads(*results))

    def fail_activity(
        self, task: Any, message: str = "broken", *, failure: Failure | None = None, **fields: Any
    ) -> Awaitable[Any]:
        return self.call(
            "RespondActivityTaskFailed",
            task_token=task.task_token,
            failure=failure or application_failure(message),
            identity="worker",
            **fields,
        )

    def beat(self, task: Any, *details: Any) -> Awaitable[Any]:
        return self.call("RecordActivityTaskHeartbeat", task_token=task.task_token, details=payloads(*details))


def sticky_queue(name: str, *, normal: str) -> TaskQueue:
    return TaskQueue(name=name, kind=STICKY, normal_name=normal)


def sticky(name: str, *, normal: str, timeout_s: float = 10) -> StickyExecutionAttributes:
    """What a worker sends with a completion to keep the run on its own queue."""
    return StickyExecutionAttributes(
        worker_task_queue=sticky_queue(name, normal=normal), schedule_to_start_timeout=seconds(timeout_s)
    )


def activity(queue: str, *, activity_id: str = "a", **fields: Any) -> Command:
    """A schedule-activity command; a start-to-close timeout of 30 s unless a close timeout is given."""
    if not {"start_to_close_timeout", "schedule_to_close_timeout"} & fields.keys():
        fields["start_to_close_timeout"] = seconds(30)
    fields.setdefault("activity_type", {"name": "Act"})
    return command("schedule_activity_task", activity_id=activity_id, task_queue={"name": queue}, **fields)


def timer(delay: Duration | None, *, timer_id: str = "t") -> Command:
    return command("start_timer", timer_id=timer_id, start_to_fire_timeout=delay)


def _queue(queue: str | TaskQueue) -> TaskQueue:
    return queue if isinstance(queue, TaskQueue) else TaskQueue(name=queue)
