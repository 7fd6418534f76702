"""Queries from a page: the same call as a client's, bounded in time, its answer ready to be read."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct
from temporalio.api.common.v1 import Payload, Payloads, WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest, QueryWorkflowResponse

from common.codec import to_dict
from common.errors import TemporalError
from history.models import Execution
from tinytemporal_site.console import live
from tinytemporal_site.console.executions.codec import decode_within
from tinytemporal_site.console.executions.payloads import Shown, data_of, encoding_of, shown
from visibility.statuses import STATUS_NAME

WITHIN_S = 5.0
"""How long a page waits for the worker's answer."""
STACK_TRACE = "__stack_trace"


class Answer(Struct, frozen=True, kw_only=True):
    results: list[Shown]
    problem: str = ""
    codec_problem: str = ""


def arguments_of(text: str) -> list[Any]:
    """The arguments that a JSON text gives: those of a list, or one. Raises ValueError."""
    if not text.strip():
        return []
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value if isinstance(value, list) else [value]


def request_of(row: Execution, *, name: str, arguments: list[Any]) -> QueryWorkflowRequest:
    payloads = [
        Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(argument, separators=(",", ":")).encode())
        for argument in arguments
    ]
    return QueryWorkflowRequest(
        namespace=row.namespace,
        execution=WorkflowExecution(workflow_id=row.workflow_id, run_id=row.run_id),
        query=WorkflowQuery(query_type=name, query_args=Payloads(payloads=payloads) if payloads else None),
    )


def ask(row: Execution, *, name: str, arguments: list[Any], codec_endpoint: str) -> Answer:
    """Asks the run's worker. Never raises what a client would get as an error: it is the answer's `problem`."""
    request = request_of(row, name=name, arguments=arguments)
    try:
        answer = live.request("QueryWorkflow", request, timeout=WITHIN_S)
    except TemporalError as error:
        return Answer(results=[], problem=error.message)
    if isinstance(answer, live.Away):
        return Answer(results=[], problem=f"No answer: {answer.reason}")
    return _answer(answer, name=name, namespace=row.namespace, endpoint=codec_endpoint)


def _answer(response: QueryWorkflowResponse, *, name: str, namespace: str, endpoint: str) -> Answer:
    if response.HasField("query_rejected"):
        return Answer(results=[], problem=f"Rejected: the run is {STATUS_NAME[response.query_rejected.status]}.")
    payloads = [to_dict(payload) for payload in response.query_result.payloads]
    decoded = decode_within(payloads, endpoint=endpoint, namespace=namespace)
    read = trace if name == STACK_TRACE else shown
    return Answer(results=[read(payload) for payload in decoded.values], codec_problem=decoded.problem)


def trace(payload: dict[str, Any]) -> Shown:
    """A stack trace is one text of many lines, as JSON on one."""
    found = shown(payload)
    if encoding_of(payload) == "json/plain":
        try:
            value = json.loads(data_of(payload))
        except (ValueError, RecursionError):
            return found
        if isinstance(value, str):
            return Shown(kind="text", text=value, size=found.size, encoding=found.encoding)
    return found
