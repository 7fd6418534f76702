"""RespondWorkflowTaskCompleted: carry out the worker's commands, answer its queries, and give it what is next."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.enums.v1 import CommandType, QueryResultType
from temporalio.api.query.v1 import WorkflowQueryResult
from temporalio.api.workflowservice.v1 import (
    RespondWorkflowTaskCompletedRequest,
    RespondWorkflowTaskCompletedResponse,
)

from common.contracts.tokens import TaskToken, decode_token
from common.errors import InvalidArgument, NotFound, TemporalError
from history.api.task_answers import answer_workflow_task
from history.commands import BadCommand, EndpointsUnknown
from history.engine.engine import Engine
from history.transitions.task_completion import (
    Completion,
    HistoryTooLarge,
    complete_workflow_task,
    end_over_limit,
    fail_completion,
)
from history.transitions.task_response import activity_task_response
from history.versioning import effective_version, poller_version

CONTINUE_AS_NEW = CommandType.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION
REASON = "RespondWorkflowTaskCompleted"


async def respond_workflow_task_completed(
    engine: Engine, request: RespondWorkflowTaskCompletedRequest
) -> RespondWorkflowTaskCompletedResponse:
    """Raises NOT_FOUND for a stale token; INVALID_ARGUMENT when the commands can't be carried out (the task has failed)."""
    token = decode_token(TaskToken, request.task_token)
    version_queue = ""
    if request.commands and request.commands[-1].command_type == CONTINUE_AS_NEW:
        version_queue = await _version_queue(engine, request, token)
    completion = await _complete(engine, request, token, version_queue=version_queue)
    _answer_queries(engine, completion, request.query_results)
    if completion.heartbeat_timed_out:
        raise NotFound("workflow task heartbeat timeout")
    response = RespondWorkflowTaskCompletedResponse(
        activity_tasks=[activity_task_response(started) for started in completion.activities],
        reset_history_event_id=completion.reset_history_event_id,
    )
    if completion.next_task is not None:
        response.workflow_task.CopyFrom(await answer_workflow_task(engine, completion.next_task))
    return response


async def _complete(
    engine: Engine,
    request: RespondWorkflowTaskCompletedRequest,
    token: TaskToken,
    *,
    endpoints: Mapping[str, str] | None = None,
    version_queue: str = "",
) -> Completion:
    known = engine.namespaces.last_known(token.namespace)
    custom = known.search_attributes if known is not None else None
    try:
        return await engine.update(
            namespace=token.namespace,
            workflow_id=token.workflow_id,
            transition=lambda work: complete_workflow_task(
                work,
                request,
                token,
                custom_search_attributes=custom,
                endpoints=endpoints,
                version_queue=version_queue,
            ),
            reason=REASON,
        )
    except EndpointsUnknown:
        return await _complete(
            engine,
            request,
            token,
            endpoints=await _endpoints(engine, request),
            version_queue=version_queue,
        )
    except BadCommand as failed:
        bad = failed
        await engine.update(
            namespace=token.namespace,
            workflow_id=token.workflow_id,
            transition=lambda work: fail_completion(work, request, token, failed=bad),
            reason=REASON,
        )
        raise InvalidArgument(failed.message) from failed
    except HistoryTooLarge as large:
        reason = large.reason
        await engine.update(
            namespace=token.namespace,
            workflow_id=token.workflow_id,
            transition=lambda work: end_over_limit(work, token, reason=reason),
            reason=REASON,
        )
        raise InvalidArgument(reason) from large


async def _version_queue(engine: Engine, request: RespondWorkflowTaskCompletedRequest, token: TaskToken) -> str:
    """The queue that the run continues on, if it is another one and its worker deployment version is there too."""
    queue = request.commands[-1].continue_as_new_workflow_execution_command_attributes.task_queue.name
    if not queue:
        return ""
    state = await engine.read(namespace=token.namespace, workflow_id=token.workflow_id, run_id=token.run_id)
    version = poller_version(request.deployment_options) or effective_version(state.info)
    if not version or queue == state.info.task_queue:
        return ""
    has = await engine.matching.has_version(namespace=token.namespace, task_queue=queue, version=version)
    return queue if has else ""


async def _endpoints(engine: Engine, request: RespondWorkflowTaskCompletedRequest) -> dict[str, str]:
    """Ids of the Nexus endpoints that are called, without those that are not there."""
    found: dict[str, str] = {}
    for command in request.commands:
        name = command.schedule_nexus_operation_command_attributes.endpoint
        if not name or name in found:
            continue
        try:
            found[name] = (await engine.endpoints.by_name(name)).endpoint_id
        except NotFound:
            pass  # the command fails the task
    return found


def _answer_queries(engine: Engine, completion: Completion, results: Mapping[str, WorkflowQueryResult]) -> None:
    """Hand the worker's query results over; without another task pending the rest can be asked directly."""
    try:
        queries = engine.registry(completion.run_id).queries
    except TemporalError:
        return  # unloaded: nobody waits
    if not len(queries):
        return
    if results:
        limit = engine.config.blob_limit
        queries.complete({query_id: _within_limit(result, limit) for query_id, result in results.items()})
    if not completion.task_pending:
        queries.unblock()


def _within_limit(result: WorkflowQueryResult, limit: int) -> WorkflowQueryResult:
    if result.answer.ByteSize() <= limit:
        return result
    return WorkflowQueryResult(
        result_type=QueryResultType.QUERY_RESULT_TYPE_FAILED, error_message="Blob data size exceeds limit."
    )
