"""What History and the frontend ask of Matching: the typed client contract, the same in process and over RPC.

Every request is a `Struct` or an API message; every error is one of `common.errors`. A cancelled await cancels the call.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, Protocol

from msgspec import Struct
from temporalio.api.common.v1 import Priority
from temporalio.api.failure.v1 import Failure
from temporalio.api.nexus.v1 import HandlerError, Request, Response
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice import v1 as ws

from common.contracts.build_ids import BuildIds
from common.errors import Unavailable

QueueType = Literal["workflow", "activity"]
AnyQueueType = Literal["workflow", "activity", "nexus"]
"""Queues of Nexus tasks store nothing: their tasks are calls that wait for a poller and for its answer."""


class AddTask(Struct, kw_only=True):
    """Hand a workflow or activity task over. Matching never sees names or inputs: History returns them at the start."""

    kind: QueueType
    namespace: str
    task_queue: str
    """The family's name; for a sticky queue the worker's own queue name."""
    normal_name: str = ""
    """For a sticky queue: the queue to fall back to. Empty: a normal queue."""
    workflow_id: str
    run_id: str
    scheduled_event_id: int
    attempt: int = 1
    stamp: int = 0
    expires_at: datetime | None = None
    """From then on the delivery is dropped: History's own timeout has taken over."""
    scheduled_at: datetime
    priority: Priority | None = None
    version_directive: str = "auto"
    """"auto", "auto:<deployment>:<build id>" or "pinned:<deployment>:<build id>"; see `matching.routes`."""
    revision: int = 0
    """Of the routing that the workflow last went by."""
    use_ramping: bool = False
    """Whether the run is to begin on the version that is being ramped up."""


class PlannedVersion(Struct, frozen=True):
    version: str
    """ "<deployment>:<build id>", "" for workers without one."""
    revision: int
    """Of the routing that says so."""


class StickyWorkerUnavailable(Unavailable):
    """Nobody polls the sticky queue (or its worker is gone): History clears stickiness and uses the normal queue."""


class QueryWorkflow(Struct, kw_only=True):
    """A query that bypasses history: matched with a waiting poller, never stored."""

    namespace: str
    workflow_id: str
    run_id: str
    task_queue: str
    normal_name: str = ""
    query: WorkflowQuery
    timeout: timedelta
    """How long to wait for a poller and its answer."""
    priority: Priority | None = None
    version_directive: str = "auto"
    revision: int = 0
    use_ramping: bool = False


class DispatchNexusTask(Struct, kw_only=True):
    """A Nexus call (start or cancel) for whoever polls the queue, never stored."""

    namespace: str
    task_queue: str
    request: Request
    """Its headers as the handler gets them, but for `request-timeout`, which is what is left of `timeout` then."""
    timeout: timedelta
    """How long to wait for a poller and its answer."""


class NexusOutcome(Struct, kw_only=True):
    """What came of a Nexus call: the handler's answer, or its refusal in the newer or the older form. None of them: nobody
    answered in time."""

    response: Response | None = None
    failure: Failure | None = None
    """A handler error (`nexus_handler_failure_info`)."""
    error: HandlerError | None = None


class MatchingClient(Protocol):
    async def add_task(self, request: AddTask) -> str:
        """Returns once the task was matched with a poller (its start recorded) or stored: then the build that an assignment
        rule of the older versioning gave it, if any. A sticky queue without a
        live worker raises StickyWorkerUnavailable."""
        ...

    async def poll_workflow_task_queue(
        self, request: ws.PollWorkflowTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollWorkflowTaskQueueResponse:
        """Waits up to the long-poll interval; an empty response (no task token) when nothing came. `forwarded`: by a host
        that has nothing for the poller, to the one with the queue's root."""
        ...

    async def poll_activity_task_queue(
        self, request: ws.PollActivityTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollActivityTaskQueueResponse: ...

    async def poll_nexus_task_queue(
        self, request: ws.PollNexusTaskQueueRequest, *, forwarded: bool = False
    ) -> ws.PollNexusTaskQueueResponse: ...

    async def offer_task(self, request: AddTask, *, patience: timedelta) -> bool:
        """A task that a host without pollers has stored, offered to those at the queue's root for as long as `patience`.
        True when it was started or is obsolete; else it is still the caller's."""
        ...

    async def query_workflow(self, request: QueryWorkflow) -> ws.QueryWorkflowResponse:
        """DeadlineExceeded-like FAILED_PRECONDITION naming the missing poller when none came in time; on a sticky queue
        without a live worker StickyWorkerUnavailable."""
        ...

    async def respond_query_task_completed(self, request: ws.RespondQueryTaskCompletedRequest) -> None: ...

    async def dispatch_nexus_task(self, request: DispatchNexusTask) -> NexusOutcome:
        """Returns with the answer, at the latest when `timeout` is over."""
        ...

    async def respond_nexus_task_completed(self, request: ws.RespondNexusTaskCompletedRequest) -> None:
        """Raises NOT_FOUND when nobody waits for the answer any more."""
        ...

    async def respond_nexus_task_failed(self, request: ws.RespondNexusTaskFailedRequest) -> None: ...

    async def describe_task_queue(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse:
        """`version`: only what is for workers of "<deployment>:<build id>"."""
        ...

    async def describe_partitions(
        self, request: ws.DescribeTaskQueueRequest, *, version: str = ""
    ) -> ws.DescribeTaskQueueResponse:
        """What the host of the named partition contributes to DescribeTaskQueue: all that it holds of the queue."""
        ...

    async def list_task_queue_partitions(
        self, request: ws.ListTaskQueuePartitionsRequest
    ) -> ws.ListTaskQueuePartitionsResponse: ...

    async def shutdown_worker(self, request: ws.ShutdownWorkerRequest) -> ws.ShutdownWorkerResponse:
        """Ends the worker's outstanding polls with empty answers and closes its sticky queue to new tasks."""
        ...

    async def has_recent_poller(self, *, namespace: str, task_queue: str, kind: QueueType, version: str = "") -> bool:
        """Whether a poller waits on the queue or polled in the last minute."""
        ...

    async def build_ids(self, *, namespace: str, task_queue: str) -> BuildIds:
        """The older versioning of a queue family, deleted rules included."""
        ...

    async def queues_of_build(self, *, namespace: str, build_id: str) -> list[str]:
        """The queue families that have the build in a version set."""
        ...

    async def update_worker_build_id_compatibility(
        self, request: ws.UpdateWorkerBuildIdCompatibilityRequest
    ) -> ws.UpdateWorkerBuildIdCompatibilityResponse: ...

    async def get_worker_build_id_compatibility(
        self, request: ws.GetWorkerBuildIdCompatibilityRequest
    ) -> ws.GetWorkerBuildIdCompatibilityResponse: ...

    async def update_worker_versioning_rules(
        self, request: ws.UpdateWorkerVersioningRulesRequest
    ) -> ws.UpdateWorkerVersioningRulesResponse: ...

    async def get_worker_versioning_rules(
        self, request: ws.GetWorkerVersioningRulesRequest
    ) -> ws.GetWorkerVersioningRulesResponse: ...

    # worker deployments

    async def has_version(self, *, namespace: str, task_queue: str, version: str, reactivate: bool = False) -> bool:
        """Whether workers of "<deployment>:<build id>" have polled the queue for workflow tasks. `reactivate`: a run is to be
        pinned there, so a version that nothing goes to begins to drain anew."""
        ...

    async def note_drainage(self, *, namespace: str, deployment: str, has_open: dict[str, bool]) -> None:
        """Of draining versions by build id, whether runs that are pinned to them are open. The queues follow the deployment
        then, if they did not."""
        ...

    async def planned_version(self, *, namespace: str, task_queue: str, workflow_id: str) -> PlannedVersion:
        """Where the queue's routing sends the tasks of a workflow that may be upgraded."""
        ...

    async def create_worker_deployment(
        self, request: ws.CreateWorkerDeploymentRequest
    ) -> ws.CreateWorkerDeploymentResponse: ...
    async def create_worker_deployment_version(
        self, request: ws.CreateWorkerDeploymentVersionRequest
    ) -> ws.CreateWorkerDeploymentVersionResponse: ...
    async def describe_worker_deployment(
        self, request: ws.DescribeWorkerDeploymentRequest
    ) -> ws.DescribeWorkerDeploymentResponse: ...
    async def describe_worker_deployment_version(
        self, request: ws.DescribeWorkerDeploymentVersionRequest
    ) -> ws.DescribeWorkerDeploymentVersionResponse: ...
    async def list_worker_deployments(
        self, request: ws.ListWorkerDeploymentsRequest
    ) -> ws.ListWorkerDeploymentsResponse: ...
    async def set_worker_deployment_current_version(
        self, request: ws.SetWorkerDeploymentCurrentVersionRequest
    ) -> ws.SetWorkerDeploymentCurrentVersionResponse: ...
    async def set_worker_deployment_ramping_version(
        self, request: ws.SetWorkerDeploymentRampingVersionRequest
    ) -> ws.SetWorkerDeploymentRampingVersionResponse: ...
    async def set_worker_deployment_manager(
        self, request: ws.SetWorkerDeploymentManagerRequest
    ) -> ws.SetWorkerDeploymentManagerResponse: ...
    async def update_worker_deployment_version_metadata(
        self, request: ws.UpdateWorkerDeploymentVersionMetadataRequest
    ) -> ws.UpdateWorkerDeploymentVersionMetadataResponse: ...
    async def update_worker_deployment_version_compute_config(
        self, request: ws.UpdateWorkerDeploymentVersionComputeConfigRequest
    ) -> ws.UpdateWorkerDeploymentVersionComputeConfigResponse: ...
    async def delete_worker_deployment(
        self, request: ws.DeleteWorkerDeploymentRequest
    ) -> ws.DeleteWorkerDeploymentResponse: ...
    async def delete_worker_deployment_version(
        self, request: ws.DeleteWorkerDeploymentVersionRequest
    ) -> ws.DeleteWorkerDeploymentVersionResponse: ...

    async def update_task_queue_config(
        self, request: ws.UpdateTaskQueueConfigRequest
    ) -> ws.UpdateTaskQueueConfigResponse:
        """Rate limits and fairness weights of one kind of a queue; UserDataConflict (ABORTED) when others always win."""
        ...

    async def load_task_queue(self, *, namespace: str, task_queue: str, kind: AnyQueueType, version: str = "") -> None:
        """Have the host of a partition, named by `task_queue`, load what it holds of the queue: tasks may be stored there
        that nobody else knows of."""
        ...

    async def refresh_user_data(self, *, namespace: str, task_queue: str) -> None:
        """Have the host of a partition, named by `task_queue`, look at the family's user data again."""
        ...

    async def unload_task_queue(self, *, physical_queue: str, normal_name: str = "") -> bool:
        """Save a queue's progress and unload it, with all that its host holds of it; whoever polls or adds to it next
        loads it again. `physical_queue` and, for a sticky queue, `normal_name` are as its row in `task_queues` has them.
        False when it was not loaded. Raises InvalidArgument for what names no physical queue."""
        ...

    async def forget_namespace(self, *, namespace: str) -> None:
        """Every host unloads the queues of a namespace that was deleted; their rows go, tasks and settings included. Can be
        called again at any time."""
        ...

    async def record_worker_heartbeat(
        self, request: ws.RecordWorkerHeartbeatRequest
    ) -> ws.RecordWorkerHeartbeatResponse: ...

    async def list_workers(self, request: ws.ListWorkersRequest) -> ws.ListWorkersResponse: ...

    async def count_workers(self, request: ws.CountWorkersRequest) -> ws.CountWorkersResponse: ...

    async def describe_worker(self, request: ws.DescribeWorkerRequest) -> ws.DescribeWorkerResponse: ...
