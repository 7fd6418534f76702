"""UpdateWorkflowExecution: admit an update, hand its workflow task over, wait for the worker."""

from __future__ import annotations

from datetime import datetime

from temporalio.api.common.v1 import Link, WorkflowExecution
from temporalio.api.enums.v1 import EventType, ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionRequest, UpdateWorkflowExecutionResponse

from common.errors import NotFound, ResourceExhausted
from history.api.links import request_id_link, workflow_link
from history.api.update_stages import (
    ACCEPTED,
    COMPLETED,
    Status,
    UpdateForgotten,
    UpdateMoved,
    forgotten,
    update_ref,
    wait_for_stage,
)
from history.engine.engine import Engine
from history.engine.transfer_tasks import add_workflow_task
from history.records import TransferTask
from history.transitions.updates import Admission, admit_update


async def update_workflow_execution(
    engine: Engine, request: UpdateWorkflowExecutionRequest
) -> UpdateWorkflowExecutionResponse:
    """Returns at the stage that is asked for, or after a long poll's time at the stage reached. An update that its run
    could not take because it was continued as another goes to that one."""
    until = engine.clock.now() + engine.config.long_poll
    while True:
        admission = await engine.update(
            namespace=request.namespace,
            workflow_id=request.workflow_execution.workflow_id,
            transition=lambda work: admit_update(work, request),
            reason="UpdateWorkflowExecution",
        )
        deliver(engine, admission)
        try:
            return await finish_update(engine, request, admission, until=until)
        except UpdateMoved:
            if engine.clock.now() >= until:
                raise closing() from None
        except UpdateForgotten:
            if engine.clock.now() >= until:
                raise forgotten() from None


def deliver(engine: Engine, admission: Admission) -> None:
    """Hand a speculative workflow task to Matching. If that fails its time-out brings a real one."""
    if admission.delivery is not None:
        engine.spawn(_offer(engine, admission.delivery), name=f"speculative task of {admission.run_id}")


async def _offer(engine: Engine, delivery: TransferTask) -> None:
    try:
        await add_workflow_task(engine, delivery)
    except NotFound:
        pass  # the run is gone


async def finish_update(
    engine: Engine, request: UpdateWorkflowExecutionRequest, admission: Admission, *, until: datetime
) -> UpdateWorkflowExecutionResponse:
    """Wait for the admitted update. Raises UpdateMoved, UpdateForgotten."""
    execution = WorkflowExecution(workflow_id=request.workflow_execution.workflow_id, run_id=admission.run_id)
    status = await wait_for_stage(
        engine,
        namespace=request.namespace,
        execution=execution,
        update_id=admission.update_id,
        ticket=admission.ticket,
        stage=request.wait_policy.lifecycle_stage,
        until=until,
    )
    return UpdateWorkflowExecutionResponse(
        update_ref=update_ref(execution, admission.update_id),
        outcome=status.outcome,
        stage=status.stage,
        link=_link(request, execution, status),
    )


def _link(request: UpdateWorkflowExecutionRequest, execution: WorkflowExecution, status: Status) -> Link | None:
    """To the accepted event; to the run itself for a rejected update, which has none."""
    where = {
        "namespace": request.namespace, "workflow_id": execution.workflow_id, "run_id": execution.run_id,
    }  # fmt: skip
    if status.stage == COMPLETED and status.outcome is not None and status.outcome.HasField("failure"):
        return workflow_link(**where, reason="Update rejected")
    if status.stage >= ACCEPTED:
        return request_id_link(
            **where,
            request_id=request.request.request_id,
            event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED,
        )
    return None


def closing() -> ResourceExhausted:
    return ResourceExhausted(
        "workflow operation can not be applied because workflow is closing",
        cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW,
        scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
    )
