"""Transitions without an engine: a host that runs one after another on states in memory, and replays after each.

After every transition the events of each run it touched are folded from the first on and the result is compared with the
state that the transitions left (see `history.differences`). The state is also encoded and decoded, as if it had been stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from msgspec.structs import replace
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Payload, Payloads, WorkflowType
from temporalio.api.enums.v1 import CommandType, EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordWorkflowTaskStarted
from common.contracts.tokens import TaskToken
from common.protos import duration
from common.records import decode, encode
from history.apply.fold import fold
from history.commands import BadCommand
from history.config import HistoryConfig
from history.cron import next_backoff
from history.differences import differences
from history.due import first_deadline, is_wanted
from history.records import CurrentRun, ExecutionInfo, NamespaceRecord, TimerTask, TransferTask, VisibilityIntent
from history.state import Draft, ExecutionState
from history.transitions.begin import StartWorkflow
from history.transitions.start import StartOutcome, start_workflow
from history.transitions.task_completion import complete_workflow_task, fail_completion
from history.transitions.task_start import StartedTask, start_workflow_task, token_time
from history.transitions.timeouts import fire_deadlines
from history.transitions.timers import fire_timer
from history.workspace import EventsMissing, Workspace

T = TypeVar("T")

NAMESPACE = "default"
WORKFLOW_ID = "wf"
START = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def payloads(text: str) -> Payloads:
    return Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=f'"{text}"'.encode())])


def seconds(value: float) -> Duration:
    return duration(timedelta(seconds=value))


def command(kind: str, **attributes: Any) -> Command:
    """`command("start_timer", timer_id="t")`: the command of that type with those attributes."""
    return Command(
        command_type=CommandType.Value(f"COMMAND_TYPE_{kind.upper()}"), **{f"{kind}_command_attributes": attributes}
    )


def start_request(**fields: Any) -> ws.StartWorkflowExecutionRequest:
    fields.setdefault("request_id", "start")
    return ws.StartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=WORKFLOW_ID,
        workflow_type=WorkflowType(name="Type"),
        task_queue=TaskQueue(name="queue"),
        identity="client",
        **fields,
    )


class Host:
    """All runs of one workflow id."""

    def __init__(self, *, config: HistoryConfig | None = None, now: datetime = START) -> None:
        self.now = now
        self.config = config or HistoryConfig()
        self.namespace: NamespaceRecord | None = NamespaceRecord(
            name=NAMESPACE, namespace_id="ns-id", retention=timedelta(days=1), created_at=now
        )
        self.endpoints = {"endpoint": "endpoint-id"}
        self.states: dict[str, ExecutionState] = {}
        self.events: dict[str, list[HistoryEvent]] = {}
        self.current: CurrentRun | None = None
        self.transfer_tasks: list[TransferTask] = []
        self.timer_tasks: dict[int, TimerTask] = {}
        self.visibility: dict[str, VisibilityIntent] = {}
        self._task_ids = itertools.count(1)
        self._run_ids = itertools.count(1)
        self._poll_ids = itertools.count(1)

    # --- running transitions

    def run(self, transition: Callable[[Workspace], T]) -> T:
        """Run it, keep what it did, and replay. What it raises leaves everything as it was."""
        work = self.workspace()
        result = transition(work)
        work.sync_current()
        for run_id, draft in work.drafts.items():
            self._keep(run_id, draft)
        self.current = work.current
        for run_id in work.drafts:
            self.replay(run_id)
        for callback in work.after_commit:
            callback()
        return result

    def workspace(self) -> Workspace:
        return Workspace(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            shard_id=1,
            now=self.now,
            config=self.config,
            current=self.current,
            runs=self,
            draw_task_id=lambda: next(self._task_ids),
            draw_run_id=lambda: f"run-{next(self._run_ids)}",
            namespace_record=lambda _: self.namespace,
        )

    def open(self, run_id: str, work: Workspace) -> Draft | None:
        state = self.states.get(run_id)
        if state is None:
            return None
        return Draft(base=state, work=work, event_source=lambda event_id: self._event(run_id, event_id))

    def _event(self, run_id: str, event_id: int) -> HistoryEvent:
        events = self.events[run_id]
        if not 0 < event_id <= len(events):
            raise EventsMissing(run_id=run_id, event_id=event_id)
        return events[event_id - 1]

    def _keep(self, run_id: str, draft: Draft) -> None:
        if draft.visibility is not None:
            self.visibility[run_id] = draft.visibility
        if draft.deleted:
            self.states.pop(run_id, None)
            self.events.pop(run_id, None)
            return
        if draft.seal() and draft.is_stored:
            draft.info.state_transition_count += 1
        state = self.states.setdefault(run_id, ExecutionState(info=draft.info))
        draft.adopt_into(state)
        self.events.setdefault(run_id, []).extend(draft.events)
        self.transfer_tasks += draft.transfer_tasks
        self.timer_tasks |= {task.task_id: task for task in draft.timer_tasks}
        for task_id in draft.deleted_timer_tasks:
            self.timer_tasks.pop(task_id, None)

    def replay(self, run_id: str) -> None:
        state = self.states.get(run_id)
        if state is None:
            return
        stored = decode(ExecutionInfo, encode(state.info), table="executions", key=run_id)
        assert stored == state.info
        events = self.events[run_id]
        assert [event.event_id for event in events] == list(range(1, len(events) + 1))
        buffered = [item.event for item in sorted(state.buffered.values(), key=lambda item: item.order)]
        info = state.info
        folded = fold(
            [*events, *buffered],
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=run_id,
            shard_id=info.shard_id,
        )
        assert differences(state, folded) == []

    # --- a client

    def start(self, **fields: Any) -> StartOutcome:
        return self.start_with(start_request(**fields))

    def start_with(self, request: ws.StartWorkflowExecutionRequest, **more: Any) -> StartOutcome:
        backoff = timedelta(seconds=request.workflow_start_delay.seconds)
        if request.cron_schedule:
            backoff = next_backoff(request.cron_schedule, scheduled=self.now, now=self.now) or timedelta()
        start = StartWorkflow(request=request, namespace_id="ns-id", first_task_backoff=backoff, **more)
        return self.run(lambda work: start_workflow(work, start))

    @property
    def state(self) -> ExecutionState:
        """The current run's."""
        assert self.current is not None
        return self.states[self.current.run_id]

    @property
    def info(self) -> ExecutionInfo:
        return self.state.info

    def types(self, run_id: str = "") -> list[str]:
        """The event types of a run, the current one by default."""
        assert self.current is not None
        events = self.events[run_id or self.current.run_id]
        return [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]

    def last(self, run_id: str = "") -> Any:
        """The attributes of a run's last event."""
        assert self.current is not None
        event = self.events[run_id or self.current.run_id][-1]
        name = event.WhichOneof("attributes")
        assert name is not None
        return getattr(event, name)

    # --- a worker

    def poll(self, run_id: str = "") -> StartedTask:
        """Start the pending workflow task."""
        assert self.current is not None
        run_id = run_id or self.current.run_id
        state = self.states[run_id]
        task = state.speculative_task or state.info.workflow_task
        assert task is not None, "no workflow task is pending"
        request = RecordWorkflowTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=run_id,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            stamp=task.stamp,
            request_id=f"poll-{next(self._poll_ids)}",
            poll=ws.PollWorkflowTaskQueueRequest(
                namespace=NAMESPACE, task_queue=TaskQueue(name=task.task_queue), identity="worker"
            ),
        )
        return self.run(lambda work: start_workflow_task(work, request))

    def complete(self, started: StartedTask, *commands: Command, **fields: Any) -> Any:
        """Complete a started task; a bad command fails it and is raised again."""
        task = started.task
        assert task.started_at is not None
        token = TaskToken(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=started.info.run_id,
            scheduled_event_id=task.scheduled_event_id,
            started_event_id=task.started_event_id,
            attempt=task.attempt,
            started_at=token_time(task.started_at),
        )
        request = ws.RespondWorkflowTaskCompletedRequest(commands=commands, identity="worker", **fields)
        try:
            return self.run(lambda work: complete_workflow_task(work, request, token, endpoints=self.endpoints))
        except BadCommand as failed:
            bad = failed
            self.run(lambda work: fail_completion(work, request, token, failed=bad))
            raise

    def do(self, *commands: Command, run_id: str = "") -> Any:
        return self.complete(self.poll(run_id), *commands)

    # --- time

    def advance(self, delta: timedelta | float) -> None:
        """Let time pass: timers and deadlines that fall due fire, in order."""
        until = self.now + (delta if isinstance(delta, timedelta) else timedelta(seconds=delta))
        while (due := self._next_due()) is not None and due[0] <= until:
            self.now = max(self.now, due[0])
            due[1]()
        self.now = until

    def _next_due(self) -> tuple[datetime, Callable[[], None]] | None:
        timers = [(task.due_at, task.task_id) for task in self.timer_tasks.values()]
        deadlines = [(s.info.deadline_at, run_id) for run_id, s in self.states.items() if s.info.deadline_at]
        first_timer, first_deadline = min(timers, default=None), min(deadlines, default=None)
        if first_timer is None and first_deadline is None:
            return None
        if first_deadline is None or (first_timer is not None and first_timer[0] <= first_deadline[0]):
            assert first_timer is not None
            due, task_id = first_timer
            return due, lambda: self._fire(task_id)
        when, run_id = first_deadline
        return when, lambda: self._fire_deadlines(run_id)

    def _fire(self, task_id: int) -> None:
        """What `history.due` says of a row is what it does."""
        task = self.timer_tasks.pop(task_id)
        state = self.states.get(task.run_id)
        wanted = state is not None and is_wanted(state, task)
        before = _picture(state), len(self.transfer_tasks)
        self.run(lambda work: fire_timer(work, task))
        assert ((_picture(self.states.get(task.run_id)), len(self.transfer_tasks)) != before) == wanted, task

    def _fire_deadlines(self, run_id: str) -> None:
        """A deadline is exactly when `history.due` says so."""
        state = self.states[run_id]
        exact = first_deadline(state)
        before = _picture(state)
        self.run(lambda work: fire_deadlines(work, run_id))
        assert (_picture(state) != before) == (exact is not None and exact <= self.now)
        assert state.info.deadline_at == first_deadline(state)


def _picture(state: ExecutionState | None) -> Any:
    """A run's state to compare with a later one, without what every look at the run changes."""
    if state is None:
        return None
    parts = {name: copy(getattr(state, name)) for name in state.__struct_fields__}
    return parts | {"info": replace(state.info, state_transition_count=0, deadline_at=None)}


def without_times(message: Message) -> str:
    """A message as text, for comparing what differs only in its times."""
    return "\n".join(line for line in str(message).splitlines() if "seconds" not in line and "nanos" not in line)
