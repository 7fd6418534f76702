"""Methods that upstream, as it is configured by default, refuses whatever the request says, with the same words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Never

from common.errors import NotFound, TemporalError, Unimplemented
from frontend.services import Frontend

_DEPLOYMENTS = Unimplemented("Deployments are deprecated and no longer supported, use Worker Deployments instead")
_STANDALONE_NEXUS = Unimplemented("Standalone Nexus operation is disabled")

REFUSALS: dict[str, TemporalError] = {
    "DescribeDeployment": _DEPLOYMENTS,
    "ListDeployments": _DEPLOYMENTS,
    "GetDeploymentReachability": _DEPLOYMENTS,
    "GetCurrentDeployment": _DEPLOYMENTS,
    "SetCurrentDeployment": _DEPLOYMENTS,
    "TriggerWorkflowRule": Unimplemented("method TriggerWorkflowRule not supported"),
    "FetchWorkerConfig": Unimplemented("FetchWorkerConfig command is not enabled."),
    "UpdateWorkerConfig": Unimplemented("UpdateWorkerConfig command is not enabled."),
    "StartNexusOperationExecution": _STANDALONE_NEXUS,
    "DescribeNexusOperationExecution": _STANDALONE_NEXUS,
    "PollNexusOperationExecution": _STANDALONE_NEXUS,
    "ListNexusOperationExecutions": _STANDALONE_NEXUS,
    "CountNexusOperationExecutions": _STANDALONE_NEXUS,
    "RequestCancelNexusOperationExecution": _STANDALONE_NEXUS,
    "TerminateNexusOperationExecution": _STANDALONE_NEXUS,
    "DeleteNexusOperationExecution": _STANDALONE_NEXUS,
    "PollWorkflowExecutionTimeSkipping": Unimplemented("The Time-Skipping feature is not enabled for namespace."),
    "RemoveRemoteCluster": NotFound("The cluster to be deleted cannot be found in clusters cache."),
}


def refuse(error: TemporalError) -> Callable[[Frontend, Any], Awaitable[Never]]:
    """An entry function that raises it."""

    async def refused(frontend: Frontend, request: Any) -> Never:  # noqa: ARG001  the signature of entry functions
        raise type(error)(error.message)

    return refused
