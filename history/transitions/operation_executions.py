"""Nexus operations without a workflow: starting, canceling, terminating and deleting them. What goes on in between:
`standalone_operations` and `nexus`.

    start_execution(work, request, *, namespace_id, endpoint_id) -> Started
    request_cancel(work, request), terminate(work, request), delete(work, request)

Source: upstream's chasm/lib/nexusoperation/{handler,operation}.go.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import NexusOperationIdConflictPolicy, NexusOperationIdReusePolicy, WorkflowExecutionStatus
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import NEXUS_OPERATION
from common.errors import FailedPrecondition, NexusOperationExecutionAlreadyStarted
from common.protos import from_duration
from history.payloads import encode_string
from history.records import ExecutionInfo, NexusCancellation, NexusOperationItem, OperationExecution
from history.transitions import standalone_operations as standalone
from history.transitions.close import is_open
from history.transitions.executions import Conflict, Reuse, changed, create, delete_execution, existing_of
from history.transitions.nexus import dispatch_cancel, dispatch_start
from history.workspace import Workspace

_REUSE: dict[int, Reuse] = {
    NexusOperationIdReusePolicy.NEXUS_OPERATION_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY: "failedOnly",
    NexusOperationIdReusePolicy.NEXUS_OPERATION_ID_REUSE_POLICY_REJECT_DUPLICATE: "reject",
}
_CANCELED = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_CANCELED
_USE_EXISTING = NexusOperationIdConflictPolicy.NEXUS_OPERATION_ID_CONFLICT_POLICY_USE_EXISTING
SHOWN = "TemporalNexus"
"""What the names of the attributes begin with by which operations can be found; they are not the user's."""
DELETED = "Delete nexus operation execution"


class Started(Struct, kw_only=True, frozen=True):
    run_id: str
    started: bool
    """Whether this request has made it."""


def start_execution(
    work: Workspace, request: ws.StartNexusOperationExecutionRequest, *, namespace_id: str, endpoint_id: str
) -> Started:
    """Raises NexusOperationExecutionAlreadyStarted as the id policies say."""
    conflict: Conflict = "useExisting" if request.id_conflict_policy == _USE_EXISTING else "fail"
    existing = existing_of(
        work,
        request_id=request.request_id,
        reuse=_REUSE.get(request.id_reuse_policy, "allow"),
        conflict=conflict,
    )
    if existing is not None:
        run = existing.run
        if existing.refused:
            raise NexusOperationExecutionAlreadyStarted(start_request_id=run.create_request_id, run_id=run.run_id)
        return Started(run_id=run.run_id, started=False)
    item = _item(work, request, endpoint_id=endpoint_id)
    draft = create(work, _info(work, request, item, namespace_id=namespace_id))
    draft.operation_executions[""] = OperationExecution(
        input=request.input if request.HasField("input") else None,
        headers=dict(request.nexus_header),
        identity=request.identity,
    )
    draft.nexus_operations[standalone.ITEM] = item
    dispatch_start(draft, item)
    return Started(run_id=draft.info.run_id, started=True)


def _item(work: Workspace, request: ws.StartNexusOperationExecutionRequest, *, endpoint_id: str) -> NexusOperationItem:
    return NexusOperationItem(
        scheduled_event_id=standalone.ITEM,
        endpoint=request.endpoint,
        endpoint_id=endpoint_id,
        service=request.service,
        operation=request.operation,
        request_id=work.new_run_id(),
        scheduled_at=work.now,
        schedule_to_close=from_duration(request.schedule_to_close_timeout),
        schedule_to_start=from_duration(request.schedule_to_start_timeout),
        start_to_close=from_duration(request.start_to_close_timeout),
    )


def _info(
    work: Workspace, request: ws.StartNexusOperationExecutionRequest, item: NexusOperationItem, *, namespace_id: str
) -> ExecutionInfo:
    run_id = work.new_run_id()
    shown = {"Endpoint": item.endpoint, "Service": item.service, "Operation": item.operation}
    shown["RequestId"] = item.request_id
    return ExecutionInfo(
        namespace=work.namespace,
        namespace_id=namespace_id,
        archetype=NEXUS_OPERATION,
        workflow_id=work.workflow_id,
        run_id=run_id,
        shard_id=work.shard_id,
        workflow_type=request.operation,
        task_queue=request.endpoint,
        started_at=work.now,
        execution_time=work.now,
        first_run_id=run_id,
        create_request_id=request.request_id,
        pending_nexus_operations=1,
        search_attributes={
            **request.search_attributes.indexed_fields,
            **{SHOWN + name: _keyword(value) for name, value in shown.items()},
        },
        user_metadata=request.user_metadata if request.HasField("user_metadata") else None,
    )


def _keyword(text: str) -> Payload:
    payload = encode_string(text).payloads[0]
    payload.metadata["type"] = b"Keyword"
    return payload


def request_cancel(work: Workspace, request: ws.RequestCancelNexusOperationExecutionRequest) -> None:
    """It is sent to the handler once that has started the operation. A repeated request changes nothing."""
    draft = work.run(request.run_id)
    known = standalone.own(draft).cancel_request_id
    item = draft.nexus_operations[standalone.ITEM]
    if item.cancellation is not None and known == request.request_id:
        return
    if not is_open(draft.info.status):
        raise FailedPrecondition("operation already completed")
    if item.cancellation is not None:
        raise FailedPrecondition(f"cancellation already requested with request ID {known}")
    standalone.change(
        draft,
        cancel_identity=request.identity,
        cancel_reason=request.reason,
        cancel_request_id=request.request_id,
    )
    asked = NexusCancellation(
        requested_event_id=standalone.ITEM,
        requested_at=work.now,
        state="scheduled" if item.state == "started" else "unstarted",
    )
    item = replace(item, cancellation=asked)
    draft.nexus_operations[standalone.ITEM] = item
    dispatch_cancel(draft, item)
    changed(draft)


def terminate(work: Workspace, request: ws.TerminateNexusOperationExecutionRequest) -> None:
    """A repeated request changes nothing. One that was canceled may be terminated yet, as upstream has it."""
    draft = work.run(request.run_id)
    known = standalone.own(draft).terminate_request_id
    if known:
        if known != request.request_id:
            raise FailedPrecondition(f"already terminated with request ID {known}")
        return
    if not is_open(draft.info.status) and draft.info.status != _CANCELED:
        raise FailedPrecondition(f"invalid transition from {standalone.state_of(draft)}")
    standalone.change(draft, terminate_request_id=request.request_id)
    standalone.terminate(draft, reason=request.reason, identity=request.identity)


def delete(work: Workspace, request: ws.DeleteNexusOperationExecutionRequest) -> None:
    delete_execution(
        work,
        run_id=request.run_id,
        terminate=lambda draft: standalone.terminate(draft, reason=DELETED, identity=""),
    )
