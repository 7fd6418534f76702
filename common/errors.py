"""Typed errors. A class declares the gRPC status and the error-details message that upstream sends for it; one
interceptor of the frontend renders them.

Source of statuses and details: upstream's go.temporal.io/api/serviceerror.
"""

from __future__ import annotations

from typing import ClassVar

import grpc
from google.protobuf.message import Message
from temporalio.api.enums.v1 import NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.errordetails import v1 as details
from temporalio.api.failure.v1 import Failure


class TemporalError(Exception):
    """An error that a client may see: status, message, and the details message upstream attaches (or none)."""

    status: ClassVar[grpc.StatusCode] = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def detail(self) -> Message | None:
        return None


class InvalidArgument(TemporalError):
    status = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(TemporalError):
    status = grpc.StatusCode.NOT_FOUND

    def detail(self) -> Message | None:
        return details.NotFoundFailure()


class FailedPrecondition(TemporalError):
    status = grpc.StatusCode.FAILED_PRECONDITION


class NewerBuildExists(TemporalError):
    """A worker of a build that gets no tasks any more."""

    status = grpc.StatusCode.OUT_OF_RANGE

    def __init__(self, message: str = "", *, default_build_id: str) -> None:
        super().__init__(message or f'Task queue has a newer compatible build: "{default_build_id}"')
        self.default_build_id = default_build_id

    def detail(self) -> Message | None:
        return details.NewerBuildExistsFailure(default_build_id=self.default_build_id)


class Unavailable(TemporalError):
    status = grpc.StatusCode.UNAVAILABLE


class Internal(TemporalError):
    status = grpc.StatusCode.INTERNAL


class DeadlineExceeded(TemporalError):
    status = grpc.StatusCode.DEADLINE_EXCEEDED


class Canceled(TemporalError):
    status = grpc.StatusCode.CANCELLED


class Aborted(TemporalError):
    status = grpc.StatusCode.ABORTED


class AlreadyExists(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS


class OutOfRange(TemporalError):
    status = grpc.StatusCode.OUT_OF_RANGE


class Unimplemented(TemporalError):
    status = grpc.StatusCode.UNIMPLEMENTED


class PermissionDenied(TemporalError):
    status = grpc.StatusCode.PERMISSION_DENIED

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason

    def detail(self) -> Message | None:
        return details.PermissionDeniedFailure(reason=self.reason)


class ResourceExhausted(TemporalError):
    status = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(
        self,
        message: str,
        *,
        cause: ResourceExhaustedCause.ValueType = ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_UNSPECIFIED,
        scope: ResourceExhaustedScope.ValueType = ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_UNSPECIFIED,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.scope = scope

    def detail(self) -> Message | None:
        return details.ResourceExhaustedFailure(cause=self.cause, scope=self.scope)


class WorkflowExecutionAlreadyStarted(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS

    def __init__(self, message: str, *, start_request_id: str, run_id: str, first_run_id: str = "") -> None:
        super().__init__(message)
        self.start_request_id = start_request_id
        self.run_id = run_id
        self.first_run_id = first_run_id

    def detail(self) -> Message | None:
        return details.WorkflowExecutionAlreadyStartedFailure(
            start_request_id=self.start_request_id, run_id=self.run_id, first_execution_run_id=self.first_run_id
        )


class ActivityExecutionAlreadyStarted(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS

    def __init__(self, *, start_request_id: str, run_id: str) -> None:
        super().__init__("activity execution already started")
        self.start_request_id = start_request_id
        self.run_id = run_id

    def detail(self) -> Message | None:
        return details.ActivityExecutionAlreadyStartedFailure(
            start_request_id=self.start_request_id, run_id=self.run_id
        )


class NexusOperationExecutionAlreadyStarted(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS

    def __init__(self, *, start_request_id: str, run_id: str) -> None:
        super().__init__(f"nexus operation execution already started: request_id={start_request_id}, run_id={run_id}")
        self.start_request_id = start_request_id
        self.run_id = run_id

    def detail(self) -> Message | None:
        return details.NexusOperationExecutionAlreadyStartedFailure(
            start_request_id=self.start_request_id, run_id=self.run_id
        )


class WorkflowNotReady(TemporalError):
    status = grpc.StatusCode.FAILED_PRECONDITION

    def detail(self) -> Message | None:
        return details.WorkflowNotReadyFailure()


class QueryFailed(TemporalError):
    status = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(self, message: str, *, failure: Failure | None = None) -> None:
        super().__init__(message)
        self.failure = failure

    def detail(self) -> Message | None:
        return details.QueryFailedFailure(failure=self.failure)


class CancellationAlreadyRequested(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS

    def detail(self) -> Message | None:
        return details.CancellationAlreadyRequestedFailure()


class NamespaceNotFound(TemporalError):
    status = grpc.StatusCode.NOT_FOUND

    def __init__(self, namespace: str) -> None:
        super().__init__(f"Namespace {namespace} is not found.")
        self.namespace = namespace

    def detail(self) -> Message | None:
        return details.NamespaceNotFoundFailure(namespace=self.namespace)


class NamespaceAlreadyExists(TemporalError):
    status = grpc.StatusCode.ALREADY_EXISTS

    def detail(self) -> Message | None:
        return details.NamespaceAlreadyExistsFailure()


class NamespaceInvalidState(TemporalError):
    status = grpc.StatusCode.FAILED_PRECONDITION

    def __init__(
        self, *, namespace: str, state: NamespaceState.ValueType, allowed: list[NamespaceState.ValueType]
    ) -> None:
        names = ", ".join(NamespaceState.Name(s).removeprefix("NAMESPACE_STATE_").title() for s in allowed)
        current = NamespaceState.Name(state).removeprefix("NAMESPACE_STATE_").title()
        super().__init__(f"Namespace has invalid state: {current}. Must be one of {names}.")
        self.namespace = namespace
        self.state = state
        self.allowed = allowed

    def detail(self) -> Message | None:
        return details.NamespaceInvalidStateFailure(
            namespace=self.namespace, state=self.state, allowed_states=self.allowed
        )


class MultiOperationFailed(TemporalError):
    """ExecuteMultiOperation: one status for each operation; the call's own status is that of the operation at fault."""

    def __init__(self, message: str, *, errors: list[TemporalError | None]) -> None:
        super().__init__(message)
        self.errors = errors


class ShardOwnershipLost(Unavailable):
    """Another host has taken the shard's lease; the loser unloads the shard and the caller tries again."""

    def __init__(self, *, shard_id: int, owner: str = "") -> None:
        super().__init__(f"Shard {shard_id} is not owned here, owner: {owner or 'unknown'}.")
        self.shard_id = shard_id
        self.owner = owner


class QueueOwnershipLost(Unavailable):
    """Another process has taken the physical queue's range; the loser unloads it and the caller tries again."""

    def __init__(self, *, physical_queue: str) -> None:
        super().__init__(f"Task queue {physical_queue} is owned by another process.")
        self.physical_queue = physical_queue


class PersistenceError(Internal):
    """Stored state that can't be read or a snapshot that can't be restored: names table, key and field."""

    def __init__(self, *, table: str, key: object, reason: str) -> None:
        super().__init__(f"{table}[{key}]: {reason}")
        self.table = table
        self.key = key
        self.reason = reason


class ConditionFailed(Internal):
    """A compare-and-set or fence inside a transaction did not hold; the transaction was rolled back."""

    def __init__(self, *, statement: str) -> None:
        super().__init__(f"the condition of statement {statement!r} did not hold")
        self.statement = statement


class OutcomeUnknown(Unavailable):
    """The connection broke during COMMIT: the transaction may or may not have been made durable."""


class TaskAlreadyStarted(TemporalError):
    """Matching's hand-over came second: the task has been started (or finished) before. Acknowledges the delivery."""

    status = grpc.StatusCode.ALREADY_EXISTS


class TaskObsolete(NotFound):
    """The task's run or schedule no longer exists. Acknowledges the delivery."""
