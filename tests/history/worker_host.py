"""A `Host` (tests.history.harness) with a worker on it: it polls, gets the answers that workers get, and responds with tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import WorkflowType
from temporalio.api.history.v1 import HistoryEvent, WorkflowExecutionStartedEventAttributes
from temporalio.api.taskqueue.v1 import StickyExecutionAttributes, TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.contracts.tokens import TaskToken, decode_token
from history.commands import BadCommand
from history.records import ActivityItem, TransferTask
from history.state import Draft
from history.transitions.activities import start_activity_task
from history.transitions.begin import begin_run
from history.transitions.task_completion import Completion, complete_workflow_task, fail_completion
from history.transitions.task_response import activity_task_response, history_range, workflow_task_response
from history.transitions.task_start import StartedTask, start_workflow_task
from history.transitions.workflow_tasks import schedule_workflow_task
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, seconds

T = TypeVar("T")

QUEUE = "queue"


class WorkerHost(Host):
    """One run, the current one, and its worker."""

    def begin(self, **fields: Any) -> None:
        """A new run, without the rules of StartWorkflowExecution."""
        attributes = WorkflowExecutionStartedEventAttributes(
            workflow_type=WorkflowType(name="Flow"),
            task_queue=TaskQueue(name=QUEUE),
            workflow_task_timeout=seconds(10),
            attempt=1,
            **fields,
        )
        self.run(
            lambda work: begin_run(
                work, attributes=attributes, run_id=work.new_run_id(), request_id="create", namespace_id="ns"
            )
        )

    def change(self, function: Callable[[Draft], T]) -> T:
        """Run a transition on the current run."""
        return self.run(lambda work: function(work.run("")))

    def wake(self) -> None:
        self.change(schedule_workflow_task)

    @property
    def history(self) -> list[HistoryEvent]:
        return self.events[self.info.run_id]

    def attributes(self, name: str) -> Any:
        """The attributes of the newest event of a type, e.g. "activity_task_failed"."""
        field: Any = f"{name}_event_attributes"
        return getattr(next(event for event in reversed(self.history) if event.HasField(field)), field)

    def dispatched(self, kind: str) -> list[TransferTask]:
        return [task for task in self.transfer_tasks if task.kind == kind]

    # --- workflow tasks

    def take(
        self, *, queue: str = QUEUE, identity: str = "worker", request_id: str = "", sticky: bool = False
    ) -> ws.PollWorkflowTaskQueueResponse:
        """Deliver the pending workflow task to a poller of a queue."""
        task = self.state.speculative_task or self.info.workflow_task
        assert task is not None, "no workflow task is pending"
        task_queue = TaskQueue(name=queue, kind="TASK_QUEUE_KIND_STICKY" if sticky else "TASK_QUEUE_KIND_NORMAL")
        request = RecordWorkflowTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=self.info.run_id,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            stamp=task.stamp,
            request_id=request_id or f"poll-{next(self._poll_ids)}",
            poll=ws.PollWorkflowTaskQueueRequest(task_queue=task_queue, identity=identity),
        )
        return self.answer(self.run(lambda work: start_workflow_task(work, request)))

    def answer(self, started: StartedTask) -> ws.PollWorkflowTaskQueueResponse:
        first, last = history_range(started)
        return workflow_task_response(started, events=self.events[started.info.run_id][first - 1 : last - 1])

    def respond(
        self,
        task: ws.PollWorkflowTaskQueueResponse,
        *commands: Command,
        sticky: str = "",
        custom: dict[str, str] | None = None,
        **fields: Any,
    ) -> Completion:
        """Complete the task. A bad command fails it, as the API function does, and is raised again."""
        request = ws.RespondWorkflowTaskCompletedRequest(
            task_token=task.task_token, commands=commands, identity="worker", **fields
        )
        if sticky:
            request.sticky_attributes.CopyFrom(
                StickyExecutionAttributes(
                    worker_task_queue=TaskQueue(name=sticky), schedule_to_start_timeout=seconds(5)
                )
            )
        token = decode_token(TaskToken, task.task_token)
        try:
            return self.run(lambda work: complete_workflow_task(work, request, token, custom_search_attributes=custom))
        except BadCommand as failed:
            bad = failed
            self.run(lambda work: fail_completion(work, request, token, failed=bad))
            raise

    def turn(self, *commands: Command, **fields: Any) -> Completion:
        """Take the pending workflow task and complete it."""
        return self.respond(self.take(), *commands, **fields)

    # --- activities

    def take_activity(self, activity_id: str = "a", *, attempt: int = 0) -> ws.PollActivityTaskQueueResponse:
        item = self.activity(activity_id)
        request = RecordActivityTaskStarted(
            namespace=NAMESPACE,
            workflow_id=WORKFLOW_ID,
            run_id=self.info.run_id,
            scheduled_event_id=item.scheduled_event_id,
            attempt=attempt or item.attempt,
            stamp=item.stamp,
            request_id=f"poll-{next(self._poll_ids)}",
            poll=ws.PollActivityTaskQueueRequest(task_queue=TaskQueue(name=QUEUE), identity="worker"),
        )
        return activity_task_response(self.run(lambda work: start_activity_task(work, request)))

    def started_activity(self, activity_id: str = "a") -> TaskToken:
        """Start it; the token that its worker has."""
        return decode_token(TaskToken, self.take_activity(activity_id).task_token)

    def activity(self, activity_id: str = "a") -> ActivityItem:
        return self.state.activities[self.state.activity_ids[activity_id]]
