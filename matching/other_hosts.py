"""The hosts that hold further partitions of queues whose root is here, and what this one tells and asks them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any

from common import deadline
from common.clock import Clock
from common.contracts.matching import MatchingClient
from matching.config import MatchingConfig
from matching.names import partition_name
from matching.placement import Placement, first_elsewhere

if TYPE_CHECKING:
    from matching.task_queue import TaskQueue

log = logging.getLogger(__name__)


class OtherHosts:
    """`client` reaches every Matching host; composition sets it."""

    def __init__(
        self, *, client: MatchingClient, placement: Placement, host: str, clock: Clock, config: MatchingConfig
    ) -> None:
        self.client = client
        self._placement = placement
        self._host = host
        self._clock = clock
        self._config = config
        self._tellings: set[asyncio.Task[None]] = set()

    def partitions(self, *, namespace: str, family: str, count: int = 0) -> list[str]:
        """The name of one partition of the family at each other host that holds any. `count`: when more than configured
        are in use."""
        count = max(count, self._config.partitions_of(namespace=namespace, family=family))
        found = first_elsewhere(self._placement, host=self._host, namespace=namespace, family=family, count=count)
        return [partition_name(task_queue=family, partition=partition) for partition in found.values()]

    def keep_loaded(self, queue: TaskQueue) -> None:
        """Have them load what they hold of a queue that is used here, since tasks may be stored there."""
        for name in self.partitions(namespace=queue.namespace, family=queue.name, count=queue.count):
            self._tell(
                f"load {name}",
                lambda name=name: self.client.load_task_queue(  # type: ignore[misc]
                    namespace=queue.namespace,
                    task_queue=name,
                    kind=queue.kind,
                    version=queue.version,
                ),
            )

    async def refresh_user_data(self, *, namespace: str, family: str) -> None:
        """Returns when all of them know, or can't be told for now: then they find out by themselves."""
        await asyncio.gather(
            *(
                self._told(
                    f"refresh the user data of {name}",
                    lambda name=name: self.client.refresh_user_data(namespace=namespace, task_queue=name),  # type: ignore[misc]
                )
                for name in self.partitions(namespace=namespace, family=family)
            )
        )

    async def ask(self, names: Sequence[str], question: Callable[[str], Awaitable[Any]]) -> list[Any]:
        """The answers of the hosts of these partitions. Raises what any of them raises."""
        return list(await asyncio.gather(*(question(name) for name in names)))

    async def stop(self) -> None:
        for task in list(self._tellings):
            task.cancel()
        if self._tellings:
            await asyncio.wait(set(self._tellings))

    def _tell(self, what: str, call: Callable[[], Awaitable[Any]]) -> None:
        task = asyncio.get_running_loop().create_task(self._told(what, call), name=what, context=Context())
        self._tellings.add(task)
        task.add_done_callback(self._tellings.discard)

    async def _told(self, what: str, call: Callable[[], Awaitable[Any]]) -> None:
        async def within() -> None:
            # In a task of its own, so that the deadline is this call's only.
            deadline.set_current(self._clock.now() + self._config.ask_others)
            await call()

        try:
            await asyncio.get_running_loop().create_task(within(), name=what)
        except Exception as error:  # noqa: BLE001  it is told again
            log.info("could not have another host %s: %r", what, error)
