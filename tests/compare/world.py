"""What a scenario holds in its hands: a server to drive, names for what it makes, and a place to note what it sees."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf.message import Message
from temporalio.api.command.v1 import Command
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.taskqueue.v1 import TaskQueue

from tests.behaviours.harness import PATIENCE_S, Run, Server, attributes, command, sticky, sticky_queue, types, until
from tests.compare.normalise import Normaliser, refused

__all__ = ["Run", "World"]


class World(Server):
    """One scenario's view of a server.

    All ids that a scenario makes come from `at` and carry its prefix, so scenarios run side by side and the prefix
    can be taken out again. Runs that are started, and those that their histories lead to (successors, children), get labels:
    the same run id is the same label wherever it is noted.
    """

    def __init__(self, channel: grpc.aio.Channel, *, scenario: str) -> None:
        super().__init__(channel)
        self.prefix = f"{scenario}.{uuid.uuid4().hex[:10]}/"
        self.began = datetime.now(UTC)
        self._notes: dict[str, Any] = {}
        self._labels: dict[str, str] = {}
        self._runs: dict[str, Run] = {}
        self._starts = 0

    # Names

    def at(self, name: str) -> str:
        """`name` as an id of this scenario alone."""
        return f"{self.prefix}{name}"

    def run(self, label: str, run_id: str = "") -> Run:
        """The run of workflow `label`; with no run id, the current one."""
        return Run(self.at(label), run_id, self.at(f"{label}-q"))

    def label(self, drawn: str, label: str) -> None:
        """This id, which the server drew, is noted as `<label>`."""
        self._labels.setdefault(drawn, label)

    def know(self, run: Run, label: str) -> Run:
        """Have the run's history and description noted at the end; a label that is taken gets a prime."""
        if run.run_id not in self._labels:
            while label in self._runs:
                label += "'"
            self.label(run.run_id, f"run {label}")
            self._runs[label] = run
        return run

    # Notes

    def note(self, what: str, seen: Any) -> Any:
        """Keep a message, a list of them or a plain value under this name; gives it back."""
        assert what not in self._notes, f"noted twice: {what}"
        self._notes[what] = seen
        return seen

    async def told(self, what: str, call: Awaitable[Any]) -> Any:
        """Note what a call answers, or how it is refused; gives the answer, None after a refusal."""
        try:
            return self.note(what, await call)
        except grpc.aio.AioRpcError as error:
            self.note(what, refused(error))
            return None

    async def described(self, what: str, run: Run) -> Any:
        return await self.told(what, self.describe(run))

    # Servers under load are slow, which is no difference

    async def workflow_task(self, queue: str | TaskQueue, **fields: Any) -> Any:
        return await _patiently(super().workflow_task, queue, **fields)

    async def activity_task(self, queue: str, **fields: Any) -> Any:
        return await _patiently(super().activity_task, queue, **fields)

    async def reached(self, run: Run, kind: str, *, deadline_s: float = 2 * PATIENCE_S) -> list[HistoryEvent]:
        return await super().reached(run, kind, deadline_s=deadline_s)

    # What many scenarios do

    async def start(self, label: str = "main", *, queue: str | None = None, **fields: Any) -> Run:
        """Start workflow `label` on a queue of its own, under a request id that is the same on every server."""
        self._starts += 1
        fields.setdefault("workflow_id", self.at(label))
        fields.setdefault("request_id", f"start-{self._starts}")
        run = await super().start(queue=queue or self.at(f"{label}-q"), **fields)
        return self.know(run, label)

    async def idle(self, label: str = "main", *commands: Command, **fields: Any) -> Run:
        """A run whose first task was answered with these commands."""
        run = await self.start(label, **fields)
        await self.do(run, *commands)
        return run

    async def cached(self, label: str = "main") -> tuple[Run, TaskQueue]:
        """A run that a worker keeps on its sticky queue."""
        run = await self.start(label)
        own = sticky_queue(self.at(f"{label}-sticky"), normal=run.queue)
        task = await self.workflow_task(run.queue)
        await self.complete_task(task, sticky_attributes=sticky(own.name, normal=run.queue))
        await self.poll_workflow(own, deadline_s=2.2)  # a sticky queue is used only while its worker is there
        return run, own

    def child(self, label: str = "child", **fields: Any) -> Command:
        """A command that starts workflow `label` on a queue of its own."""
        fields.setdefault("workflow_type", {"name": "Child"})
        fields.setdefault("workflow_id", self.at(label))
        return command("start_child_workflow_execution", task_queue={"name": self.at(f"{label}-q")}, **fields)

    async def started_child(self, parent: Run, label: str = "child", **fields: Any) -> Run:
        """Has the parent's next task start that child, and waits until the parent knows of the start."""
        await self.do(parent, self.child(label, **fields))
        started = until(
            "CHILD_WORKFLOW_EXECUTION_STARTED", await self.reached(parent, "CHILD_WORKFLOW_EXECUTION_STARTED")
        )
        run_id = attributes(started).workflow_execution.run_id
        await self.do(parent)
        return self.know(self.run(label, run_id), label)

    async def tell(self, run: Run, *commands: Command, **fields: Any) -> Any:
        """Signals the run and answers the task that this brings with these commands."""
        await self.signal(run)
        return await self.do(run, *commands, **fields)

    async def passed(self, run: Run, for_s: float) -> None:
        """Follows an open run's history for that long, whatever comes: for what can't be seen to have happened."""
        end, token = time.monotonic() + for_s, b""
        while (left := end - time.monotonic()) > 0:
            with contextlib.suppress(grpc.aio.AioRpcError):
                answer = await self.call(
                    "GetWorkflowExecutionHistory",
                    deadline_s=left + 0.05,
                    execution=run.execution,
                    wait_new_event=True,
                    next_page_token=token,
                )
                token = answer.next_page_token
                if not token:
                    return

    # The end

    async def observations(self) -> dict[str, Any]:
        """All notes, normalised, with the history and description of every run; ends what still runs."""
        waiting, seen = list(self._runs.items()), list[Run]()
        while waiting:
            label, run = waiting.pop(0)
            seen.append(run)
            events = await self.told(f"at the end, history of {label}", self.history(run))
            await self.described(f"at the end, {label}", run)
            for more, next_run in self._follow(label, run, events or []):
                if next_run.run_id not in self._labels:
                    self.know(next_run, more)
                    waiting.append((self._labels[next_run.run_id].removeprefix("run "), next_run))
        await asyncio.gather(*(self.terminate(run) for run in seen), return_exceptions=True)
        clean = Normaliser(prefix=self.prefix, labels=self._labels, began=self.began)
        return {what: clean(value) for what, value in self._notes.items()}

    def _follow(self, label: str, run: Run, events: list[HistoryEvent]) -> list[tuple[str, Run]]:
        """The runs that this history leads to: the chain's next, and children."""
        found = []
        for event in events:
            body: Message = attributes(event)
            fields = body.DESCRIPTOR.fields_by_name
            following = getattr(body, "new_execution_run_id", "") if "new_execution_run_id" in fields else ""
            if following:
                found.append((f"{label}+", Run(run.workflow_id, following, run.queue)))
            if types([event]) == ["CHILD_WORKFLOW_EXECUTION_STARTED"]:
                child = body.workflow_execution  # type: ignore[attr-defined]
                name = child.workflow_id.removeprefix(self.prefix)
                found.append((name, Run(child.workflow_id, child.run_id, self.at(f"{name}-q"))))
        return found


async def _patiently(poll: Callable[..., Awaitable[Any]], queue: str | TaskQueue, **fields: Any) -> Any:
    """A second poll when the first brings nothing; the official server breaks off a poll now and then, too."""
    try:
        return await poll(queue, **fields)
    except (AssertionError, grpc.aio.AioRpcError):
        return await poll(queue, **fields)
