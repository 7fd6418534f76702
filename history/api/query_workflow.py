"""QueryWorkflow: ask a worker about a run, without touching its history.

When no workflow task is pending, the worker's state is the run's state and Matching hands the query to it at once. Otherwise
events came before the query that the worker has not handled: the query waits in the run's registry and goes out with the next
workflow task, or directly as soon as none is pending any more.
Source: upstream's service/history/api/queryworkflow.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from temporalio.api.enums.v1 import (
    QueryRejectCondition,
    QueryResultType,
    ResourceExhaustedCause,
    ResourceExhaustedScope,
)
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status
from temporalio.api.query.v1 import QueryRejected, WorkflowQueryResult
from temporalio.api.workflowservice.v1 import (
    QueryWorkflowRequest,
    QueryWorkflowResponse,
    ResetStickyTaskQueueRequest,
)

from common import deadline
from common.contracts.matching import QueryWorkflow, StickyWorkerUnavailable
from common.errors import (
    DeadlineExceeded,
    FailedPrecondition,
    NotFound,
    QueryFailed,
    ResourceExhausted,
    Unavailable,
    WorkflowNotReady,
)
from common.protos import ZERO
from history.api.reset_sticky_task_queue import reset_sticky_task_queue
from history.engine.cache import CachedRun
from history.engine.engine import Engine
from history.engine.registry import Unblocked
from history.records import ExecutionInfo
from history.state import ExecutionState
from history.transitions.close import is_open
from history.version_directives import of_workflow_task
from history.versioning import revision_of, uses_ramping

FAILING_ATTEMPT = 3
"""From this attempt of a workflow task on its worker is taken to be unable to answer a query either."""
WITHOUT_DEADLINE = timedelta(seconds=30)
"""How long a query waits whose caller does not say."""
MARGIN = timedelta(milliseconds=500)
"""How long before the caller's deadline Matching answers at the latest."""


async def query_workflow(engine: Engine, request: QueryWorkflowRequest) -> QueryWorkflowResponse:
    """Raises NOT_FOUND; QueryFailed with what the worker said; FAILED_PRECONDITION when no worker polls, and (with the
    not-ready detail) when none has begun with the run or its workflow task keeps failing."""
    run = await engine.run(
        namespace=request.namespace, workflow_id=request.execution.workflow_id, run_id=request.execution.run_id
    )
    info = run.state.info
    rejected = rejection(info.status, request.query_reject_condition)
    if rejected is not None:
        return QueryWorkflowResponse(query_rejected=rejected)
    check_ready(run.state)
    return await _answer(engine, run, request, latest=engine.clock.now() + WITHOUT_DEADLINE)


def rejection(status: Status.ValueType, condition: QueryRejectCondition.ValueType) -> QueryRejected | None:
    """Whether the caller does not want a run in this state asked. A paused run is never asked."""
    if status == Status.WORKFLOW_EXECUTION_STATUS_RUNNING:
        return None
    not_open = condition == QueryRejectCondition.QUERY_REJECT_CONDITION_NOT_OPEN
    not_clean = (
        condition == QueryRejectCondition.QUERY_REJECT_CONDITION_NOT_COMPLETED_CLEANLY
        and status != Status.WORKFLOW_EXECUTION_STATUS_COMPLETED
    )
    if not_open or not_clean or status == Status.WORKFLOW_EXECUTION_STATUS_PAUSED:
        return QueryRejected(status=status)
    return None


def check_ready(state: ExecutionState) -> None:
    """Raises WorkflowNotReady when no worker can answer for the run."""
    info = state.info
    task = state.speculative_task or info.workflow_task
    begun = info.previous_started_event_id != 0
    if not is_open(info.status) and not begun:
        raise WorkflowNotReady("Workflow execution closed before WorkflowTaskStarted event")
    if not begun and task is None and info.task_failures == 0:
        until = deadline.current()
        if until is None or info.execution_time > until:
            raise WorkflowNotReady("Workflow task is not scheduled yet.")
    attempt = task.attempt if task is not None else info.task_failures + 1
    if attempt >= FAILING_ATTEMPT:
        raise WorkflowNotReady("Unable to query workflow due to Workflow Task in failed state.")


def may_ask_directly(state: ExecutionState) -> bool:
    """Whether the worker has handled all that came before now."""
    info = state.info
    if not info.previous_started_event_id:
        return False
    return not is_open(info.status) or (info.workflow_task is None and state.speculative_task is None)


async def _answer(
    engine: Engine, run: CachedRun, request: QueryWorkflowRequest, *, latest: datetime
) -> QueryWorkflowResponse:
    """Only Matching has something to say about a query that nobody answers, so only it answers before the caller gives up."""
    if not may_ask_directly(run.state):
        result = await _with_next_task(engine, run, request, until=deadline.earlier(latest, margin=ZERO))
        if result is not None:
            return _response(result)
        check_closed_after_start(run.state)
    return await _ask_directly(engine, run.state.info, request, until=deadline.earlier(latest, margin=MARGIN))


def check_closed_after_start(state: ExecutionState) -> None:
    """The run may have been closed while the query waited, before any worker began with it."""
    if not state.info.previous_started_event_id:
        raise WorkflowNotReady("Workflow execution closed before WorkflowTaskStarted event")


async def _with_next_task(
    engine: Engine, run: CachedRun, request: QueryWorkflowRequest, *, until: datetime
) -> WorkflowQueryResult | None:
    """The result that came with a workflow task; None when the query may be asked directly instead."""
    info = run.state.info
    queries = engine.registry(info.run_id).queries
    if len(queries) >= engine.config.query_buffer_limit:
        raise ResourceExhausted(
            "consistent query buffer is full, this may be caused by too many queries and workflow not able to process "
            "query fast enough",
            cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW,
            scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
        )
    query_id, answer = queries.buffer(request.query)
    try:
        while not answer.done():
            if not is_open(run.state.info.status) or may_ask_directly(run.state):
                return None
            await _wait(engine, run, answer, until=until)
        return answer.result()
    except Unblocked:
        return None
    finally:
        queries.remove(query_id)


async def _wait(
    engine: Engine, run: CachedRun, answer: asyncio.Future[WorkflowQueryResult], *, until: datetime
) -> None:
    """Until the answer is there or something of the run was committed. Raises DeadlineExceeded, or Unavailable when the run
    was unloaded and with it the query."""
    if engine.clock.now() >= until:
        raise DeadlineExceeded("context deadline exceeded")
    changed = asyncio.ensure_future(engine.wait_for_wake(run, until=until))
    try:
        await asyncio.wait((answer, changed), return_when=asyncio.FIRST_COMPLETED)
    finally:
        changed.cancel()
    if engine.cache.get(run.state.info.run_id) is not run and not answer.done():
        raise Unavailable("buffered query cleared, please retry")


async def _ask_directly(
    engine: Engine, info: ExecutionInfo, request: QueryWorkflowRequest, *, until: datetime
) -> QueryWorkflowResponse:
    """Through Matching: the worker that has the run cached, else any of its queue."""
    if info.sticky_queue:
        try:
            return await _ask(engine, info, request, until=until, sticky=True)
        except (StickyWorkerUnavailable, DeadlineExceeded, FailedPrecondition):
            await _leave_sticky_queue(engine, info)
    return await _ask(engine, info, request, until=until, sticky=False)


async def _ask(
    engine: Engine, info: ExecutionInfo, request: QueryWorkflowRequest, *, until: datetime, sticky: bool
) -> QueryWorkflowResponse:
    timeout = until - engine.clock.now()
    if sticky and info.sticky_schedule_to_start:
        timeout = min(timeout, info.sticky_schedule_to_start)
    return await engine.matching.query_workflow(
        QueryWorkflow(
            namespace=info.namespace,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            task_queue=info.sticky_queue if sticky else info.task_queue,
            normal_name=info.task_queue if sticky else "",
            query=request.query,
            timeout=timeout,
            priority=info.priority,
            version_directive=of_workflow_task(info),
            revision=revision_of(info),
            use_ramping=uses_ramping(info),
        )
    )


async def _leave_sticky_queue(engine: Engine, info: ExecutionInfo) -> None:
    """The worker is gone: later workflow tasks need not find that out again."""
    if not is_open(info.status):
        return
    reset = ResetStickyTaskQueueRequest(namespace=info.namespace)
    reset.execution.workflow_id, reset.execution.run_id = info.workflow_id, info.run_id
    try:
        await reset_sticky_task_queue(engine, reset)
    except NotFound:
        return  # closed meanwhile


def _response(result: WorkflowQueryResult) -> QueryWorkflowResponse:
    if result.result_type == QueryResultType.QUERY_RESULT_TYPE_ANSWERED:
        return QueryWorkflowResponse(query_result=result.answer)
    raise QueryFailed(result.error_message, failure=result.failure if result.HasField("failure") else None)
