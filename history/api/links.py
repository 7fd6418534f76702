"""Links that answers carry, so that a caller can refer to what its call brought about."""

from __future__ import annotations

from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import EventType


def started_event_link(*, namespace: str, workflow_id: str, run_id: str) -> Link:
    """To the run's started event, which is always its first."""
    return Link(
        workflow_event=Link.WorkflowEvent(
            namespace=namespace,
            workflow_id=workflow_id,
            run_id=run_id,
            event_ref=Link.WorkflowEvent.EventReference(
                event_id=1, event_type=EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED
            ),
        )
    )


def request_id_link(
    *, namespace: str, workflow_id: str, run_id: str, request_id: str, event_type: EventType.ValueType
) -> Link:
    """To the event that a request led to; it may still be buffered, so it has no event id yet."""
    return Link(
        workflow_event=Link.WorkflowEvent(
            namespace=namespace,
            workflow_id=workflow_id,
            run_id=run_id,
            request_id_ref=Link.WorkflowEvent.RequestIdReference(request_id=request_id, event_type=event_type),
        )
    )


def workflow_link(*, namespace: str, workflow_id: str, run_id: str, reason: str) -> Link:
    return Link(workflow=Link.Workflow(namespace=namespace, workflow_id=workflow_id, run_id=run_id, reason=reason))
