"""A batch's type and state as the API names them."""

from __future__ import annotations

from temporalio.api.enums.v1 import BatchOperationState, BatchOperationType

from common.contracts.batches import BatchRecord

_TYPES = {
    "termination_operation": BatchOperationType.BATCH_OPERATION_TYPE_TERMINATE_WORKFLOW,
    "signal_operation": BatchOperationType.BATCH_OPERATION_TYPE_SIGNAL_WORKFLOW,
    "cancellation_operation": BatchOperationType.BATCH_OPERATION_TYPE_CANCEL_WORKFLOW,
    "deletion_operation": BatchOperationType.BATCH_OPERATION_TYPE_DELETE_WORKFLOW,
    "reset_operation": BatchOperationType.BATCH_OPERATION_TYPE_RESET_WORKFLOW,
    "update_workflow_options_operation": BatchOperationType.BATCH_OPERATION_TYPE_UPDATE_WORKFLOW_EXECUTION_OPTIONS,
    "unpause_activities_operation": BatchOperationType.BATCH_OPERATION_TYPE_UNPAUSE_ACTIVITY,
    "reset_activities_operation": BatchOperationType.BATCH_OPERATION_TYPE_RESET_ACTIVITY,
    "update_activity_options_operation": BatchOperationType.BATCH_OPERATION_TYPE_UPDATE_ACTIVITY_OPTIONS,
    "cancel_activities_operation": BatchOperationType.BATCH_OPERATION_TYPE_CANCEL_ACTIVITY,
    "terminate_activities_operation": BatchOperationType.BATCH_OPERATION_TYPE_TERMINATE_ACTIVITY,
    "delete_activities_operation": BatchOperationType.BATCH_OPERATION_TYPE_DELETE_ACTIVITY,
}


def operation_type(batch: BatchRecord) -> BatchOperationType.ValueType:
    return _TYPES[batch.operation]


def state_of(batch: BatchRecord) -> BatchOperationState.ValueType:
    """As upstream, which knows a stopped batch as a failed one."""
    match batch.state:
        case "Running":
            return BatchOperationState.BATCH_OPERATION_STATE_RUNNING
        case "Completed":
            return BatchOperationState.BATCH_OPERATION_STATE_COMPLETED
    return BatchOperationState.BATCH_OPERATION_STATE_FAILED
