"""A run has closed: tell its parent, and apply the parent close policy to its children."""

from __future__ import annotations

import asyncio

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import ParentClosePolicy
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import RequestCancelWorkflowExecutionRequest, TerminateWorkflowExecutionRequest

from common.contracts.history import ChildClosed
from common.errors import NamespaceNotFound, NotFound
from history.engine.engine import Engine
from history.engine.transfer_tasks import handles_transfer
from history.processors.events import read_event
from history.records import ChildItem, TransferTask
from history.state import ExecutionState
from history.transitions.children import drop_children
from history.transitions.close import SERVER_IDENTITY, is_open, is_reset

GONE = (NotFound, NamespaceNotFound)
AT_ONCE = 100
"""Children that are told at the same time, so that they share commits."""


@handles_transfer("closeExecution")
async def close_execution(engine: Engine, task: TransferTask) -> None:
    """A run that ended by a reset tells nobody: the run in its place is its parent's child and its children's parent."""
    state = await engine.read(namespace=task.namespace, workflow_id=task.workflow_id, run_id=task.run_id)
    info = state.info
    if is_open(info.status):
        return
    close_event = await read_event(engine, state, info.close_event_id)
    reset = is_reset(close_event)
    if info.parent is not None and not info.continued_to_run_id and not reset:
        await _tell_parent(engine, state, close_event)
    if not state.children:
        return
    if not reset:
        parent = WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id)
        children = list(state.children.values())
        for first in range(0, len(children), AT_ONCE):
            await asyncio.gather(*[_apply_policy(engine, child, parent) for child in children[first : first + AT_ONCE]])
    await engine.update(
        namespace=task.namespace,
        workflow_id=task.workflow_id,
        transition=lambda work: drop_children(work, task.run_id),
        reason="ParentClosePolicyApplied",
    )


async def _tell_parent(engine: Engine, state: ExecutionState, close_event: HistoryEvent) -> None:
    info = state.info
    parent = info.parent
    assert parent is not None
    try:
        await engine.history.child_closed(
            ChildClosed(
                namespace=parent.namespace,
                workflow_id=parent.workflow_id,
                run_id=parent.run_id,
                initiated_event_id=parent.initiated_event_id,
                child=WorkflowExecution(workflow_id=info.workflow_id, run_id=info.run_id),
                child_first_run_id=info.first_run_id,
                close_event=close_event,
            )
        )
    except GONE:
        pass  # the parent is gone, has closed, or waits for another


async def _apply_policy(engine: Engine, child: ChildItem, parent: WorkflowExecution) -> None:
    """Act on the child's chain, whatever its newest run is. One that has not started is seen to by its start's own task."""
    if not child.run_id:
        return
    execution = WorkflowExecution(workflow_id=child.workflow_id)
    try:
        match child.parent_close_policy:
            case ParentClosePolicy.PARENT_CLOSE_POLICY_TERMINATE:
                await engine.history.terminate_workflow_execution(
                    TerminateWorkflowExecutionRequest(
                        namespace=child.namespace,
                        workflow_execution=execution,
                        first_execution_run_id=child.run_id,
                        reason="by parent close policy",
                        identity=SERVER_IDENTITY,
                    ),
                    child_only=True,
                    external_execution=parent,
                )
            case ParentClosePolicy.PARENT_CLOSE_POLICY_REQUEST_CANCEL:
                await engine.history.request_cancel_workflow_execution(
                    RequestCancelWorkflowExecutionRequest(
                        namespace=child.namespace,
                        workflow_execution=execution,
                        first_execution_run_id=child.run_id,
                        identity=SERVER_IDENTITY,
                    ),
                    child_only=True,
                    external_execution=parent,
                )
            case _:
                pass  # abandoned
    except GONE:
        pass
