"""Names of task queues on the wire: a partition other than the root is called `/_sys/<queue>/<number>`.

Source: upstream's common/tqid.
"""

from __future__ import annotations

from common.errors import InvalidArgument
from matching.records import QueueKey

_PREFIX = "/_sys/"


def partition_name(*, task_queue: str, partition: int) -> str:
    return f"{_PREFIX}{task_queue}/{partition}" if partition else task_queue


def parse_partition(name: str) -> tuple[str, int]:
    """The queue and the partition's number; 0, the root, for a plain name."""
    if not name.startswith(_PREFIX):
        return name, 0
    task_queue, _, number = name.removeprefix(_PREFIX).rpartition("/")
    if not task_queue or not number.isdecimal() or (number.startswith("0")):
        raise InvalidArgument(f"invalid task queue partition name {name!r}")
    return task_queue, int(number)


def parse_physical_queue(name: str) -> QueueKey:
    """The key that a row of `task_queues` is named by. Raises InvalidArgument."""
    try:
        return QueueKey.parse(name)
    except ValueError as error:
        raise InvalidArgument(f"{name!r} names no physical task queue") from error
