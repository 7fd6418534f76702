"""Identifiers: required or not, at most so many bytes of UTF-8.

Source: upstream's service/frontend/validators.go, workflow_handler.go and chasm/lib/workflow/validator.go.
"""

from __future__ import annotations

import re
from uuid import uuid4

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import (
    RecordActivityTaskHeartbeatByIdRequest,
    RespondActivityTaskCanceledByIdRequest,
    RespondActivityTaskCompletedByIdRequest,
    RespondActivityTaskFailedByIdRequest,
)

from common.archetypes import MARK
from common.errors import InvalidArgument

AnswerById = (
    RespondActivityTaskCompletedByIdRequest
    | RespondActivityTaskFailedByIdRequest
    | RespondActivityTaskCanceledByIdRequest
)
ActivityById = AnswerById | RecordActivityTaskHeartbeatByIdRequest

_HEX = "[0-9a-fA-F]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"
# The four spellings that Go's uuid.Validate takes.
_RUN_ID = re.compile(rf"(?:{_UUID}|urn:uuid:{_UUID}|\{{{_UUID}\}}|{_HEX}{{32}})\Z")


def too_long(value: str, limit: int) -> bool:
    """Whether `value` has more than `limit` bytes in UTF-8."""
    length = len(value)
    return length > limit or (length * 4 > limit and len(value.encode()) > limit)


def size(value: str) -> int:
    return len(value.encode())


def check_workflow_id(workflow_id: str, *, limit: int) -> None:
    if not workflow_id:
        raise InvalidArgument("WorkflowId is not set on request.")
    if too_long(workflow_id, limit):
        raise InvalidArgument(f"WorkflowId exceeds maximum allowed length ({size(workflow_id)}/{limit})")
    check_is_of_workflow(workflow_id)


def check_execution(execution: WorkflowExecution, *, is_set: bool) -> None:
    """A workflow id and perhaps a run id; `is_set` is whether the message was there at all."""
    if not is_set:
        raise InvalidArgument("Execution is not set on request.")
    if not execution.workflow_id:
        raise InvalidArgument("WorkflowId is not set on request.")
    if execution.run_id and not _RUN_ID.match(execution.run_id):
        raise InvalidArgument("Invalid RunId.")
    check_is_of_workflow(execution.workflow_id)


def check_is_of_workflow(workflow_id: str) -> None:
    if workflow_id[0] == MARK:
        raise InvalidArgument("WorkflowId begins with a character that is reserved.")


def check_run_id(run_id: str) -> None:
    """Empty, or a UUID."""
    if run_id and not _RUN_ID.match(run_id):
        raise InvalidArgument("RunId is not valid UUID.")


def check_identity(identity: str, *, limit: int) -> None:
    if too_long(identity, limit):
        raise InvalidArgument("Identity length exceeds limit.")


def check_activity_of_workflow(request: ActivityById, *, limit: int) -> None:
    """The ids of calls that name an activity by its id; the run id may be empty, and the workflow id of one that has none."""
    if not request.activity_id:
        raise InvalidArgument("ActivityId is not set on request.")
    if isinstance(request, AnswerById):
        check_identity(request.identity, limit=limit)
    if request.workflow_id:
        check_workflow_id(request.workflow_id, limit=limit)
    check_run_id(request.run_id)


def check_request_id(request_id: str, *, limit: int) -> None:
    if too_long(request_id, limit):
        raise InvalidArgument("RequestId length exceeds limit.")


def new_request_id() -> str:
    """For requests of clients that gave none; SDKs always do."""
    return str(uuid4())
