"""What the frontend and Matching ask of History: the typed client contract, the same in process and over RPC.

API calls take and return the API's own messages, validated by the frontend. The rest are the internal calls between
services. Every error is one of `common.errors`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field
from temporalio.api.common.v1 import Link, Payload, WorkerVersionStamp, WorkflowExecution
from temporalio.api.enums.v1 import ParentClosePolicy
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice import v1 as ws


class RecordWorkflowTaskStarted(Struct, kw_only=True):
    """Matching found a poller for a workflow task. Repeating it with the same request id gives the same answer."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int = 1
    stamp: int = 0
    request_id: str
    """Drawn by Matching for the poll."""
    poll: ws.PollWorkflowTaskQueueRequest
    version_directive: str = "auto"
    """As it was when the task was handed over."""
    revision: int = 0
    """Of the routing by which Matching chose the poller."""
    target_version: str = ""
    """Where the queue's routing would send the workflow."""


class RecordActivityTaskStarted(Struct, kw_only=True):
    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int = 1
    stamp: int = 0
    request_id: str
    poll: ws.PollActivityTaskQueueRequest
    version_directive: str = "auto"
    revision: int = 0
    target_version: str = ""


class StartChild(Struct, kw_only=True):
    """A run starts its child. Repeating it with the same request id gives the same run. The child's first workflow task waits
    for `schedule_first_workflow_task`, so that no child acts before its parent has recorded the start."""

    request: ws.StartWorkflowExecutionRequest
    parent_namespace: str
    parent_namespace_id: str
    parent: WorkflowExecution
    initiated_event_id: int
    root: WorkflowExecution
    inherited_pin: str = ""
    """The parent's worker deployment version, "<deployment>:<build id>", when the child is to stay there too."""
    inherited_upgrade: str = ""
    """The same of a parent that may upgrade, and the revision of the routing that it went by."""
    inherited_revision: int = 0
    inherited_build_id: str = ""
    """The build that rules assigned to the parent, when the child is to go to the same."""
    source_version_stamp: WorkerVersionStamp | None = None
    """The stamp of the parent's last worker, when the child is to go to the same version set."""


class ChildClosed(Struct, kw_only=True):
    """A child tells its parent's run how it ended."""

    namespace: str
    """The parent's."""
    workflow_id: str
    run_id: str
    initiated_event_id: int
    child: WorkflowExecution
    """The last run of the child's chain."""
    child_first_run_id: str
    close_event: HistoryEvent


class OrphanedChild(Struct, kw_only=True):
    """A parent closed after it had its child created and before it recorded that: what becomes of that child."""

    namespace: str
    """The child's."""
    workflow_id: str
    start_request_id: str
    parent: WorkflowExecution
    policy: ParentClosePolicy.ValueType


class ClosedPlace(Struct, kw_only=True):
    """A place in the order in which runs closed."""

    closed_at: datetime
    run_id: str


class DeleteExpired(Struct, kw_only=True):
    """The next few of a shard's runs that closed so long ago that their namespace need not keep them."""

    shard_id: int
    namespace: str
    closed_until: datetime
    after: ClosedPlace | None = None
    """Up to which they were looked at before."""
    limit: int


class Expired(Struct, kw_only=True):
    deleted: int
    next: ClosedPlace | None
    """Where to go on; None at the end."""


class NexusCompletion(Struct, kw_only=True):
    """How an asynchronous Nexus operation ended. Its caller's run, and which of its operations, is in the token that came
    with the call (`common.contracts.tokens.NexusCompletionToken`)."""

    namespace: str
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    request_id: str
    state: Literal["completed", "failed", "canceled"]
    payload: Payload | None = None
    failure: Failure | None = None
    """Why it failed, or was canceled."""
    operation_token: str = ""
    started_at: datetime | None = None
    """When its handler began; used, like the links, when the caller's run has not heard of the start yet."""
    links: list[Link] = field(default_factory=list)


class HistoryClient(Protocol):
    # from Matching
    async def record_workflow_task_started(
        self, request: RecordWorkflowTaskStarted
    ) -> ws.PollWorkflowTaskQueueResponse:
        """The whole poll answer but Matching's own fields (backlog hint, poller advice). Raises TaskAlreadyStarted or
        TaskObsolete (NotFound): the delivery is acknowledged; any other error leaves it pending."""
        ...

    async def record_activity_task_started(
        self, request: RecordActivityTaskStarted
    ) -> ws.PollActivityTaskQueueResponse: ...

    async def query_task(
        self, *, namespace: str, execution: WorkflowExecution, sticky: bool
    ) -> ws.PollWorkflowTaskQueueResponse:
        """A poll answer for a direct query: execution, type and history (none when sticky), without token and query."""
        ...

    # from other executions' processors
    async def start_child_workflow_execution(self, request: StartChild) -> ws.StartWorkflowExecutionResponse:
        """Raises WorkflowExecutionAlreadyStarted, NamespaceNotFound."""
        ...

    async def schedule_first_workflow_task(self, *, namespace: str, execution: WorkflowExecution) -> None:
        """Let a child begin; nothing for one that has begun or closed. Raises NotFound."""
        ...

    async def child_closed(self, request: ChildClosed) -> None:
        """Follows resets of the parent. Raises NotFound when the parent is gone, closed, or does not wait for this child."""
        ...

    async def settle_orphaned_child(self, request: OrphanedChild) -> None:
        """Apply the parent close policy to a child whose start its parent never recorded; nothing when there is none."""
        ...

    async def complete_nexus_operation(self, request: NexusCompletion) -> None:
        """Follows a reset of the caller. Raises NOT_FOUND when nobody waits for the operation any more."""
        ...

    # from the worker role
    async def delete_expired_runs(self, request: DeleteExpired) -> Expired:
        """Delete them with all their rows, those of the read model included."""
        ...

    # from the frontend, each as the API method of its name
    async def start_workflow_execution(
        self, request: ws.StartWorkflowExecutionRequest
    ) -> ws.StartWorkflowExecutionResponse: ...
    async def execute_multi_operation(
        self, request: ws.ExecuteMultiOperationRequest
    ) -> ws.ExecuteMultiOperationResponse: ...
    async def get_workflow_execution_history(
        self, request: ws.GetWorkflowExecutionHistoryRequest
    ) -> ws.GetWorkflowExecutionHistoryResponse: ...
    async def get_workflow_execution_history_reverse(
        self, request: ws.GetWorkflowExecutionHistoryReverseRequest
    ) -> ws.GetWorkflowExecutionHistoryReverseResponse: ...
    async def respond_workflow_task_completed(
        self, request: ws.RespondWorkflowTaskCompletedRequest
    ) -> ws.RespondWorkflowTaskCompletedResponse: ...
    async def respond_workflow_task_failed(
        self, request: ws.RespondWorkflowTaskFailedRequest
    ) -> ws.RespondWorkflowTaskFailedResponse: ...
    async def respond_activity_task_completed(
        self, request: ws.RespondActivityTaskCompletedRequest
    ) -> ws.RespondActivityTaskCompletedResponse: ...
    async def respond_activity_task_completed_by_id(
        self, request: ws.RespondActivityTaskCompletedByIdRequest
    ) -> ws.RespondActivityTaskCompletedByIdResponse: ...
    async def respond_activity_task_failed(
        self, request: ws.RespondActivityTaskFailedRequest
    ) -> ws.RespondActivityTaskFailedResponse: ...
    async def respond_activity_task_failed_by_id(
        self, request: ws.RespondActivityTaskFailedByIdRequest
    ) -> ws.RespondActivityTaskFailedByIdResponse: ...
    async def respond_activity_task_canceled(
        self, request: ws.RespondActivityTaskCanceledRequest
    ) -> ws.RespondActivityTaskCanceledResponse: ...
    async def respond_activity_task_canceled_by_id(
        self, request: ws.RespondActivityTaskCanceledByIdRequest
    ) -> ws.RespondActivityTaskCanceledByIdResponse: ...
    async def record_activity_task_heartbeat(
        self, request: ws.RecordActivityTaskHeartbeatRequest
    ) -> ws.RecordActivityTaskHeartbeatResponse: ...
    async def record_activity_task_heartbeat_by_id(
        self, request: ws.RecordActivityTaskHeartbeatByIdRequest
    ) -> ws.RecordActivityTaskHeartbeatByIdResponse: ...
    async def request_cancel_workflow_execution(
        self,
        request: ws.RequestCancelWorkflowExecutionRequest,
        *,
        child_only: bool = False,
        external_initiated_event_id: int = 0,
        external_execution: WorkflowExecution | None = None,
    ) -> ws.RequestCancelWorkflowExecutionResponse: ...
    async def signal_workflow_execution(
        self,
        request: ws.SignalWorkflowExecutionRequest,
        *,
        child_only: bool = False,
        external_execution: WorkflowExecution | None = None,
    ) -> ws.SignalWorkflowExecutionResponse: ...
    async def signal_with_start_workflow_execution(
        self, request: ws.SignalWithStartWorkflowExecutionRequest
    ) -> ws.SignalWithStartWorkflowExecutionResponse: ...
    async def terminate_workflow_execution(
        self,
        request: ws.TerminateWorkflowExecutionRequest,
        *,
        child_only: bool = False,
        external_execution: WorkflowExecution | None = None,
    ) -> ws.TerminateWorkflowExecutionResponse: ...
    async def delete_workflow_execution(
        self, request: ws.DeleteWorkflowExecutionRequest
    ) -> ws.DeleteWorkflowExecutionResponse: ...
    async def reset_workflow_execution(
        self, request: ws.ResetWorkflowExecutionRequest
    ) -> ws.ResetWorkflowExecutionResponse: ...
    async def describe_workflow_execution(
        self, request: ws.DescribeWorkflowExecutionRequest
    ) -> ws.DescribeWorkflowExecutionResponse: ...
    async def query_workflow(self, request: ws.QueryWorkflowRequest) -> ws.QueryWorkflowResponse: ...
    async def update_workflow_execution(
        self, request: ws.UpdateWorkflowExecutionRequest
    ) -> ws.UpdateWorkflowExecutionResponse: ...
    async def poll_workflow_execution_update(
        self, request: ws.PollWorkflowExecutionUpdateRequest
    ) -> ws.PollWorkflowExecutionUpdateResponse: ...
    async def reset_sticky_task_queue(
        self, request: ws.ResetStickyTaskQueueRequest
    ) -> ws.ResetStickyTaskQueueResponse: ...
    async def update_workflow_execution_options(
        self, request: ws.UpdateWorkflowExecutionOptionsRequest
    ) -> ws.UpdateWorkflowExecutionOptionsResponse: ...
    async def pause_workflow_execution(
        self, request: ws.PauseWorkflowExecutionRequest
    ) -> ws.PauseWorkflowExecutionResponse: ...
    async def unpause_workflow_execution(
        self, request: ws.UnpauseWorkflowExecutionRequest
    ) -> ws.UnpauseWorkflowExecutionResponse: ...
    async def start_activity_execution(
        self, request: ws.StartActivityExecutionRequest
    ) -> ws.StartActivityExecutionResponse: ...
    async def describe_activity_execution(
        self, request: ws.DescribeActivityExecutionRequest
    ) -> ws.DescribeActivityExecutionResponse: ...
    async def poll_activity_execution(
        self, request: ws.PollActivityExecutionRequest
    ) -> ws.PollActivityExecutionResponse: ...
    async def request_cancel_activity_execution(
        self, request: ws.RequestCancelActivityExecutionRequest
    ) -> ws.RequestCancelActivityExecutionResponse: ...
    async def terminate_activity_execution(
        self, request: ws.TerminateActivityExecutionRequest
    ) -> ws.TerminateActivityExecutionResponse: ...
    async def delete_activity_execution(
        self, request: ws.DeleteActivityExecutionRequest
    ) -> ws.DeleteActivityExecutionResponse: ...
    async def pause_activity_execution(
        self, request: ws.PauseActivityExecutionRequest
    ) -> ws.PauseActivityExecutionResponse:
        """Of an activity without a workflow, as are the three that follow."""
        ...

    async def unpause_activity_execution(
        self, request: ws.UnpauseActivityExecutionRequest
    ) -> ws.UnpauseActivityExecutionResponse: ...
    async def reset_activity_execution(
        self, request: ws.ResetActivityExecutionRequest
    ) -> ws.ResetActivityExecutionResponse: ...
    async def update_activity_execution_options(
        self, request: ws.UpdateActivityExecutionOptionsRequest
    ) -> ws.UpdateActivityExecutionOptionsResponse: ...
    async def start_nexus_operation_execution(
        self, request: ws.StartNexusOperationExecutionRequest
    ) -> ws.StartNexusOperationExecutionResponse: ...
    async def describe_nexus_operation_execution(
        self, request: ws.DescribeNexusOperationExecutionRequest
    ) -> ws.DescribeNexusOperationExecutionResponse: ...
    async def poll_nexus_operation_execution(
        self, request: ws.PollNexusOperationExecutionRequest
    ) -> ws.PollNexusOperationExecutionResponse: ...
    async def request_cancel_nexus_operation_execution(
        self, request: ws.RequestCancelNexusOperationExecutionRequest
    ) -> ws.RequestCancelNexusOperationExecutionResponse: ...
    async def terminate_nexus_operation_execution(
        self, request: ws.TerminateNexusOperationExecutionRequest
    ) -> ws.TerminateNexusOperationExecutionResponse: ...
    async def delete_nexus_operation_execution(
        self, request: ws.DeleteNexusOperationExecutionRequest
    ) -> ws.DeleteNexusOperationExecutionResponse: ...
    async def pause_activity(self, request: ws.PauseActivityRequest) -> ws.PauseActivityResponse: ...
    async def unpause_activity(self, request: ws.UnpauseActivityRequest) -> ws.UnpauseActivityResponse: ...
    async def reset_activity(self, request: ws.ResetActivityRequest) -> ws.ResetActivityResponse: ...
    async def update_activity_options(
        self, request: ws.UpdateActivityOptionsRequest
    ) -> ws.UpdateActivityOptionsResponse: ...
