"""The contracts over both bindings: in process, where a call is an await, and over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, get_type_hints

import msgspec
import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import NamespaceState, ResourceExhaustedCause, ResourceExhaustedScope
from temporalio.api.failure.v1 import Failure
from temporalio.api.workflowservice import v1 as ws

from common import caller, deadline, errors
from common.clock import ManualClock, RealClock
from common.contracts.history import HistoryClient
from common.contracts.inspect import HistoryInspector, MatchingInspector
from common.contracts.matching import MatchingClient, StickyWorkerUnavailable
from common.rpc import (
    HISTORY,
    HISTORY_INSPECT,
    MATCHING,
    MATCHING_INSPECT,
    Channels,
    Contract,
    HostUnreachable,
    RemoteFault,
    RpcServer,
)
from tests.contract.rpc_bindings import Recording, sample
from tests.ports import free_port

CONTRACTS = {
    HISTORY: HistoryClient,
    MATCHING: MatchingClient,
    HISTORY_INSPECT: HistoryInspector,
    MATCHING_INSPECT: MatchingInspector,
}
METHODS = [(contract, name) for contract in CONTRACTS for name in contract.methods]

Bind = Callable[[Contract, Any], Any]


@pytest.fixture(params=["in process", "remote"])
async def bind(request: pytest.FixtureRequest) -> AsyncIterator[Bind]:
    """Gives `bind(contract, implementation)`: an awaitable for a client of the implementation."""
    stops: list[Callable[[], Any]] = []

    async def remote(contract: Contract, implementation: Any) -> Any:
        server = RpcServer(
            role="test", address="127.0.0.1:0", implementations={contract: implementation}, clock=RealClock()
        )
        await server.start()
        channels = Channels(clock=RealClock())
        stops.extend((server.stop, channels.close))
        return channels.to(server.address).client(contract)

    async def local(contract: Contract, implementation: Any) -> Any:
        return implementation

    yield remote if request.param == "remote" else local
    while stops:
        await stops.pop()()


def answers(contract: Contract) -> dict[str, Any]:
    protocol = CONTRACTS[contract]
    return {name: sample(get_type_hints(getattr(protocol, name))["return"], salt=40) for name in contract.methods}


def arguments(contract: Contract, name: str) -> dict[str, Any]:
    return {key: sample(of, salt=i) for i, (key, of) in enumerate(contract.methods[name].types.items(), 3)}


async def called(bind: Bind, contract: Contract, error: Exception | None = None) -> tuple[Any, Recording]:
    service = Recording(contract, answers=answers(contract))
    service.error = error
    return await bind(contract, service), service


@pytest.mark.parametrize(("contract", "name"), METHODS, ids=lambda value: getattr(value, "service", value))
async def test_every_method_carries_its_arguments_and_its_answer(bind: Bind, contract: Contract, name: str) -> None:
    client, service = await called(bind, contract)
    method = contract.methods[name]
    given = arguments(contract, name)
    positional = [given[key] for key in method.positional]
    answer = await getattr(client, name)(*positional, **{key: given[key] for key in method.keywords})
    assert answer == service.answers[name]
    assert [call.name for call in service.calls] == [name]
    assert method.named(service.calls[0].args, service.calls[0].kwargs) == given


async def test_what_is_left_out_has_its_default(bind: Bind) -> None:
    client, service = await called(bind, HISTORY)
    request = ws.SignalWorkflowExecutionRequest(namespace="n", signal_name="s")
    await client.signal_workflow_execution(request)
    kwargs = service.calls[0].kwargs
    assert service.calls[0].args == (request,)
    assert not kwargs.get("child_only", False)
    assert kwargs.get("external_execution") is None


ERRORS: list[errors.TemporalError] = [
    errors.InvalidArgument("bad"),
    errors.NotFound("gone"),
    errors.TaskAlreadyStarted("second"),
    errors.TaskObsolete("obsolete"),
    errors.PermissionDenied("no", reason="because"),
    errors.ResourceExhausted(
        "busy",
        cause=ResourceExhaustedCause.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW,
        scope=ResourceExhaustedScope.RESOURCE_EXHAUSTED_SCOPE_NAMESPACE,
    ),
    errors.WorkflowExecutionAlreadyStarted("running", start_request_id="r", run_id="run"),
    errors.QueryFailed("failed", failure=Failure(message="why", cause=Failure(message="deeper"))),
    errors.NamespaceNotFound("nowhere"),
    errors.NamespaceInvalidState(
        namespace="n",
        state=NamespaceState.NAMESPACE_STATE_DEPRECATED,
        allowed=[NamespaceState.NAMESPACE_STATE_REGISTERED],
    ),
    errors.MultiOperationFailed("both", errors=[None, errors.Aborted("not run"), errors.QueryFailed("x")]),
    errors.ShardOwnershipLost(shard_id=3, owner="other"),
    errors.QueueOwnershipLost(physical_queue="n/workflow/0//q"),
    errors.PersistenceError(table="executions", key="1/run", reason="odd"),
    errors.OutcomeUnknown("perhaps"),
    StickyWorkerUnavailable("no worker"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_errors_arrive_as_what_they_were(bind: Bind, error: errors.TemporalError) -> None:
    client, _ = await called(bind, HISTORY, error)
    with pytest.raises(errors.TemporalError) as caught:
        await client.reset_sticky_task_queue(ws.ResetStickyTaskQueueRequest())
    assert type(caught.value) is type(error)
    assert (str(caught.value), caught.value.status) == (str(error), error.status)
    assert caught.value.detail() == error.detail()
    assert comparable(caught.value) == comparable(error)


def comparable(error: errors.TemporalError) -> dict[str, Any]:
    """The fields, with nested errors as theirs."""
    fields = dict(vars(error))
    if isinstance(error, errors.MultiOperationFailed):
        fields["errors"] = [None if e is None else (type(e), comparable(e)) for e in error.errors]
    return fields


async def test_a_bug_over_there_is_no_temporal_error(bind: Bind) -> None:
    client, _ = await called(bind, HISTORY, ZeroDivisionError("division by zero"))
    with pytest.raises(Exception, match="division by zero") as caught:
        await client.reset_sticky_task_queue(ws.ResetStickyTaskQueueRequest())
    assert isinstance(caught.value, (ZeroDivisionError, RemoteFault))


class Waiting:
    """A service whose only method waits until it is cancelled, and notes what it knew of its caller."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.until: Any = None
        self.client_name = ""

    async def query_task(self, *, namespace: str, execution: WorkflowExecution, sticky: bool) -> Any:
        self.until = deadline.current()
        self.client_name = caller.client_name()
        self.began.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


QUERY: dict[str, Any] = {"namespace": "n", "execution": WorkflowExecution(workflow_id="w"), "sticky": False}


async def test_cancelling_the_await_cancels_the_call(bind: Bind) -> None:
    service = Waiting()
    client = await bind(HISTORY, service)
    call = asyncio.create_task(client.query_task(**QUERY))
    await service.began.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await service.cancelled.wait()


async def test_deadline_and_client_name_go_along(bind: Bind) -> None:
    service = Waiting()
    client = await bind(HISTORY, service)
    until = RealClock().now() + timedelta(seconds=30)

    async def request() -> None:
        deadline.set_current(until)
        caller.set_metadata(lambda: [("client-name", "temporal-cli")])
        await client.query_task(**QUERY)

    call = asyncio.create_task(request())
    await service.began.wait()
    call.cancel()
    await asyncio.wait({call})
    assert service.client_name == "temporal-cli"
    assert abs((service.until - until).total_seconds()) < 1


@asynccontextmanager
async def remote_waiting() -> AsyncIterator[tuple[Any, Waiting, RpcServer, Channels]]:
    service = Waiting()
    server = RpcServer(
        role="test",
        address=f"127.0.0.1:{free_port()}",
        implementations={HISTORY: service},
        clock=RealClock(),
        grace=timedelta(milliseconds=50),
    )
    await server.start()
    channels = Channels(clock=RealClock())
    try:
        yield channels.to(server.address).client(HISTORY), service, server, channels
    finally:
        await channels.close()
        await server.stop()


async def test_a_deadline_that_passes_ends_the_call_on_both_sides() -> None:
    async with remote_waiting() as (client, service, _, _):

        async def request() -> None:
            deadline.set_current(RealClock().now() + timedelta(milliseconds=300))
            await client.query_task(**QUERY)

        with pytest.raises(errors.DeadlineExceeded):
            await asyncio.create_task(request())
        await service.cancelled.wait()


async def test_a_host_that_is_not_there_was_given_nothing() -> None:
    channels = Channels(clock=RealClock())
    client = channels.to(f"127.0.0.1:{free_port()}").client(HISTORY)
    with pytest.raises(HostUnreachable):
        await client.query_task(**QUERY)
    await channels.close()


async def test_a_host_that_stops_leaves_its_calls_in_doubt() -> None:
    async with remote_waiting() as (client, service, server, _):
        call = asyncio.create_task(client.query_task(**QUERY))
        await service.began.wait()
        await server.stop()
        with pytest.raises(errors.OutcomeUnknown):
            await call
        with pytest.raises(HostUnreachable):
            await client.query_task(**QUERY)


async def test_a_host_taken_to_be_gone_leaves_its_calls_in_doubt() -> None:
    async with remote_waiting() as (client, service, server, channels):
        call = asyncio.create_task(client.query_task(**QUERY))
        await service.began.wait()
        channels.to(server.address).abandon()
        with pytest.raises(errors.OutcomeUnknown):
            await call


async def test_a_connection_that_is_retired_ends_with_its_last_call() -> None:
    async with remote_waiting() as (client, service, server, channels):
        call = asyncio.create_task(client.query_task(**QUERY))
        await service.began.wait()
        clock = ManualClock()
        host = channels.to(server.address)
        host._clock = clock
        retiring = asyncio.create_task(host.retire(patience=timedelta(seconds=10)))
        await asyncio.wait({retiring}, timeout=0)
        assert not call.done()
        clock.advance(timedelta(seconds=10))
        with pytest.raises(errors.OutcomeUnknown):
            await call
        await retiring


async def test_arguments_that_can_not_be_read_are_refused() -> None:
    async with remote_waiting() as (_, _, server, channels):
        method = Contract(MatchingClient, service="tinytemporal.History").methods["has_recent_poller"]
        method.path = HISTORY.methods["query_task"].path
        call = channels.to(server.address).method(method)
        with pytest.raises(errors.Internal, match="unreadable arguments"):
            await call(namespace="n", task_queue="q", kind="workflow")


def test_a_type_that_can_not_travel_is_refused_when_the_contract_is_read() -> None:
    class Bad:
        async def method(self, *, value: complex) -> None: ...

    with pytest.raises((TypeError, msgspec.ValidationError)):
        Contract(Bad, service="bad").methods["method"].decode_arguments(b"\x81\xa5value\x01")
