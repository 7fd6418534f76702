"""Which key a call is placed by, found from the types of its arguments when the router is made.

History: the shard that the call names, or that of the execution it is about. Matching: the family of the task queue, so
that all kinds and versions of a queue and the sticky queues of its workers are together, and the rank of the partition
under it, so that those are spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
from google.protobuf.message import Message

from common.archetypes import ACTIVITY, NEXUS_OPERATION, key_of
from common.contracts.matching import AddTask
from common.contracts.tokens import NexusTaskToken, QueryToken, TaskToken, decode_token
from common.ids import shard_for
from common.rpc.contract import Method
from matching.names import parse_partition, parse_physical_queue

Named = dict[str, Any]
KeyOf = Callable[[Named], str]
RankOf = Callable[[Named], int]

_EXECUTIONS = ("workflow_execution", "execution")


def shard_key(shard_id: int) -> str:
    return f"shard {shard_id}"


def queue_key(namespace: str, family: str) -> str:
    return f"queue {namespace}/{family}"


class Unroutable(Exception):
    """A method of a contract whose arguments name no execution or task queue."""


def history_key(method: Method, *, shards: int) -> KeyOf:
    """Raises Unroutable; the function itself raises InvalidArgument for a token that can't be read."""
    if "shard_id" in _fields(method):
        return lambda named: shard_key(named["request"].shard_id)
    execution_of = _execution_of(method)

    def key(named: Named) -> str:
        namespace, workflow_id = execution_of(named)
        return shard_key(shard_for(namespace=namespace, workflow_id=workflow_id, shards=shards))

    return key


def _execution_of(method: Method) -> Callable[[Named], tuple[str, str]]:
    if "namespace" in method.types and "execution" in method.types:
        return lambda named: (named["namespace"], named["execution"].workflow_id)
    fields = _fields(method)
    if "task_token" in fields:
        return lambda named: _by_token(named["request"].task_token)
    if {"namespace", "activity_id"} <= fields:
        return lambda named: (named["request"].namespace, _of_activity(named["request"]))
    if {"namespace", "operation_id"} <= fields:
        return lambda named: (named["request"].namespace, key_of(NEXUS_OPERATION, named["request"].operation_id))
    if {"namespace", "workflow_id"} <= fields:
        return lambda named: (named["request"].namespace, named["request"].workflow_id)
    for name in _EXECUTIONS:
        if {"namespace", name} <= fields:
            return _by_execution(name)
    if {"namespace", "update_ref"} <= fields:
        return lambda named: (named["request"].namespace, named["request"].update_ref.workflow_execution.workflow_id)
    if {"namespace", "operations"} <= fields:
        return lambda named: (named["request"].namespace, _of_operations(named["request"].operations))
    if "request" in fields:
        return lambda named: (named["request"].request.namespace, named["request"].request.workflow_id)
    raise Unroutable(f"{method.path} names no execution")


def _by_execution(name: str) -> Callable[[Named], tuple[str, str]]:
    return lambda named: (named["request"].namespace, getattr(named["request"], name).workflow_id)


def _of_activity(request: Any) -> str:
    """An activity's workflow, or the activity itself when it has none."""
    return getattr(request, "workflow_id", "") or key_of(ACTIVITY, request.activity_id)


def _by_token(data: bytes) -> tuple[str, str]:
    token = decode_token(TaskToken, data)
    return token.namespace, token.workflow_id


def _of_operations(operations: Any) -> str:
    for operation in operations:
        if operation.HasField("start_workflow"):
            return str(operation.start_workflow.workflow_id)
        if operation.HasField("update_workflow"):
            return str(operation.update_workflow.workflow_execution.workflow_id)
    return ""


def matching_key(method: Method) -> KeyOf:
    """Raises Unroutable."""
    family_of = _family_of(method)

    def key(named: Named) -> str:
        namespace, family = family_of(named)
        return queue_key(namespace, parse_partition(family)[0])

    return key


def _family_of(method: Method) -> Callable[[Named], tuple[str, str]]:
    if "namespace" in method.types and "task_queue" in method.types:
        return lambda named: (named["namespace"], named["task_queue"])
    if "physical_queue" in method.types:
        return _of_physical_queue
    if "namespace" in method.types:
        return lambda named: (named["namespace"], "")  # about all queues of a namespace
    fields = _fields(method)
    if "task_token" in fields:
        if "nexus" in method.name:
            return lambda named: _place_of(decode_token(NexusTaskToken, named["request"].task_token))
        return lambda named: _place_of(decode_token(QueryToken, named["request"].task_token))
    if {"namespace", "task_queue", "normal_name"} <= fields:
        return lambda named: (named["request"].namespace, named["request"].normal_name or named["request"].task_queue)
    if {"namespace", "task_queue"} <= fields:
        return lambda named: (named["request"].namespace, _family(named["request"].task_queue))
    if "namespace" in fields:
        return lambda named: (named["request"].namespace, "")  # about all queues of a namespace
    raise Unroutable(f"{method.path} names no task queue")


class PartitionsOf(Protocol):
    def __call__(self, *, namespace: str, family: str) -> int: ...


def one_partition(*, namespace: str, family: str) -> int:  # noqa: ARG001  of every queue
    return 1


TURNS_KEPT = 10_000
_BY_TURNS = frozenset(("add_task", "poll_activity_task_queue", "poll_nexus_task_queue", "poll_workflow_task_queue"))
_BY_PARTITION = frozenset(
    ("describe_partitions", "describe_task_queue", "has_recent_poller", "load_task_queue", "refresh_user_data")
)


def matching_rank(method: Method, *, partitions_of: PartitionsOf) -> RankOf:
    """The partition that a call is for: tasks and polls go to all in turn, some calls name one, the rest is the root's.
    Raises Unroutable."""
    if "physical_queue" in method.types:
        return _rank_of_physical_queue
    if method.name in _BY_PARTITION:
        family_of = _family_of(method)
        return lambda named: parse_partition(family_of(named)[1])[1]
    if method.name in _BY_TURNS:
        return _Turns(_family_of(method), partitions_of)
    return _root


def _root(named: Named) -> int:  # noqa: ARG001  whatever it is
    return 0


def _rank_of_physical_queue(named: Named) -> int:
    return 0 if named.get("normal_name") else parse_physical_queue(named["physical_queue"]).partition


class _Turns:
    """A host serves any task or poll with whatever it holds of the queue, so these name no partition."""

    def __init__(self, family_of: Callable[[Named], tuple[str, str]], partitions_of: PartitionsOf) -> None:
        self._family_of = family_of
        self._partitions_of = partitions_of
        self._turns = Counter[tuple[str, str]]()

    def __call__(self, named: Named) -> int:
        request = named["request"]
        if named.get("forwarded") or _normal_name(request):
            return 0
        namespace, name = self._family_of(named)
        family, partition = parse_partition(name)
        if partition:
            return partition
        count = self._partitions_of(namespace=namespace, family=family)
        if count == 1:
            return 0
        if len(self._turns) > TURNS_KEPT:
            self._turns.clear()
        self._turns[namespace, family] += 1
        return self._turns[namespace, family] % count


def _normal_name(request: Any) -> str:
    """Set for a sticky queue."""
    name: str = request.normal_name if isinstance(request, AddTask) else request.task_queue.normal_name
    return name


def _of_physical_queue(named: Named) -> tuple[str, str]:
    key = parse_physical_queue(named["physical_queue"])
    return key.namespace, named.get("normal_name") or key.task_queue


def _family(task_queue: Any) -> str:
    return task_queue if isinstance(task_queue, str) else task_queue.normal_name or task_queue.name


def _place_of(token: QueryToken | NexusTaskToken) -> tuple[str, str]:
    return token.namespace, token.task_queue


def _fields(method: Method) -> frozenset[str]:
    """Names of the fields of the argument `request`, a Struct or an API message."""
    of = method.types.get("request")
    if isinstance(of, type) and issubclass(of, Message):
        return frozenset(of.DESCRIPTOR.fields_by_name)
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        return frozenset(of.__struct_fields__)
    return frozenset()
