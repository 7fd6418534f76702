"""The two routers of a process, and which of their calls may be repeated when it is unknown whether they were done."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from google.protobuf.message import Message

from common.clock import Clock
from common.contracts.history import HistoryClient
from common.contracts.matching import MatchingClient
from common.membership import Membership
from common.rpc import HISTORY, MATCHING, Channels
from common.rpc.contract import Method
from tinytemporal_site.routing.keys import PartitionsOf, history_key, matching_key, matching_rank, one_partition
from tinytemporal_site.routing.router import MayRepeat, Router

_HISTORY_REPEATABLE = frozenset(
    (
        # Reads.
        "describe_activity_execution",
        "describe_nexus_operation_execution",
        "describe_workflow_execution",
        "get_workflow_execution_history",
        "get_workflow_execution_history_reverse",
        "poll_activity_execution",
        "poll_nexus_operation_execution",
        "poll_workflow_execution_update",
        "query_task",
        "query_workflow",
        # The same request id gives the same answer.
        "record_activity_task_started",
        "record_workflow_task_started",
        "start_child_workflow_execution",
        # Says how something is, not what to do.
        "child_closed",
        "delete_expired_runs",
        "record_activity_task_heartbeat",
        "record_activity_task_heartbeat_by_id",
        "reset_sticky_task_queue",
        "schedule_first_workflow_task",
        "settle_orphaned_child",
    )
)
_REMEMBERED = frozenset(
    ("signal_with_start_workflow_execution", "signal_workflow_execution", "start_workflow_execution")
)
"""Calls that History knows again by their request id, when they have one."""
_MATCHING_ONCE = frozenset(
    (
        "dispatch_nexus_task",
        "respond_nexus_task_completed",
        "respond_nexus_task_failed",
        "respond_query_task_completed",
    )
)
_TO_ALL_MATCHING = frozenset(("forget_namespace", "shutdown_worker"))
"""A worker's polls, and a namespace's queues, are wherever partitions of queues are."""


def history_router(
    *, local: HistoryClient | None, membership: Membership, channels: Channels, clock: Clock, shards: int
) -> HistoryClient:
    """A client that reaches every shard; `local` is this process's own History."""
    router = Router(
        contract=HISTORY,
        role="history",
        local=local,
        membership=membership,
        channels=channels,
        clock=clock,
        key_of=partial(history_key, shards=shards),
        may_repeat=_may_repeat_history,
    )
    return cast(HistoryClient, router)


def matching_router(
    *,
    local: MatchingClient | None,
    membership: Membership,
    channels: Channels,
    clock: Clock,
    partitions_of: PartitionsOf = one_partition,
) -> MatchingClient:
    """A client that reaches every task queue; `local` is this process's own Matching."""
    router = Router(
        contract=MATCHING,
        role="matching",
        local=local,
        membership=membership,
        channels=channels,
        clock=clock,
        key_of=matching_key,
        rank_of=partial(matching_rank, partitions_of=partitions_of),
        to_all=_TO_ALL_MATCHING,
        may_repeat=lambda method: _never if method.name in _MATCHING_ONCE else _always,
    )
    return cast(MatchingClient, router)


def _may_repeat_history(method: Method) -> MayRepeat:
    if method.name in _HISTORY_REPEATABLE:
        return _always
    if method.name in _REMEMBERED:
        return _has_request_id
    return _never


def _has_request_id(named: dict[str, Any]) -> bool:
    request = named.get("request")
    return isinstance(request, Message) and bool(getattr(request, "request_id", ""))


def _always(named: dict[str, Any]) -> bool:  # noqa: ARG001  every call
    return True


def _never(named: dict[str, Any]) -> bool:  # noqa: ARG001  no call
    return False
