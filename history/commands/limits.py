"""Checks that commands share: sizes, counts, ids, task queues. Each raises `BadCommand`, or INVALID_ARGUMENT text for it."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload, Payloads, Priority
from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.taskqueue.v1 import TaskQueue

from common.archetypes import MARK
from common.errors import InvalidArgument
from history.commands import BadCommand, CommandContext, cause_name
from history.search_attributes import check_names

Cause = WorkflowTaskFailedCause

ID_LIMIT = 1_000
"""Bytes of an id or a name."""
FAIRNESS_KEY_LIMIT = 64
RESERVED_QUEUE_PREFIX = "/_sys/"
INTERNAL_QUEUE = "temporal-sys-per-ns-tq"


def check_size(ctx: CommandContext, size: int, cause: Cause.ValueType, message: str) -> None:
    """A payload over the blob limit ends the run: its worker can't but send it again."""
    if size > ctx.work.config.blob_limit:
        raise BadCommand(cause, f"{cause_name(cause)}: {message}", terminate=True)


def check_pending(ctx: CommandContext, count: int, limit: int, cause: Cause.ValueType, what: str) -> None:
    if 0 < limit <= count:
        raise ctx.bad(cause, f"the number of {what}, {count}, has reached the per-workflow limit of {limit}")


def check_search_attribute_names(ctx: CommandContext, fields: Mapping[str, Payload]) -> None:
    """Search attributes that the namespace does not have fail the task, whatever command has them."""
    try:
        check_names(fields, namespace=ctx.work.namespace, custom=ctx.custom_search_attributes)
    except InvalidArgument as error:
        raise ctx.bad(Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES, error.message) from error


def id_size(value: str) -> int:
    """Bytes, which is what limits count."""
    return len(value) if value.isascii() else len(value.encode())


def map_size(fields: Mapping[str, Payload]) -> int:
    """Bytes of a map of payloads, as upstream counts them."""
    return sum(len(name) + len(payload.data) for name, payload in fields.items())


def details_size(details: Mapping[str, Payloads]) -> int:
    return sum(len(name) + payloads.ByteSize() for name, payloads in details.items())


def task_queue_name(queue: TaskQueue | None, *, default: str, parent: str = "") -> str:
    """The queue a command means; `parent`: the run's own, as far as it differs from the default. Raises INVALID_ARGUMENT."""
    if queue is None and not default:
        raise InvalidArgument("taskQueue is not set")
    name = (queue.name if queue is not None else "") or default
    parent = parent or default
    if not name:
        raise InvalidArgument("missing task queue name")
    if id_size(name) > ID_LIMIT:
        raise InvalidArgument("taskQueue length exceeds limit")
    if name.startswith(RESERVED_QUEUE_PREFIX):
        raise InvalidArgument(f"task queue name cannot start with reserved prefix {RESERVED_QUEUE_PREFIX}")
    if name == INTERNAL_QUEUE and parent != INTERNAL_QUEUE:
        suffix = f" (in parent component task queue: {parent})" if parent else ""
        raise InvalidArgument(f"cannot use internal per-namespace task queue:{name}{suffix}")
    return name


def check_priority(priority: Priority) -> None:
    """Raises INVALID_ARGUMENT."""
    if priority.priority_key < 0:
        raise InvalidArgument("priority key can't be negative")
    if id_size(priority.fairness_key) > FAIRNESS_KEY_LIMIT:
        raise InvalidArgument("fairness key length exceeds limit")
    if priority.fairness_weight < 0:
        raise InvalidArgument("must be greater than zero")


def check_is_of_workflow(workflow_id: str) -> None:
    """Raises INVALID_ARGUMENT for what is the key of another kind of execution."""
    if workflow_id[0] == MARK:
        raise InvalidArgument("WorkflowId begins with a character that is reserved.")
