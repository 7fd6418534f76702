"""What a host that holds partitions of a queue, but not the root, takes there.

While pollers wait here for nothing, the one that waits longest is lent to the root; while tasks wait here for nobody, the
best of them are offered to the pollers there, until a poller comes here; where pollers come all the time, one task at a
time. So a task in one partition and a poller in another always meet at the root, and where both are plenty little is
forwarded. Source: upstream's service/matching/forwarder.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from common import deadline
from common.clock import Clock
from common.contracts.matching import MatchingClient
from matching.config import MatchingConfig
from matching.delivery import Delivery, task_to_offer
from matching.matcher import Poller

if TYPE_CHECKING:
    from matching.task_queue import TaskQueue

T = TypeVar("T")

log = logging.getLogger(__name__)


class Forwarder:
    """`root` reaches the host of the root, wherever that is."""

    def __init__(self, *, queue: TaskQueue, root: MatchingClient, clock: Clock, config: MatchingConfig) -> None:
        self._queue = queue
        self._root = root
        self._clock = clock
        self._config = config
        self._polls: dict[asyncio.Task[Any], Poller] = {}
        self._offers: dict[asyncio.Task[bool], Delivery] = {}
        self._patient: set[asyncio.Task[bool]] = set()
        """Of the offers, those that may wait for long."""
        self._recalled: dict[asyncio.Task[bool], Delivery] = {}
        self._pausing = False
        self._stopped = False

    @property
    def lends_poller(self) -> bool:
        """Whether a poller of this host waits at the root."""
        return bool(self._polls)

    def look(self) -> None:
        """After every change of what waits here. Never awaits."""
        if self._stopped:
            return
        matcher = self._queue.matcher
        if matcher.waiting and self._offers:
            # What was started of them meanwhile, History will say.
            for task in list(self._offers)[: max(0, matcher.waiting - len(self._recalled))]:
                self._recall(task)
            return
        if self._pausing or self._recalled:
            return
        while matcher.waiting and len(self._polls) < self._config.forwarded_polls:
            poller = matcher.reserve()
            if poller is None:
                break
            self._lend(poller)
        if not matcher.waiting:
            self._offer_best()

    def poller_came(self) -> None:
        """The best of what waits at the root for long is to be had here again."""
        for task in list(self._patient):
            self._recall(task)

    @property
    def is_recalling(self) -> bool:
        """What comes back in a moment may be better than what is here."""
        return bool(self._recalled)

    def stop(self) -> None:
        """The queue is unloaded: what was started of its tasks meanwhile, its next owner learns from History."""
        self._stopped = True
        for task in list(self._offers):
            self._recall(task)

    def end_polls(self, *, instance_key: str | None = None) -> None:
        for task, poller in self._polls.items():
            if instance_key is None or poller.instance_key == instance_key:
                task.cancel()

    async def settle(self) -> None:
        """Returns when nothing is under way; call after `stop`. Polls go on until they are answered or ended."""
        if self._offers or self._recalled:
            await asyncio.wait({*self._offers, *self._recalled})

    # polls

    def _lend(self, poller: Poller) -> None:
        task = self._begin(self._poll(poller), f"poll at the root of {self._queue.name}")
        self._polls[task] = poller
        task.add_done_callback(self._poll_ended)
        poller.answer.add_done_callback(lambda _: task.cancel())

    async def _poll(self, poller: Poller) -> Any:
        deadline.set_current(poller.until + self._config.empty_poll_margin)
        calls: dict[str, Callable[..., Awaitable[Any]]] = {
            "workflow": self._root.poll_workflow_task_queue,
            "activity": self._root.poll_activity_task_queue,
            "nexus": self._root.poll_nexus_task_queue,
        }
        return await calls[self._queue.kind](poller.request, forwarded=True)

    def _poll_ended(self, task: asyncio.Task[Any]) -> None:
        """Here and not in the task, which may be cancelled before it begins. An empty answer from the root is the poll's
        own: it lasted as long, or its worker or the root's host stops. A cancelled one has gone, or is sent home."""
        poller = self._polls.pop(task)
        if task.cancelled():
            self._queue.answer(poller, None)
        elif (error := task.exception()) is not None:
            self._failed("a poll", error)
            self._queue.give_back(poller)
        else:
            self._queue.answer(poller, task.result() if task.result().task_token else None)
        self.look()

    # tasks

    def _offer_best(self) -> None:
        """Where pollers come all the time one task is offered, and not for long, in case the root has idle ones. Source:
        upstream's maxWaitForPollerBeforeFwd."""
        is_polled = self._queue.pollers.seconds_since_poll() < self._config.forward_after.total_seconds()
        while len(self._offers) < (1 if is_polled else self._config.forwarded_tasks):
            delivery = self._queue.take_for_offer()
            if delivery is None:
                return
            is_patient = delivery.is_stored and not is_polled
            patience = self._config.offer_wait if is_patient else self._config.forward_after
            task = self._begin(self._offer(delivery, patience=patience), f"offer a task of {self._queue.name}")
            self._offers[task] = delivery
            if is_patient:
                self._patient.add(task)
            task.add_done_callback(self._offer_ended)
        worst = max(self._patient, key=lambda task: self._offers[task].priority, default=None)
        if worst is not None and self._queue.best_priority < self._offers[worst].priority:
            self._recall(worst)

    async def _offer(self, delivery: Delivery, *, patience: timedelta) -> bool:
        deadline.set_current(self._clock.now() + patience + self._config.ask_others)
        task = task_to_offer(delivery, namespace=self._queue.namespace, task_queue=self._queue.name)
        return await self._root.offer_task(task, patience=patience)

    def _recall(self, task: asyncio.Task[bool]) -> None:
        self._recalled[task] = self._offers.pop(task)
        self._patient.discard(task)
        task.cancel()

    def _offer_ended(self, task: asyncio.Task[bool]) -> None:
        """Here and not in the task, which may be recalled before it begins."""
        delivery = self._offers.pop(task, None) or self._recalled.pop(task)
        self._patient.discard(task)
        handled = False
        if not task.cancelled():
            error = task.exception()
            if error is None:
                handled = task.result()
            else:
                self._failed("a task", error)
        self._queue.was_offered(delivery, handled=handled)
        if not self._stopped:
            self._queue.pump()

    # both

    def _begin(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        # A context of its own: it outlives the request that happened to cause it, and has its own deadline.
        return asyncio.get_running_loop().create_task(work, name=name, context=Context())

    def _failed(self, what: str, error: BaseException) -> None:
        log.info("%s of %s could not be taken to the root: %r", what, self._queue.name, error)
        if self._pausing:
            return
        self._pausing = True
        self._clock.call_at(self._clock.now() + self._config.forward_retry, self._go_on)

    def _go_on(self) -> None:
        self._pausing = False
        if not self._stopped:
            self._queue.pump()
