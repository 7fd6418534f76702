"""What transfer tasks do between executions: start children, send signals and cancels, tell of an end. Also when the server
dies in between."""

from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution, WorkflowType
from temporalio.api.enums.v1 import ParentClosePolicy
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from history.api.terminate_workflow_execution import terminate_workflow_execution
from history.records import TransferTask
from history.transitions.reset import reset_workflow
from history.transitions.signals import signal_workflow
from tests.history.commands import complete_workflow
from tests.history.harness import NAMESPACE, command
from tests.history.many_hosts import ManyHosts

TERMINATE = ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE
REQUEST_CANCEL = ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL
ABANDON = ParentClosePolicy.PARENT_CLOSE_POLICY_ABANDON

CRASHES = [(count, after) for count in range(4) for after in (False, True)]


async def started(engine: ManyHosts, workflow_id: str) -> None:
    await engine.history.start_workflow_execution(
        ws.StartWorkflowExecutionRequest(
            namespace=NAMESPACE,
            workflow_id=workflow_id,
            workflow_type=WorkflowType(name="Type"),
            task_queue=TaskQueue(name="queue"),
            request_id=f"start {workflow_id}",
        )
    )


def child(workflow_id: str = "child", policy: ParentClosePolicy.ValueType = TERMINATE) -> Any:
    return command(
        "start_child_workflow_execution",
        workflow_id=workflow_id,
        workflow_type={"name": "Child"},
        parent_close_policy=policy,
    )


async def parent(*commands: Any) -> ManyHosts:
    engine = ManyHosts()
    await started(engine, "parent")
    engine.host("parent").do(*commands)
    return engine


async def parent_and_child(policy: ParentClosePolicy.ValueType = TERMINATE) -> ManyHosts:
    engine = await parent(child(policy=policy))
    await engine.handle(engine.take("parent", "startChild"))
    return engine


# --- starting a child


@pytest.mark.parametrize(("count", "after"), CRASHES)
async def test_a_child_is_started_once_whatever_happens(count: int, after: bool) -> None:
    engine = await parent(child())
    engine.crash_at(count, after=after)
    task = engine.take("parent", "startChild")
    await engine.handle(task)
    await engine.handle(task)
    assert engine.types("child") == ["WORKFLOW_EXECUTION_STARTED", "WORKFLOW_TASK_SCHEDULED"]
    assert engine.types("parent")[4:] == [
        "START_CHILD_WORKFLOW_EXECUTION_INITIATED",
        "CHILD_WORKFLOW_EXECUTION_STARTED",
        "WORKFLOW_TASK_SCHEDULED",
    ]
    info = engine.host("child").info
    assert info.parent is not None and (info.parent.workflow_id, info.parent.initiated_event_id) == ("parent", 5)
    assert (info.root_workflow_id, info.create_request_id) == ("parent", f"{info.parent.run_id}:5:0")


async def test_a_taken_id_is_told_to_the_parent() -> None:
    engine = await parent(child())
    await started(engine, "child")
    await engine.handle(engine.take("parent", "startChild"))
    assert engine.types("parent")[5:] == ["START_CHILD_WORKFLOW_EXECUTION_FAILED", "WORKFLOW_TASK_SCHEDULED"]


@pytest.mark.parametrize(
    ("policy", "events"),
    [
        (ABANDON, ["WORKFLOW_TASK_SCHEDULED"]),
        (TERMINATE, ["WORKFLOW_EXECUTION_TERMINATED"]),
        (REQUEST_CANCEL, ["WORKFLOW_EXECUTION_CANCEL_REQUESTED", "WORKFLOW_TASK_SCHEDULED"]),
    ],
)
async def test_a_parent_that_closes_before_it_records_the_start_leaves_no_half_child(
    policy: ParentClosePolicy.ValueType, events: list[str]
) -> None:
    engine = await parent(child(policy=policy))
    engine.crash_at(0, after=True)  # the child exists, nobody knows
    task = engine.take("parent", "startChild")
    await terminate_when_crashed(engine, task)
    assert engine.types("child") == ["WORKFLOW_EXECUTION_STARTED", *events]
    if policy != ABANDON:
        await engine.handle(engine.take("parent", "closeExecution"))
    assert engine.types("child") == ["WORKFLOW_EXECUTION_STARTED", *events]


async def terminate_when_crashed(engine: ManyHosts, task: TransferTask) -> None:
    """The parent ends between the handler's first run, which fails, and its second."""
    update = engine.update

    async def terminating(**fields: Any) -> Any:
        try:
            return await update(**fields)
        except Exception:
            request = ws.TerminateWorkflowExecutionRequest(
                namespace=NAMESPACE, workflow_execution=WorkflowExecution(workflow_id="parent")
            )
            await terminate_workflow_execution(engine, request)  # type: ignore[arg-type]
            raise

    engine.update = terminating  # type: ignore[method-assign]
    await engine.handle(task)
    engine.update = update  # type: ignore[method-assign]


async def test_a_closed_parent_starts_no_child() -> None:
    engine = await parent(child(policy=ABANDON), complete_workflow())
    await engine.handle(engine.take("parent", "startChild"))
    assert engine.types("child") == []


# --- the end of a run


@pytest.mark.parametrize(("count", "after"), CRASHES[:4])
async def test_a_child_tells_its_parent_once(count: int, after: bool) -> None:
    engine = await parent_and_child()
    engine.host("child").do(complete_workflow())
    engine.crash_at(count, after=after)
    task = engine.take("child", "closeExecution")
    await engine.handle(task)
    await engine.handle(task)
    assert engine.types("parent").count("CHILD_WORKFLOW_EXECUTION_COMPLETED") == 1


async def test_only_the_last_run_of_a_chain_tells_the_parent() -> None:
    engine = await parent_and_child()
    first = engine.host("child").info.run_id
    engine.host("child").do(command("continue_as_new_workflow_execution"))
    assert not [task for task in engine.host("child").transfer_tasks if task.kind == "closeExecution"]
    engine.host("child").advance(2)
    engine.host("child").do(complete_workflow())
    await engine.handle(engine.take("child", "closeExecution"))
    host = engine.host("parent")
    end = next(
        e.child_workflow_execution_completed_event_attributes
        for e in host.events[host.info.run_id]
        if e.HasField("child_workflow_execution_completed_event_attributes")
    )
    assert end.workflow_execution.run_id == engine.host("child").info.run_id != first


@pytest.mark.parametrize(
    ("policy", "last"),
    [
        (ABANDON, "WORKFLOW_TASK_SCHEDULED"),
        (TERMINATE, "WORKFLOW_EXECUTION_TERMINATED"),
        (REQUEST_CANCEL, "WORKFLOW_EXECUTION_CANCEL_REQUESTED"),
    ],
)
@pytest.mark.parametrize("continued", [False, True])
async def test_the_parent_close_policy_reaches_the_newest_run(
    policy: ParentClosePolicy.ValueType, last: str, continued: bool
) -> None:
    engine = await parent_and_child(policy)
    if continued:
        engine.host("child").do(command("continue_as_new_workflow_execution"))
        engine.host("child").advance(2)
    engine.host("parent").do(complete_workflow())
    if policy != ABANDON:
        await engine.handle(engine.take("parent", "closeExecution"))
    assert engine.types("child")[-1] == last
    assert ("WORKFLOW_EXECUTION_CANCEL_REQUESTED" in engine.types("child")) == (policy == REQUEST_CANCEL)
    assert not engine.host("parent").state.children


async def test_children_of_a_reset_parent_go_on() -> None:
    engine = await parent_and_child()
    host = engine.host("parent")
    host.do()
    old = host.info.run_id
    request = ws.ResetWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_execution=WorkflowExecution(workflow_id="parent"),
        workflow_task_finish_event_id=9,
        request_id="reset",
    )
    host.run(lambda work: reset_workflow(work, request, events={}))
    await engine.handle(engine.take("parent", "closeExecution"))
    assert engine.types("child")[-1] == "WORKFLOW_TASK_SCHEDULED"
    await engine.handle(engine.take("parent", "startChild"))
    engine.host("child").do(complete_workflow())
    await engine.handle(engine.take("child", "closeExecution"))
    assert host.info.run_id != old
    assert "CHILD_WORKFLOW_EXECUTION_COMPLETED" in engine.types("parent")


# --- signals and cancels


def signal(workflow_id: str, **fields: Any) -> Any:
    return command(
        "signal_external_workflow_execution", execution={"workflow_id": workflow_id}, signal_name="s", **fields
    )


def cancel(workflow_id: str, **fields: Any) -> Any:
    return command("request_cancel_external_workflow_execution", workflow_id=workflow_id, **fields)


@pytest.mark.parametrize(("count", "after"), CRASHES[:4])
async def test_a_signal_arrives_once(count: int, after: bool) -> None:
    engine = await parent(signal("other"))
    await started(engine, "other")
    engine.crash_at(count, after=after)
    await engine.handle(engine.take("parent", "signalExternal"))
    assert engine.types("other").count("WORKFLOW_EXECUTION_SIGNALED") == 1
    assert engine.types("parent")[5:] == ["EXTERNAL_WORKFLOW_EXECUTION_SIGNALED", "WORKFLOW_TASK_SCHEDULED"]


@pytest.mark.parametrize("target", ["unknown", "parent", "closed", "stranger"])
async def test_a_signal_that_can_not_arrive_fails(target: str) -> None:
    engine = await parent(signal(target, child_workflow_only=target == "stranger"))
    await started(engine, "closed")
    engine.host("closed").do(complete_workflow())
    await started(engine, "stranger")
    await engine.handle(engine.take("parent", "signalExternal"))
    assert engine.types("parent")[5] == "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"


@pytest.mark.parametrize(("count", "after"), CRASHES[:4])
async def test_a_cancel_request_arrives_once(count: int, after: bool) -> None:
    engine = await parent(cancel("other"))
    await started(engine, "other")
    engine.crash_at(count, after=after)
    await engine.handle(engine.take("parent", "cancelExternal"))
    assert engine.types("other").count("WORKFLOW_EXECUTION_CANCEL_REQUESTED") == 1
    assert engine.types("parent")[5] == "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED"


@pytest.mark.parametrize(("target", "event"), [
    ("unknown", "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"),
    ("parent", "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED"),
    ("closed", "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED"),
])  # fmt: skip
async def test_what_becomes_of_other_cancel_requests(target: str, event: str) -> None:
    engine = await parent(cancel(target))
    await started(engine, "closed")
    engine.host("closed").do(complete_workflow())
    await engine.handle(engine.take("parent", "cancelExternal"))
    assert engine.types("parent")[5] == event


async def test_tasks_of_what_is_gone_do_nothing() -> None:
    engine = await parent(signal("other"), cancel("other"), child())
    tasks = [engine.take("parent", kind) for kind in ("signalExternal", "cancelExternal", "startChild")]
    request = ws.SignalWorkflowExecutionRequest(
        namespace=NAMESPACE, workflow_execution=WorkflowExecution(workflow_id="parent"), signal_name="s"
    )
    engine.host("parent").run(lambda work: signal_workflow(work, request))
    engine.host("parent").do(complete_workflow())
    before = engine.types("parent")
    for task in tasks:
        await engine.handle(task)
    assert engine.types("parent") == before
