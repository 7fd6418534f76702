"""Whatever clients, workers and time do in whatever order: every history stays without a gap, replays to the state that was left,
and agrees with everything else that is kept of its run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import RetryPolicy, WorkflowExecution
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy
from temporalio.api.workflowservice import v1 as ws

from common.errors import TemporalError
from history.commands import BadCommand
from history.transitions.cancel import request_cancel
from history.transitions.close import is_open
from history.transitions.delete import delete_workflow
from history.transitions.task_start import StartedTask
from history.transitions.terminate import terminate_run
from tests.history.harness import NAMESPACE, WORKFLOW_ID, Host, command, seconds
from tests.history.test_signals import signal, signal_start
from tests.history.test_verify import Stored, verify

POLICY = RetryPolicy(
    initial_interval=seconds(1), backoff_coefficient=2, maximum_interval=seconds(9), maximum_attempts=3
)
CONFLICT = WorkflowIdConflictPolicy
COMMANDS: list[Callable[[int], Command]] = [
    lambda n: command("start_timer", timer_id=f"t{n % 3}", start_to_fire_timeout=seconds(n)),
    lambda n: command("cancel_timer", timer_id=f"t{n % 3}"),
    lambda n: command(
        "schedule_activity_task",
        activity_id=f"a{n % 3}",
        activity_type={"name": "A"},
        task_queue={"name": "q"},
        start_to_close_timeout=seconds(5),
        schedule_to_close_timeout=seconds(n + 1),
    ),
    lambda n: command("record_marker", marker_name=f"m{n}"),
    lambda n: command("complete_workflow_execution"),
    lambda n: command("fail_workflow_execution", failure={"message": "no", "application_failure_info": {}}),
    lambda n: command("continue_as_new_workflow_execution"),
    lambda n: command("cancel_workflow_execution"),
]


class Crowd:
    """One host, and the things that may be done to it; what is refused is no fault."""

    def __init__(self) -> None:
        self.host = Host()
        self.held: list[StartedTask] = []
        self.requests = 0

    def request_id(self, n: int) -> str:
        """Mostly a fresh one, now and then one that was used before."""
        self.requests += 1
        return f"r{self.requests if n % 3 else n}"

    def start(self, n: int) -> None:
        fields: dict[str, Any] = {"request_id": self.request_id(n)}
        fields["workflow_id_conflict_policy"] = [
            CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
            CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
            CONFLICT.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
        ][n % 3]
        if n % 2:
            fields |= {"retry_policy": POLICY, "workflow_run_timeout": seconds(20)}
        if n % 5 == 0:
            fields["cron_schedule"] = "* * * * *"
        if n % 7 == 1:
            fields["workflow_start_delay"] = seconds(3)
        self.host.start(**fields)

    def signal_with_start(self, n: int) -> None:
        signal_start(self.host, self.request_id(n))

    def signal(self, n: int) -> None:
        signal(self.host, request_id=self.request_id(n))

    def cancel(self, n: int) -> None:
        request = ws.RequestCancelWorkflowExecutionRequest(
            namespace=NAMESPACE, workflow_execution=WorkflowExecution(workflow_id=WORKFLOW_ID)
        )
        self.host.run(lambda work: request_cancel(work, request))

    def terminate(self, n: int) -> None:
        if self.host.current is not None and is_open(self.host.info.status):
            self.host.run(lambda work: terminate_run(work.run(), reason="stop"))

    def delete(self, n: int) -> None:
        runs = sorted(self.host.states)
        if runs and n % 4 == 0:
            self.host.run(lambda work: delete_workflow(work, run_id=runs[n % len(runs)]))

    def poll(self, n: int) -> None:
        if self.host.current is None:
            return
        task = self.host.info.workflow_task
        if task is not None and not task.started_event_id:
            self.held.append(self.host.poll())

    def complete(self, n: int) -> None:
        if self.held:
            made = [COMMANDS[(n + i) % len(COMMANDS)](n) for i in range(n % 3 + 1)]
            closing = next((i for i, each in enumerate(made) if each.command_type in (2, 3, 4, 10)), len(made))
            self.host.complete(self.held.pop(), *made[: closing + 1])

    def wait(self, n: int) -> None:
        self.host.advance(timedelta(seconds=n))


STEPS = [
    "start",
    "signal_with_start",
    "signal",
    "cancel",
    "terminate",
    "delete",
    "poll",
    "poll",
    "complete",
    "complete",
    "wait",
]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), min_size=5, max_size=40))
@settings(max_examples=80, deadline=None)
async def test_any_schedule(steps: list[tuple[str, int]]) -> None:
    crowd = Crowd()
    for name, n in steps:
        try:
            getattr(crowd, name)(n)
        except (TemporalError, BadCommand):
            pass
    _, found = await verify(Stored(crowd.host))
    assert found == []
