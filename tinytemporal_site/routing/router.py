"""A contract's client that reaches whoever owns what a call is about, in this process or in another.

When this process is the only member of the role, the router's methods *are* those of the local implementation: in one
process a call costs nothing more. Otherwise each call is placed by its key and rank, or goes to all hosts. A call that its
host did not take (nobody listens, the host is leaving, or it owns the shard or queue no longer) is tried again while
membership settles; one whose outcome is unknown only if repeating it changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from common import deadline
from common.clock import Clock
from common.errors import OutcomeUnknown, QueueOwnershipLost, ShardOwnershipLost, Unavailable
from common.membership import Member, Membership
from common.rpc import Channels, Contract, HostUnreachable
from common.rpc.contract import Method
from tinytemporal_site.routing.keys import KeyOf, RankOf

log = logging.getLogger(__name__)

ATTEMPTS = 12
FIRST_WAIT = timedelta(milliseconds=50)
LONGEST_WAIT = timedelta(seconds=1)

_MOVED = (HostUnreachable, ShardOwnershipLost, QueueOwnershipLost)

ALL_WITHIN = timedelta(seconds=3)
"""How long a call that goes to every host waits for the slowest."""

MayRepeat = Callable[[Any], bool]
"""Whether doing the call with these named arguments twice is the same as doing it once."""


class Router:
    """Implements `contract`. `local` is this process's own implementation, None when it does not play the role."""

    def __init__(
        self,
        *,
        contract: Contract,
        role: str,
        local: Any | None,
        membership: Membership,
        channels: Channels,
        clock: Clock,
        key_of: Callable[[Method], KeyOf],
        may_repeat: Callable[[Method], MayRepeat],
        rank_of: Callable[[Method], RankOf] | None = None,
        to_all: frozenset[str] = frozenset(),
    ) -> None:
        """`rank_of`: see `Ring.owner`. Methods `to_all` are for every host of the role."""
        self._contract = contract
        self._role = role
        self._local = local
        self._membership = membership
        self._channels = channels
        self._clock = clock
        self._routed = {
            name: self._to_all(method)
            if name in to_all
            else self._route(method, key_of(method), rank_of(method) if rank_of else None, may_repeat(method))
            for name, method in contract.methods.items()
        }
        membership.subscribe(self._bind)
        self._bind()

    def _bind(self) -> None:
        others = [m for m in self._membership.ring(self._role).members if m.host != self._membership.host]
        direct = self._local is not None and not others
        for name, routed in self._routed.items():
            setattr(self, name, getattr(self._local, name) if direct else routed)

    def _target(self, member: Member | None) -> Any:
        if member is None:
            raise HostUnreachable(f"no {self._role} host is known")
        if member.host == self._membership.host:
            if self._local is None:
                raise HostUnreachable(f"{member.host} does not play {self._role} any more")
            return self._local
        return self._channels.to(member.address).client(self._contract)

    def _to_all(self, method: Method) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            members = self._membership.ring(self._role).members
            answers = await asyncio.gather(
                *(self._within(method, member, args, kwargs) for member in members or (None,)), return_exceptions=True
            )
            failed = [answer for answer in answers if isinstance(answer, BaseException)]
            if len(failed) == len(answers):
                raise failed[0]
            for error in failed:
                log.info("not every %s host took %s: %s", self._role, method.name, error)
            return next(answer for answer in answers if not isinstance(answer, BaseException))

        call.__name__ = method.name
        return call

    async def _within(
        self, method: Method, member: Member | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs in a task of its own, so the deadline is this call's only."""
        deadline.set_current(deadline.earlier(self._clock.now() + ALL_WITHIN, margin=timedelta()))
        return await getattr(self._target(member), method.name)(*args, **kwargs)

    def _route(
        self, method: Method, key_of: KeyOf, rank_of: RankOf | None, may_repeat: MayRepeat
    ) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            named = method.named(args, kwargs)
            key = key_of(named)
            failures = 0
            while True:
                # Asked anew each time: a task or a poll then goes to another partition.
                rank = 0 if rank_of is None else rank_of(named)
                member = self._membership.ring(self._role).owner(key, rank=rank)
                try:
                    return await getattr(self._target(member), method.name)(*args, **kwargs)
                except _MOVED as error:
                    failure: Unavailable = error
                except OutcomeUnknown as error:
                    if not may_repeat(named):
                        raise
                    failure = error
                failures += 1
                if member is not None:
                    self._membership.suspect(member)
                await self._wait_or_raise(failures, failure)

        call.__name__ = method.name
        return call

    async def _wait_or_raise(self, failures: int, failure: Unavailable) -> None:
        wait = min(LONGEST_WAIT, FIRST_WAIT * (1 << min(failures - 1, 10)))
        until = deadline.current()
        if failures >= ATTEMPTS or (until is not None and self._clock.now() + wait >= until):
            raise failure
        await self._clock.sleep(wait)
