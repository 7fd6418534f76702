"""The end of a deleted namespace: its executions go first, then its task queues and batches, then its name is free."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DeleteActivityExecutionRequest, DeleteWorkflowExecutionRequest

from common.archetypes import ACTIVITY, DIVISIONS
from common.errors import NotFound, TemporalError
from frontend.services import Frontend

log = logging.getLogger(__name__)

PAGE = 200
AT_A_TIME = 20
SETTLING = timedelta(milliseconds=100)
"""How long to wait for starts and deletions to show in the list before looking at it again."""
EVERY_RUN = "TemporalNamespaceDivision IS NULL OR TemporalNamespaceDivision IS NOT NULL"
"""A filter that does not speak of divisions leaves out the server's own runs, such as those of schedules."""
EMPTY_LOOKS = 2
"""How often the list must be found empty: a run that was started a moment ago may not be in it yet."""


async def finish_removal(frontend: Frontend, name: str) -> None:
    """Deletes all executions of a namespace that was marked as deleted, then forgets it. Nothing when it was not.

    Can be cancelled and called again at any time.
    """
    if not await frontend.namespaces.pending_removal(name):
        return
    await frontend.schedules.delete_all(namespace=name)  # so that nothing is started any more
    deleted: set[str] = set()
    looks = 0
    while looks < EMPTY_LOOKS:
        page = await frontend.visibility.list_workflow_executions(
            namespace=name, query=EVERY_RUN, page_size=PAGE, next_page_token=b"", custom_attributes={}
        )
        left = [info for info in page.executions if info.execution.run_id not in deleted]
        await _delete(frontend, name, left)
        deleted.update(info.execution.run_id for info in left)
        looks = 0 if page.executions else looks + 1
        if len(left) < PAGE and looks < EMPTY_LOOKS:
            await frontend.clock.sleep(SETTLING)
    await frontend.schedules.delete_all(namespace=name)
    await frontend.matching.forget_namespace(namespace=name)
    await frontend.batches.delete_closed(namespace=name, until=None)
    await frontend.namespaces.remove(name)
    log.info("namespace %s was removed with %s executions", name, len(deleted))


async def finish_all_removals(frontend: Frontend) -> None:
    """Goes on with the deletions that an earlier process began; a failure is logged and left to the next start."""
    for name in await frontend.namespaces.pending_removals():
        try:
            await finish_removal(frontend, name)
        except TemporalError:
            log.exception("namespace %s could not be removed", name)


async def _delete(frontend: Frontend, namespace: str, infos: list[WorkflowExecutionInfo]) -> None:
    gate = asyncio.Semaphore(AT_A_TIME)

    async def delete(info: WorkflowExecutionInfo) -> None:
        async with gate:
            try:
                await _delete_one(frontend, namespace, info)
            except NotFound:
                pass  # gone already, and the list has not heard of it

    for outcome in await asyncio.gather(*map(delete, infos), return_exceptions=True):
        if outcome is not None:
            raise outcome


async def _delete_one(frontend: Frontend, namespace: str, info: WorkflowExecutionInfo) -> None:
    execution = info.execution
    division = info.search_attributes.indexed_fields.get("TemporalNamespaceDivision")
    if division is not None and division.data.strip(b'"').decode() == DIVISIONS[ACTIVITY]:
        await frontend.history.delete_activity_execution(
            DeleteActivityExecutionRequest(
                namespace=namespace, activity_id=execution.workflow_id, run_id=execution.run_id
            )
        )
        return
    await frontend.history.delete_workflow_execution(
        DeleteWorkflowExecutionRequest(namespace=namespace, workflow_execution=execution)
    )
