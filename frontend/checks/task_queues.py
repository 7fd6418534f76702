"""Task queue names and kinds.

Source: upstream's common/tqid/task_queue_validator.go and common/primitives/task_queues.go.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import TaskQueueKind
from temporalio.api.taskqueue.v1 import TaskQueue

from common.errors import InvalidArgument
from frontend.checks.ids import too_long

NORMAL = TaskQueueKind.TASK_QUEUE_KIND_NORMAL
STICKY = TaskQueueKind.TASK_QUEUE_KIND_STICKY
UNSPECIFIED = TaskQueueKind.TASK_QUEUE_KIND_UNSPECIFIED

RESERVED_PREFIX = "/_sys/"
PER_NAMESPACE_QUEUE = "temporal-sys-per-ns-tq"


def check_task_queue(queue: TaskQueue, *, is_set: bool, limit: int, partition: bool = False) -> None:
    """A queue that workers poll; an unspecified kind becomes NORMAL. With `partition`, names of partitions pass."""
    if not is_set:
        raise InvalidArgument("taskQueue is not set")
    if queue.kind == UNSPECIFIED:
        queue.kind = NORMAL
    if not queue.name:
        raise InvalidArgument("missing task queue name")
    check_name(queue.name, limit=limit, partition=partition)
    if queue.kind == STICKY and queue.normal_name:
        check_name(queue.normal_name, limit=limit, partition=True)


def check_user_task_queue(queue: TaskQueue, *, is_set: bool, limit: int) -> None:
    """A queue that a client names for its workflows: none of the server's own."""
    check_task_queue(queue, is_set=is_set, limit=limit)
    if queue.name == PER_NAMESPACE_QUEUE:
        raise InvalidArgument(f"cannot use internal per-namespace task queue:{queue.name}")


def check_name(name: str, *, limit: int, partition: bool = False) -> None:
    if too_long(name, limit):
        raise InvalidArgument("taskQueue length exceeds limit")
    if not partition and name.startswith(RESERVED_PREFIX):
        raise InvalidArgument(f"task queue name cannot start with reserved prefix {RESERVED_PREFIX}")
