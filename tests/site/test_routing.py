"""Where a call goes: by its shard or queue, directly when there is one host, and again when its host did not take it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice import v1 as ws

from common import deadline
from common.clock import ManualClock
from common.contracts.history import RecordWorkflowTaskStarted
from common.contracts.matching import AddTask
from common.contracts.tokens import QueryToken, TaskToken, encode_token
from common.errors import (
    InvalidArgument,
    NotFound,
    OutcomeUnknown,
    QueueOwnershipLost,
    ShardOwnershipLost,
    TemporalError,
)
from common.ids import shard_for
from common.membership import Member, Membership
from common.rpc import HISTORY, MATCHING, HostUnreachable
from tests.contract.rpc_bindings import Recording, sample
from tinytemporal_site.routing import history_router, matching_router
from tinytemporal_site.routing.keys import history_key, matching_key, matching_rank, queue_key, shard_key

SHARDS = 16
EXECUTION = WorkflowExecution(workflow_id="w")
SHARD = shard_key(shard_for(namespace="n", workflow_id="w", shards=SHARDS))
TOKEN = encode_token(TaskToken(namespace="n", workflow_id="w", run_id="r", scheduled_event_id=5))

HISTORY_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("start_workflow_execution", {"request": ws.StartWorkflowExecutionRequest(namespace="n", workflow_id="w")}),
    (
        "signal_workflow_execution",
        {"request": ws.SignalWorkflowExecutionRequest(namespace="n", workflow_execution=EXECUTION)},
    ),
    (
        "describe_workflow_execution",
        {"request": ws.DescribeWorkflowExecutionRequest(namespace="n", execution=EXECUTION)},
    ),
    ("respond_workflow_task_completed", {"request": ws.RespondWorkflowTaskCompletedRequest(task_token=TOKEN)}),
    ("query_task", {"namespace": "n", "execution": EXECUTION, "sticky": True}),
    (
        "poll_workflow_execution_update",
        {"request": ws.PollWorkflowExecutionUpdateRequest(namespace="n", update_ref={"workflow_execution": EXECUTION})},
    ),
    (
        "execute_multi_operation",
        {
            "request": ws.ExecuteMultiOperationRequest(
                namespace="n", operations=[{"start_workflow": {"workflow_id": "w"}}]
            )
        },
    ),
]


@pytest.mark.parametrize(("name", "named"), HISTORY_CALLS, ids=[name for name, _ in HISTORY_CALLS])
def test_a_call_belongs_to_the_shard_of_its_execution(name: str, named: dict[str, Any]) -> None:
    assert history_key(HISTORY.methods[name], shards=SHARDS)(named) == SHARD


def test_a_started_task_belongs_to_the_shard_of_its_execution() -> None:
    record = sample(RecordWorkflowTaskStarted)
    record.namespace, record.workflow_id = "n", "w"
    assert history_key(HISTORY.methods["record_workflow_task_started"], shards=SHARDS)({"request": record}) == SHARD


@pytest.mark.parametrize("token", [b"", b"foreign"])
def test_a_foreign_token_is_refused(token: bytes) -> None:
    key_of = history_key(HISTORY.methods["respond_workflow_task_completed"], shards=SHARDS)
    with pytest.raises(InvalidArgument):
        key_of({"request": ws.RespondWorkflowTaskCompletedRequest(task_token=token)})


STICKY = TaskQueue(name="worker-1", normal_name="q")
MATCHING_CALLS: list[tuple[str, dict[str, Any]]] = [
    (
        "poll_workflow_task_queue",
        {"request": ws.PollWorkflowTaskQueueRequest(namespace="n", task_queue=TaskQueue(name="q"))},
    ),
    ("poll_workflow_task_queue", {"request": ws.PollWorkflowTaskQueueRequest(namespace="n", task_queue=STICKY)}),
    (
        "poll_activity_task_queue",
        {"request": ws.PollActivityTaskQueueRequest(namespace="n", task_queue=TaskQueue(name="/_sys/q/3"))},
    ),
    ("shutdown_worker", {"request": ws.ShutdownWorkerRequest(namespace="n", task_queue="q", sticky_task_queue="s")}),
    ("has_recent_poller", {"namespace": "n", "task_queue": "q", "kind": "activity"}),
    ("unload_task_queue", {"physical_queue": "n/activity/2//q"}),
    ("unload_task_queue", {"physical_queue": "n/workflow/0//worker-1", "normal_name": "q"}),
    (
        "respond_query_task_completed",
        {
            "request": ws.RespondQueryTaskCompletedRequest(
                task_token=encode_token(QueryToken(namespace="n", task_queue="q", query_id="1"))
            )
        },
    ),
]


@pytest.mark.parametrize(("name", "named"), MATCHING_CALLS)
def test_a_call_belongs_to_the_family_of_its_queue(name: str, named: dict[str, Any]) -> None:
    assert matching_key(MATCHING.methods[name])(named) == queue_key("n", "q")


def test_every_method_of_both_contracts_can_be_placed() -> None:
    for method in HISTORY.methods.values():
        history_key(method, shards=SHARDS)
    for method in MATCHING.methods.values():
        matching_key(method)


# --- the router itself


class Network:
    """Stands for the connections: each address has a recording service, or an error that calls to it raise."""

    def __init__(self) -> None:
        self.services: dict[str, Recording] = {}

    def to(self, address: str) -> Network:
        self._address = address
        return self

    def client(self, contract: Any) -> Recording:
        return self.services.setdefault(self._address, Recording(contract, answers=dict.fromkeys(contract.methods)))


class Watched(Membership):
    """A membership that changes when told, and notes whom callers suspect."""

    def __init__(self, *, host: str, role: str, hosts: list[str]) -> None:
        super().__init__(host=host)
        self.role = role
        self.suspected: list[str] = []
        self.on_suspect: list[str] | None = None
        self.change(hosts)

    def change(self, hosts: list[str]) -> None:
        self._set(self.role, [Member(role=self.role, host=host, address=f"{host}:1") for host in hosts])
        self._tell()

    def suspect(self, member: Member) -> None:
        self.suspected.append(member.host)
        if self.on_suspect is not None:
            self.change(self.on_suspect)


REQUEST = ws.DescribeWorkflowExecutionRequest(namespace="n", execution=EXECUTION)
TERMINATE = ws.TerminateWorkflowExecutionRequest(namespace="n", workflow_execution=EXECUTION)


class Lab:
    def __init__(self, *, host: str, hosts: list[str], local: bool) -> None:
        self.clock = ManualClock()
        self.network = Network()
        self.membership = Watched(host=host, role="history", hosts=hosts)
        self.local = Recording(HISTORY, answers=dict.fromkeys(HISTORY.methods)) if local else None
        self.router: Any = history_router(
            local=self.local,  # type: ignore[arg-type]
            membership=self.membership,
            channels=self.network,  # type: ignore[arg-type]
            clock=self.clock,
            shards=SHARDS,
        )

    def service(self, host: str) -> Recording:
        return self.network.to(f"{host}:1").client(HISTORY)

    def owner(self) -> str:
        member = self.membership.ring("history").owner(SHARD)
        assert member is not None
        return member.host

    async def settled(self, call: asyncio.Task[Any]) -> None:
        """Let the call come to its end, its waits included."""
        while not call.done():
            self.clock.advance(timedelta(milliseconds=50))
            await asyncio.wait({call}, timeout=0)


def test_the_only_host_is_called_directly() -> None:
    lab = Lab(host="a", hosts=["a"], local=True)
    assert lab.local is not None
    assert lab.router.query_task == lab.local.query_task
    lab.membership.change(["a", "b"])
    assert lab.router.query_task != lab.local.query_task
    lab.membership.change(["a"])
    assert lab.router.query_task == lab.local.query_task


async def test_a_call_goes_to_the_owner_and_only_there() -> None:
    lab = Lab(host="frontend", hosts=["a", "b", "c"], local=False)
    await lab.router.describe_workflow_execution(REQUEST)
    assert [host for host in "abc" if lab.service(host).calls] == [lab.owner()]


async def test_a_host_calls_itself_in_process() -> None:
    lab = Lab(host="a", hosts=["a", "b"], local=True)
    workflow_ids = [f"w{i}" for i in range(30)]
    for workflow_id in workflow_ids:
        await lab.router.describe_workflow_execution(
            ws.DescribeWorkflowExecutionRequest(namespace="n", execution=WorkflowExecution(workflow_id=workflow_id))
        )
    assert lab.local is not None
    assert lab.local.calls
    assert lab.service("b").calls
    assert len(lab.local.calls) + len(lab.service("b").calls) == len(workflow_ids)
    assert lab.service("a").calls == []


@pytest.mark.parametrize(
    "error",
    [HostUnreachable("refused"), ShardOwnershipLost(shard_id=1), QueueOwnershipLost(physical_queue="q")],
    ids=lambda error: type(error).__name__,
)
async def test_a_call_that_was_not_taken_follows_the_change(error: TemporalError) -> None:
    lab = Lab(host="frontend", hosts=["a", "b"], local=False)
    first = lab.owner()
    lab.service(first).error = error
    lab.membership.on_suspect = [host for host in ("a", "b") if host != first]
    call = asyncio.create_task(lab.router.terminate_workflow_execution(TERMINATE))
    await lab.settled(call)
    await call
    assert lab.membership.suspected == [first]
    assert [len(lab.service(host).calls) for host in (first, lab.owner())] == [1, 1]


async def test_nobody_there_is_told_after_a_while() -> None:
    lab = Lab(host="frontend", hosts=[], local=False)
    call = asyncio.create_task(lab.router.describe_workflow_execution(REQUEST))
    await lab.settled(call)
    with pytest.raises(HostUnreachable, match="no history host is known"):
        await call


async def test_a_caller_with_little_time_is_not_kept_waiting() -> None:
    lab = Lab(host="frontend", hosts=[], local=False)

    async def request() -> None:
        deadline.set_current(lab.clock.now() + timedelta(milliseconds=10))
        await lab.router.describe_workflow_execution(REQUEST)

    with pytest.raises(HostUnreachable):
        await asyncio.create_task(request())


async def test_an_unknown_outcome_is_repeated_only_where_that_changes_nothing() -> None:
    lab = Lab(host="frontend", hosts=["a"], local=False)
    lab.service("a").error = OutcomeUnknown("broken")
    with pytest.raises(OutcomeUnknown):
        await lab.router.terminate_workflow_execution(TERMINATE)
    unnamed = ws.SignalWorkflowExecutionRequest(namespace="n", workflow_execution=EXECUTION)
    with pytest.raises(OutcomeUnknown):
        await lab.router.signal_workflow_execution(unnamed)
    assert len(lab.service("a").calls) == 2
    named = ws.SignalWorkflowExecutionRequest(namespace="n", workflow_execution=EXECUTION, request_id="r")
    call = asyncio.create_task(lab.router.signal_workflow_execution(named))
    await asyncio.wait({call}, timeout=0)
    lab.service("a").error = None
    await lab.settled(call)
    await call
    assert len(lab.service("a").calls) > 3


async def test_other_errors_are_the_callers() -> None:
    lab = Lab(host="frontend", hosts=["a", "b"], local=False)
    lab.service(lab.owner()).error = NotFound("no such run")
    with pytest.raises(NotFound):
        await lab.router.describe_workflow_execution(REQUEST)


async def test_matching_is_placed_by_family() -> None:
    network = Network()
    membership = Watched(host="frontend", role="matching", hosts=["a", "b", "c"])
    router: Any = partial(matching_router, local=None, membership=membership, clock=ManualClock())(channels=network)  # type: ignore[arg-type]
    for _, named in MATCHING_CALLS[:3]:
        name = (
            "poll_activity_task_queue" if "Activity" in type(named["request"]).__name__ else "poll_workflow_task_queue"
        )
        await getattr(router, name)(named["request"])
    assert sorted(len(service.calls) for service in network.services.values()) == [3]


RANKS: list[tuple[str, dict[str, Any], int]] = [
    ("describe_task_queue", {"request": ws.DescribeTaskQueueRequest(task_queue=TaskQueue(name="/_sys/q/3"))}, 3),
    ("describe_task_queue", {"request": ws.DescribeTaskQueueRequest(task_queue=TaskQueue(name="q"))}, 0),
    ("has_recent_poller", {"namespace": "n", "task_queue": "/_sys/q/2", "kind": "workflow"}, 2),
    ("unload_task_queue", {"physical_queue": "n/activity/2//q"}, 2),
    ("unload_task_queue", {"physical_queue": "n/workflow/0//worker-1", "normal_name": "q"}, 0),
    ("update_task_queue_config", {"request": ws.UpdateTaskQueueConfigRequest(task_queue="/_sys/q/3")}, 0),
    ("poll_workflow_task_queue", {"request": ws.PollWorkflowTaskQueueRequest(task_queue=STICKY)}, 0),
    (
        "poll_workflow_task_queue",
        {"request": ws.PollWorkflowTaskQueueRequest(task_queue=TaskQueue(name="q")), "forwarded": True},
        0,
    ),
    (
        "poll_activity_task_queue",
        {"request": ws.PollActivityTaskQueueRequest(task_queue=TaskQueue(name="/_sys/q/1"))},
        1,
    ),
]


@pytest.mark.parametrize(("name", "named", "rank"), RANKS)
def test_some_calls_are_for_a_partition(name: str, named: dict[str, Any], rank: int) -> None:
    assert matching_rank(MATCHING.methods[name], partitions_of=four)(named) == rank


def four(*, namespace: str, family: str) -> int:
    return 4


@pytest.mark.parametrize("name", ["add_task", "poll_workflow_task_queue"])
def test_tasks_and_polls_go_to_all_partitions_in_turn(name: str) -> None:
    rank = matching_rank(MATCHING.methods[name], partitions_of=four)
    request = sample(AddTask) if name == "add_task" else ws.PollWorkflowTaskQueueRequest(namespace="n")
    if isinstance(request, AddTask):
        request.task_queue, request.normal_name = "q", ""
    else:
        request.task_queue.name = "q"
    assert sorted(rank({"request": request}) for _ in range(8)) == [0, 0, 1, 1, 2, 2, 3, 3]


class Shutdown:
    """A frontend's router to three Matching hosts."""

    def __init__(self) -> None:
        self.network = Network()
        self.router: Any = matching_router(
            local=None,
            membership=Watched(host="frontend", role="matching", hosts=["a", "b", "c"]),
            channels=self.network,  # type: ignore[arg-type]
            clock=ManualClock(),
        )
        for host in "abc":
            self.service(host).answers["shutdown_worker"] = ws.ShutdownWorkerResponse()

    def service(self, host: str) -> Recording:
        return self.network.to(f"{host}:1").client(MATCHING)


@pytest.mark.parametrize("queue", ["q", ""])
async def test_every_host_is_told_of_a_workers_end(queue: str) -> None:
    lab = Shutdown()
    lab.service("b").error = HostUnreachable("gone")
    request = ws.ShutdownWorkerRequest(namespace="n", task_queue=queue, worker_instance_key="key")
    assert await lab.router.shutdown_worker(request) == ws.ShutdownWorkerResponse()
    assert [len(lab.service(host).calls) for host in "abc"] == [1, 1, 1]


async def test_an_end_that_no_host_took_is_an_error() -> None:
    lab = Shutdown()
    for host in "abc":
        lab.service(host).error = HostUnreachable("gone")
    with pytest.raises(HostUnreachable):
        await lab.router.shutdown_worker(ws.ShutdownWorkerRequest(namespace="n"))
