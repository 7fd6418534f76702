"""The way from an admin page, which runs in a thread, to the services on this process's event loop.

`bind` is called by the composition root before the web side starts. A page calls `call`, waits a second at most, and gets
either the answer or an `Away` that it shows instead: the rows are there in any case. In a process that plays only the web
role the clients reach the other processes; in one that is bound to nothing (tests, commands) everybody is away.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, cast

from google.protobuf.message import Message
from msgspec import Struct

from common import deadline
from common.clock import Clock
from common.contracts.history import HistoryClient
from common.contracts.inspect import (
    HistoryInspection,
    HistoryInspector,
    InspectQueue,
    InspectRun,
    MatchingInspection,
    MatchingInspector,
    PhysicalQueueInspection,
    RunInspection,
    TaskQueueInspection,
)
from common.contracts.matching import MatchingClient
from common.errors import DeadlineExceeded, OutcomeUnknown, Unavailable
from common.ids import shard_for
from common.membership import Member, Membership
from common.rpc import HISTORY_INSPECT, MATCHING_INSPECT, Channels, HostUnreachable
from frontend.calls import call as call_frontend
from frontend.services import Frontend
from matching.records import QueueKey
from tinytemporal_site.routing.keys import shard_key

log = logging.getLogger(__name__)

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

WITHIN_S = 1.0
"""How long a page waits for the live side."""


@dataclass(frozen=True, kw_only=True)
class Away:
    """Nobody answered. `in_doubt`: what was asked for may have been done all the same."""

    reason: str
    in_doubt: bool = False

    is_away = True
    """For templates."""

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, kw_only=True)
class Services:
    """What pages may call, on the event loop `loop`. `frontend` is the first argument of API calls (see `request`)."""

    history: HistoryClient
    matching: MatchingClient
    frontend: Frontend
    membership: Membership
    channels: Channels
    clock: Clock
    shards: int
    history_inspector: HistoryInspector | None = None
    """This process's own."""
    matching_inspector: MatchingInspector | None = None

    def history_at(self, member: Member) -> HistoryInspector:
        """Raises HostUnreachable when that is this process and it does not play the role."""
        return cast(HistoryInspector, self._at(member, self.history_inspector, HISTORY_INSPECT))

    def matching_at(self, member: Member) -> MatchingInspector:
        return cast(MatchingInspector, self._at(member, self.matching_inspector, MATCHING_INSPECT))

    def _at(self, member: Member, own: Any, contract: Any) -> Any:
        if member.host != self.membership.host:
            return self.channels.to(member.address).client(contract)
        if own is None:
            raise HostUnreachable(f"{member.host} does not play {member.role} any more")
        return own

    def members(self, role: str) -> tuple[Member, ...]:
        return self.membership.ring(role).members


Ask = Callable[[Services], Awaitable[T]]


class _Bound:
    def __init__(self, services: Services, loop: asyncio.AbstractEventLoop) -> None:
        self.services = services
        self.loop = loop


_bound: _Bound | None = None
"""Set and cleared by the composition root; read by the threads of requests."""


def bind(services: Services) -> None:
    """From now on pages reach these services, on the loop that runs now."""
    global _bound
    _bound = _Bound(services, asyncio.get_running_loop())


def unbind() -> None:
    global _bound
    _bound = None


def services() -> Services | None:
    """For code that runs on the event loop already, as the body of a streamed answer does; None when nothing is bound."""
    return None if _bound is None else _bound.services


NOTHING_BOUND = Away(reason="This process runs no services.")


def call(ask: Ask[T], *, timeout: float | None = None) -> T | Away:
    """What `ask(services)` returns, awaited on the event loop for `timeout` seconds (WITHIN_S) at most. For the threads of
    views.

    Away when time is up and for every Unavailable (nobody there, moved, in doubt); other errors are raised as they are.
    """
    bound = _bound
    if bound is None:
        return NOTHING_BOUND
    within = WITHIN_S if timeout is None else timeout
    return _wait(_submit(bound, ask, within), within)


def call_all(asks: Mapping[K, Ask[T]], *, timeout: float | None = None) -> dict[K, T | Away]:
    """`call` for each, at the same time and within the same time. An error of one is its Away."""
    bound = _bound
    if bound is None:
        return dict.fromkeys(asks, NOTHING_BOUND)
    within = WITHIN_S if timeout is None else timeout
    waiting: dict[K, concurrent.futures.Future[T | Away]]
    waiting = {key: _submit(bound, ask, within) for key, ask in asks.items()}
    return {key: _settled(future, within) for key, future in waiting.items()}


def request(name: str, message: Message, *, timeout: float | None = None) -> Any | Away:
    """Calls an API method as a client would: `request("SignalWorkflowExecution", message)`; see `call`."""
    return call(lambda s: call_frontend(s.frontend, name, message), timeout=timeout)


# --- what processes tell of themselves


class LiveQueue(Struct, kw_only=True, frozen=True):
    """A physical queue as its owner has it."""

    host: str
    queue: TaskQueueInspection
    partition: PhysicalQueueInspection


def history_hosts() -> dict[str, HistoryInspection | Away]:
    """What each member that plays History tells, by host."""
    return call_all({member.host: _history_host(member) for member in _members("history")})


def matching_hosts() -> dict[str, MatchingInspection | Away]:
    return call_all({member.host: _matching_host(member) for member in _members("matching")})


def all_hosts() -> tuple[dict[str, HistoryInspection | Away], dict[str, MatchingInspection | Away]]:
    """Both at the same time: a page waits once."""
    asks: dict[tuple[str, str], Ask[Any]] = {("history", m.host): _history_host(m) for m in _members("history")}
    asks |= {("matching", m.host): _matching_host(m) for m in _members("matching")}
    answers = call_all(asks)
    return (
        {host: answer for (role, host), answer in answers.items() if role == "history"},
        {host: answer for (role, host), answer in answers.items() if role == "matching"},
    )


def queue(physical_queue: str) -> LiveQueue | Away | None:
    """The queue as the host has it that has loaded it; None when nobody has. Away when a host that might have did not
    answer. Raises ValueError for what names no queue."""
    key = QueueKey.parse(physical_queue)
    request = InspectQueue(namespace=key.namespace, name=key.task_queue, kind=key.kind, version=key.version)
    members = _members("matching")
    if not members:
        return NOTHING_BOUND if _bound is None else Away(reason="No Matching host is known.")
    # All are asked: where a queue is loaded is up to Matching.
    answers = call_all({member.host: _queue_at(member, request) for member in members})
    for host, answer in answers.items():
        for partition in answer.partitions if isinstance(answer, TaskQueueInspection) else ():
            if partition.physical_queue == physical_queue:
                assert isinstance(answer, TaskQueueInspection)
                return LiveQueue(host=host, queue=answer, partition=partition)
    return next((answer for answer in answers.values() if isinstance(answer, Away)), None)


def run(*, namespace: str, workflow_id: str, run_id: str) -> RunInspection | Away:
    """What the owner of the run's shard has of it in memory."""
    request = InspectRun(namespace=namespace, workflow_id=workflow_id, run_id=run_id)

    async def ask(found: Services) -> RunInspection:
        shard = shard_key(shard_for(namespace=namespace, workflow_id=workflow_id, shards=found.shards))
        owner = found.membership.ring("history").owner(shard)
        if owner is None:
            raise HostUnreachable("no history host is known")
        return await found.history_at(owner).inspect_run(request)

    return call(ask)


def _members(role: str) -> tuple[Member, ...]:
    return () if _bound is None else _bound.services.members(role)


def _history_host(member: Member) -> Ask[HistoryInspection]:
    async def ask(found: Services) -> HistoryInspection:
        return await found.history_at(member).inspect_host()

    return ask


def _matching_host(member: Member) -> Ask[MatchingInspection]:
    async def ask(found: Services) -> MatchingInspection:
        return await found.matching_at(member).inspect_host()

    return ask


def _queue_at(member: Member, request: InspectQueue) -> Ask[TaskQueueInspection | None]:
    async def ask(found: Services) -> TaskQueueInspection | None:
        return await found.matching_at(member).inspect_queue(request)

    return ask


def _submit(bound: _Bound, ask: Ask[T], timeout: float) -> concurrent.futures.Future[T]:
    async def run() -> T:
        deadline.set_current(bound.services.clock.now() + timedelta(seconds=timeout))
        async with asyncio.timeout(timeout):
            return await ask(bound.services)

    return asyncio.run_coroutine_threadsafe(run(), bound.loop)


def _wait(waiting: concurrent.futures.Future[T], timeout: float) -> T | Away:
    try:
        # The loop keeps the time; the margin is for one that is too busy to.
        return waiting.result(timeout + 0.25)
    except (TimeoutError, concurrent.futures.CancelledError, DeadlineExceeded):
        waiting.cancel()
        return Away(reason=f"No answer within {timeout:g} s.", in_doubt=True)
    except Unavailable as error:
        return Away(reason=error.message, in_doubt=isinstance(error, OutcomeUnknown))


def _settled(waiting: concurrent.futures.Future[T], timeout: float) -> T | Away:
    try:
        return _wait(waiting, timeout)
    except Exception as error:
        log.exception("a question to the live side failed")
        return Away(reason=f"It failed: {error}")


@contextlib.contextmanager
def bound(services_of: Callable[[], Services]) -> Iterator[Services]:
    """For tests: services made by `services_of()` on an event loop that runs in a thread of its own meanwhile."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="live side", daemon=True)
    thread.start()

    async def begin() -> Services:
        made = services_of()
        bind(made)
        return made

    try:
        yield asyncio.run_coroutine_threadsafe(begin(), loop).result(30)
    finally:
        unbind()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
