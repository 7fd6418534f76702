"""Clients, workers, other executions, time and crashes in any order: the invariants hold after every step, and in the end
everything comes to its end.

Each transition is replayed by the host (ids without a gap, events folded give the state); a crash loads what a commit would
have stored and compares it with what was in memory; `model_invariants` and `history.verify` look at the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Callback, WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import EventType, ParentClosePolicy, WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.rules.v1 import WorkflowRule, WorkflowRuleAction
from temporalio.api.taskqueue.v1 import StickyExecutionAttributes, TaskQueue
from temporalio.api.workflow.v1 import OnConflictOptions
from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import RecordActivityTaskStarted, RecordWorkflowTaskStarted
from common.contracts.matching import AddTask
from common.contracts.tokens import TaskToken, encode_token
from common.errors import TemporalError
from history.commands import BadCommand
from history.engine.transfer_tasks import add_workflow_task
from history.state import ExecutionState
from history.transitions.close import is_open, is_reset
from history.transitions.delete import delete_expired
from history.transitions.reset import reset_workflow
from history.transitions.task_start import StartedTask, start_workflow_task
from history.transitions.terminate import terminate_run
from history.transitions.updates import admit_update
from tests.history.commands import cancel_activity, cancel_timer, retry_policy, schedule_activity, start_timer
from tests.history.crashing_hosts import CrashingHost, CrashingHosts
from tests.history.harness import NAMESPACE, command, seconds
from tests.history.model_invariants import faults
from tests.history.test_verify import Stored, verify
from tests.history.updating import Answers, update_request

NAMES = ("a", "b", "c")
CONFLICT = WorkflowIdConflictPolicy
POLICIES = [
    ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE,
    ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON,
    ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
]
NEXUS = Callback(nexus=Callback.Nexus(url="https://receiver/"))
PAUSING = WorkflowRule(
    spec={
        "id": "rule",
        "activity_start": {"predicate": "Attempts < 3"},
        "actions": [WorkflowRuleAction(activity_pause={})],
    }
)
FAILURE = Failure(message="no", application_failure_info=ApplicationFailureInfo())
Make = Callable[[int, ExecutionState], Command]


def cancel_some_timer(n: int, state: ExecutionState) -> Command:
    known = sorted(state.timers)
    return cancel_timer(known[n % len(known)]) if known else start_timer(f"t{n % 5}", n)


def cancel_some_activity(n: int, state: ExecutionState) -> Command:
    known = sorted(state.activities)
    return cancel_activity(known[n % len(known)]) if known else schedule_activity("to cancel")


COMMANDS: list[Make] = [
    lambda n, _: start_timer(f"t{n % 5}", n),
    cancel_some_timer,
    lambda n, _: schedule_activity(
        f"a{n % 4}", start_to_close=5, schedule_to_close=n + 1, heartbeat=n % 3, retry=retry_policy(attempts=n % 4)
    ),
    lambda n, _: schedule_activity(f"b{n % 9}", retry=retry_policy(initial=3), start_to_close=n % 9 + 1),
    cancel_some_activity,
    lambda n, _: command(
        "start_child_workflow_execution",
        workflow_id=NAMES[n % 3],
        workflow_type={"name": "Child"},
        parent_close_policy=POLICIES[n // 3 % 3],
        workflow_run_timeout=seconds(n + 5),
    ),
    lambda n, _: command(
        "signal_external_workflow_execution",
        execution={"workflow_id": NAMES[n % 3]},
        signal_name="s",
        child_workflow_only=n % 5 == 0,
    ),
    lambda n, _: command("request_cancel_external_workflow_execution", workflow_id=NAMES[n % 3]),
    lambda n, _: command("record_marker", marker_name=f"m{n}"),
    lambda n, _: cancel_timer("unknown") if n % 4 == 0 else command("record_marker", marker_name="m"),
]
CLOSING: list[Command] = [
    command("complete_workflow_execution"),
    command("continue_as_new_workflow_execution"),
    command("fail_workflow_execution", failure=FAILURE),
    command("continue_as_new_workflow_execution"),
    command("cancel_workflow_execution"),
]


class Crowd:
    """What may be done; what is refused is no fault."""

    def __init__(self) -> None:
        self.engine = CrashingHosts()
        self.held: list[tuple[CrashingHost, StartedTask]] = []
        """Workflow tasks that workers have."""
        self.activities: list[bytes] = []
        """Tokens that workers have."""
        self.requests = 0

    def request_id(self, n: int) -> str:
        """Mostly a fresh one, now and then one that was used before."""
        self.requests += 1
        return f"r{self.requests if n % 3 else n}"

    def execution(self, n: int) -> WorkflowExecution:
        return WorkflowExecution(workflow_id=NAMES[n % 3])

    # --- clients

    async def start(self, n: int) -> None:
        request = ws.StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=NAMES[n % 3],
            workflow_type=WorkflowType(name="Type"),
            task_queue=TaskQueue(name="queue"),
            request_id=self.request_id(n),
            workflow_id_reuse_policy=WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
            workflow_id_conflict_policy=1 + n % 3,  # type: ignore[arg-type]
            completion_callbacks=[NEXUS] * (n % 3),
        )
        if request.workflow_id_conflict_policy == CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING:
            request.on_conflict_options.CopyFrom(
                OnConflictOptions(attach_request_id=True, attach_completion_callbacks=True)
            )
        if n % 2:
            request.retry_policy.CopyFrom(retry_policy(attempts=3))
            request.workflow_run_timeout.CopyFrom(seconds(20))
        if n % 7 == 5:
            request.cron_schedule = "* * * * *"
        if n % 7 == 1:
            request.workflow_start_delay.CopyFrom(seconds(3))
        await self.engine.history.start_workflow_execution(request)

    async def signal(self, n: int) -> None:
        request = ws.SignalWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=self.execution(n),
            signal_name="s",
            request_id=self.request_id(n),
        )
        await self.engine.history.signal_workflow_execution(request)

    async def cancel(self, n: int) -> None:
        request = ws.RequestCancelWorkflowExecutionRequest(
            namespace=NAMESPACE, workflow_execution=self.execution(n), request_id=self.request_id(n)
        )
        await self.engine.history.request_cancel_workflow_execution(request)

    async def terminate(self, n: int) -> None:
        request = ws.TerminateWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=self.execution(n))
        await self.engine.history.terminate_workflow_execution(request)

    async def delete(self, n: int) -> None:
        request = ws.DeleteWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=self.execution(n))
        await self.engine.history.delete_workflow_execution(request)

    async def expire(self, n: int) -> None:
        host = self.engine.host(NAMES[n % 3])
        for run_id in list(host.states):
            until = host.now - timedelta(seconds=20)
            host.run(lambda work: delete_expired(work, run_id=run_id, closed_until=until))  # noqa: B023

    async def reset(self, n: int) -> None:
        host = self.engine.host(NAMES[n % 3])
        runs = sorted(host.states)
        if not runs:
            return
        run_id = runs[n % len(runs)]
        ends = [e.event_id for e in host.events[run_id] if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
        request = ws.ResetWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_execution=WorkflowExecution(workflow_id=host.workflow_id, run_id=run_id),
            workflow_task_finish_event_id=ends[n % len(ends)] if ends else 3,
            request_id=self.request_id(n),
            reason="again",
        )
        host.run(lambda work: reset_workflow(work, request, events={}))

    async def pause(self, n: int) -> None:
        request = ws.PauseWorkflowExecutionRequest(
            namespace=NAMESPACE, workflow_id=NAMES[n % 3], request_id=self.request_id(n)
        )
        await self.engine.history.pause_workflow_execution(request)

    async def unpause(self, n: int) -> None:
        request = ws.UnpauseWorkflowExecutionRequest(
            namespace=NAMESPACE, workflow_id=NAMES[n % 3], request_id=self.request_id(n)
        )
        await self.engine.history.unpause_workflow_execution(request)

    async def change_activity(self, n: int) -> None:
        host = self.engine.host(NAMES[n % 3])
        known = sorted(host.state.activity_ids) if host.current is not None else []
        where: dict[str, Any] = {
            "namespace": NAMESPACE, "execution": self.execution(n), "id": known[n % len(known)] if known else "none",
        }  # fmt: skip
        history = self.engine.history
        match n // 3 % 3:
            case 0:
                await history.pause_activity(ws.PauseActivityRequest(**where))
            case 1:
                await history.unpause_activity(ws.UnpauseActivityRequest(**where, reset_attempts=n % 2 == 0))
            case _:
                await history.reset_activity(ws.ResetActivityRequest(**where, keep_paused=n % 2 == 0))

    async def update(self, n: int) -> None:
        host = self.engine.host(NAMES[n % 3])
        request = update_request(f"u{n % 5}")
        if n % 3:
            request.request.request_id = self.request_id(n)
            request.request.completion_callbacks.append(NEXUS)
        admission = host.run(lambda work: admit_update(work, request))
        if admission.delivery is not None and n % 4:
            await add_workflow_task(self.engine, admission.delivery)  # type: ignore[arg-type]

    async def rule(self, n: int) -> None:
        """The namespace has a rule from now on, or none."""
        host = self.engine.host(NAMES[n % 3])
        assert host.namespace is not None
        host.namespace = replace(host.namespace, workflow_rules={"rule": PAUSING} if n % 2 else {})

    # --- workers

    async def poll(self, n: int) -> None:
        tasks = self.engine.matching.tasks
        if tasks:
            task = tasks.pop(n % len(tasks))
            await (self._poll_workflow(task) if task.kind == "workflow" else self._poll_activity(task))

    async def _poll_workflow(self, task: AddTask) -> None:
        queue = TaskQueue(
            name=task.task_queue, kind="TASK_QUEUE_KIND_STICKY" if task.normal_name else "TASK_QUEUE_KIND_NORMAL"
        )
        request = RecordWorkflowTaskStarted(
            namespace=NAMESPACE,
            workflow_id=task.workflow_id,
            run_id=task.run_id,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            stamp=task.stamp,
            request_id=self.request_id(1),
            poll=ws.PollWorkflowTaskQueueRequest(task_queue=queue, identity="worker"),
        )
        host = self.engine.host(task.workflow_id)
        self.held.append((host, host.run(lambda work: start_workflow_task(work, request))))

    async def _poll_activity(self, task: AddTask) -> None:
        request = RecordActivityTaskStarted(
            namespace=NAMESPACE,
            workflow_id=task.workflow_id,
            run_id=task.run_id,
            scheduled_event_id=task.scheduled_event_id,
            attempt=task.attempt,
            stamp=task.stamp,
            request_id=self.request_id(1),
            poll=ws.PollActivityTaskQueueRequest(task_queue=TaskQueue(name=task.task_queue), identity="worker"),
        )
        answer = await self.engine.history.record_activity_task_started(request)
        self.activities.append(answer.task_token)

    async def turn(self, n: int) -> None:
        """Nothing is in the way: what is queued comes to workers, and one of them does its work."""
        for _ in range(len(self.engine.open_tasks())):
            await self.transfer(0)
        while self.engine.matching.tasks:
            try:
                await self.poll(-1)
            except TemporalError:
                pass  # obsolete
        if n % 3 and self.activities:
            await self.activity(n)
        else:
            await self.complete(n)

    async def complete(self, n: int) -> None:
        if not self.held:
            return
        host, started = self.held.pop(n % len(self.held))
        state = host.states.get(started.info.run_id, host.empty)
        made = [COMMANDS[(n + i * 2) % len(COMMANDS)](n + i, state) for i in range(n % 4 + 1)]
        if n % 6 == 0:
            made.append(CLOSING[n // 6 % len(CLOSING)])
        answers = self._answers(host, started, n)
        fields: dict[str, Any] = {"messages": answers.messages}
        if n % 3 == 0:
            fields["sticky_attributes"] = StickyExecutionAttributes(
                worker_task_queue=TaskQueue(name="sticky"), schedule_to_start_timeout=seconds(5)
            )
        host.complete(started, *answers.commands, *made, **fields)

    @staticmethod
    def _answers(host: CrashingHost, started: StartedTask, n: int) -> Answers:
        answers = Answers(started)
        for message in started.messages:
            update_id = message.protocol_instance_id
            match n % 4:
                case 0:
                    answers.reject(update_id)
                case 1:
                    answers.accept(update_id)
                case _:
                    answers.accept(update_id).complete(update_id)
        state = host.states.get(started.info.run_id)
        accepted = [item.update_id for item in state.updates.values() if item.state == "accepted"] if state else []
        for update_id in accepted[: n % 2]:
            answers.complete(update_id)
        return answers

    async def fail_task(self, n: int) -> None:
        if not self.held:
            return
        host, started = self.held.pop(n % len(self.held))
        assert started.task.started_at is not None
        token = TaskToken(
            namespace=NAMESPACE,
            workflow_id=host.workflow_id,
            run_id=started.info.run_id,
            scheduled_event_id=started.task.scheduled_event_id,
            started_event_id=started.task.started_event_id,
            attempt=started.task.attempt,
        )
        request = ws.RespondWorkflowTaskFailedRequest(
            namespace=NAMESPACE, task_token=encode_token(token), failure=FAILURE, cause=1 + n % 3
        )
        await self.engine.history.respond_workflow_task_failed(request)

    async def activity(self, n: int) -> None:
        if not self.activities:
            return
        index = n % len(self.activities)
        where: dict[str, Any] = {"namespace": NAMESPACE, "task_token": self.activities[index]}
        history = self.engine.history
        if n % 5 == 0:
            await history.record_activity_task_heartbeat(ws.RecordActivityTaskHeartbeatRequest(**where))
            return
        del self.activities[index]
        match n % 7:
            case 1 | 2 | 3:
                await history.respond_activity_task_completed(ws.RespondActivityTaskCompletedRequest(**where))
            case 4 | 5 | 6:
                await history.respond_activity_task_failed(
                    ws.RespondActivityTaskFailedRequest(**where, failure=FAILURE)
                )
            case _:
                await history.respond_activity_task_canceled(ws.RespondActivityTaskCanceledRequest(**where))

    # --- the server

    async def transfer(self, n: int) -> None:
        tasks = self.engine.open_tasks()
        self.engine.callbacks.mood = n
        if tasks:
            await self.engine.handle_one(tasks[n % len(tasks)], twice=n % 4 == 0)

    async def fault(self, n: int) -> None:
        self.engine.crash_at(n % 3, after=n % 2 == 0)

    async def crash(self, n: int) -> None:
        self.engine.crash()

    async def wait(self, n: int) -> None:
        self.engine.advance(n if n % 5 == 0 else n % 5)


STEPS = {
    "start": 3, "signal": 2, "cancel": 1, "terminate": 1, "delete": 1, "expire": 1, "reset": 1, "pause": 1, "unpause": 2,
    "change_activity": 2, "update": 3, "rule": 1, "turn": 20, "poll": 7, "complete": 5, "fail_task": 1, "activity": 5,
    "transfer": 7, "fault": 1, "crash": 2, "wait": 4,
}  # fmt: skip
"""What is done how often."""


async def check(crowd: Crowd) -> None:
    for host in crowd.engine.hosts.values():
        assert faults(host) == []
        _, found = await verify(Stored(host))
        assert found == []


async def end_all(crowd: Crowd) -> None:
    """Every run ends, every transfer task is handled, and no timer is left."""
    engine = crowd.engine
    engine.callbacks.mood = 0
    for _ in range(60):
        for host in engine.hosts.values():
            if host.current is not None and is_open(host.info.status):
                host.run(lambda work: terminate_run(work.run(), reason="the end"))
        while tasks := engine.open_tasks():
            await engine.handle_one(tasks[0])
        if not any(host.timer_tasks for host in engine.hosts.values()) and not engine.open_tasks():
            return
        engine.advance(3_600)
    left = {name: (host.transfer_tasks, host.timer_tasks) for name, host in engine.hosts.items()}
    raise AssertionError(f"it does not come to an end: {left}")


@given(
    st.lists(
        st.tuples(st.sampled_from([name for name, count in STEPS.items() for _ in range(count)]), st.integers(0, 60)),
        min_size=10,
        max_size=110,
    )
)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example])
async def test_any_order_of_things(steps: list[tuple[str, int]]) -> None:
    crowd = Crowd()
    for name, n in [("start", 3), ("transfer", 0), ("poll", 0), *steps]:
        try:
            await getattr(crowd, name)(n)
        except (TemporalError, BadCommand):
            pass
        for host in crowd.engine.hosts.values():
            assert faults(host) == [], name
    await check(crowd)
    crowd.engine.crash()
    await end_all(crowd)
    await check(crowd)
    for host in crowd.engine.hosts.values():
        assert all(not state.children for state in host.states.values())
        assert all(
            item.state in ("succeeded", "failed", "standby")
            for s in host.states.values()
            for item in s.callbacks.values()
        )
        assert all(
            item.state != "standby" or not item.update_id or is_reset(host.events[run_id][-1])
            for run_id, state in host.states.items()
            for item in state.callbacks.values()
        )
