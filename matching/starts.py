"""Recording a task's start with History on behalf of a poller, and what Matching adds to the answer."""

from __future__ import annotations

import uuid
from typing import Any

from temporalio.api.workflowservice import v1 as ws

from common.contracts.history import HistoryClient, RecordActivityTaskStarted, RecordWorkflowTaskStarted
from matching.delivery import StartedTask
from matching.records import Family
from matching.routes import UNVERSIONED, Target


class Starter:
    """Draws a request id for each start, a UUID as upstream's: the history shows it."""

    def __init__(self, *, history: HistoryClient) -> None:
        self._history = history

    async def start(
        self, *, kind: Family, namespace: str, task: StartedTask, poll: Any, target: Target = UNVERSIONED
    ) -> ws.PollWorkflowTaskQueueResponse | ws.PollActivityTaskQueueResponse:
        """`target`: where the queue's routing sends the workflow. Raises what History raises: see
        `HistoryClient.record_workflow_task_started`."""
        request_id = str(uuid.uuid4())
        if kind == "workflow":
            return await self._history.record_workflow_task_started(
                RecordWorkflowTaskStarted(
                    namespace=namespace,
                    workflow_id=task.workflow_id,
                    run_id=task.run_id,
                    scheduled_event_id=task.scheduled_event_id,
                    attempt=task.attempt,
                    stamp=task.stamp,
                    request_id=request_id,
                    poll=poll,
                    version_directive=task.version_directive,
                    revision=target.revision,
                    target_version=target.version,
                )
            )
        return await self._history.record_activity_task_started(
            RecordActivityTaskStarted(
                namespace=namespace,
                workflow_id=task.workflow_id,
                run_id=task.run_id,
                scheduled_event_id=task.scheduled_event_id,
                attempt=task.attempt,
                stamp=task.stamp,
                request_id=request_id,
                poll=poll,
                version_directive=task.version_directive,
                revision=target.revision,
                target_version=target.version,
            )
        )
