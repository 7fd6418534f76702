"""Matching's limits and intervals, upstream's defaults unless said otherwise. Built from settings by the composition root."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct, field


class MatchingConfig(Struct, kw_only=True, frozen=True):
    partitions: int = 1
    """Of every normal queue that `queue_partitions` does not name. Ours; upstream's is 4."""
    queue_partitions: Mapping[str, int] = field(default_factory=dict)
    """By "namespace/queue", or by the queue's name alone for those of all namespaces."""
    forwarded_polls: int = 1
    """Polls that a host without the root lends to it at a time. Source: upstream's forwarderMaxOutstandingPolls."""
    forwarded_tasks: int = 8
    """Tasks that a host without the root offers there at a time. Upstream's is 1."""
    forward_after: timedelta = timedelta(milliseconds=200)
    """A host that was not polled for so long offers that many tasks, one that was only one, for so long. Source:
    upstream's maxWaitForPollerBeforeFwd."""
    offer_wait: timedelta = timedelta(seconds=10)
    """How long a stored task waits at the root for a poller before it is offered anew."""
    forward_retry: timedelta = timedelta(seconds=1)
    """After a failure to reach the root."""
    keep_loaded: timedelta = timedelta(minutes=1)
    """How often a root that is polled has the other hosts load what they hold of its queue."""
    user_data_refresh: timedelta = timedelta(seconds=10)
    """With several hosts: a change of user data is known to all of them after this at the latest, and usually at once."""
    ask_others: timedelta = timedelta(seconds=3)
    """How long other hosts are given to take note of something."""
    long_poll: timedelta = timedelta(minutes=1)
    empty_poll_margin: timedelta = timedelta(seconds=1)
    """An empty poll answers this much before the caller's own deadline."""
    idle_unload: timedelta = timedelta(minutes=5)
    reload_delay: timedelta = timedelta(milliseconds=200)
    """How long the pollers of a queue that another process took wait before they take it back."""
    ownership_check: timedelta = timedelta(seconds=50)
    """When a poll ends empty and this has passed since the last time, the stored range is compared with ours. Upstream
    writes its progress every minute, which has the same effect."""

    # matching at once
    match_wait: timedelta = timedelta(seconds=2)
    """How long an arriving task stays in memory for a poller that is about to come, before it is stored. It saves the
    insert and the delete of a row while workers are merely busy; the task's transfer row in History outlives it. Upstream's
    syncMatchWaitDuration is 200 ms; a worker that takes a hundred tasks a second is busy for longer after a fan-out."""
    match_wait_tasks: int = 1_024
    """An arriving task behind this many others of its queue is stored at once. Half of what History hands over at a time
    from one shard, so that one busy queue leaves room for others."""
    match_wait_poller_window: timedelta = timedelta(seconds=2)
    """They only wait if somebody polled this recently."""

    # backlog
    page_size: int = 500
    reload_at: int = 100
    """The next page is read when fewer deliveries than this are left in memory."""
    max_dispatches: int = 200
    """Deliveries of one queue's backlog whose start is being recorded at the same time."""
    append_batch: int = 1_000
    append_limit: int = 20_000
    """Tasks waiting to be stored in this process; more are refused with RESOURCE_EXHAUSTED."""
    checkpoint_delay: timedelta = timedelta(seconds=1)
    checkpoint_tasks: int = 500
    """Handled tasks that make a checkpoint due at once."""
    retry_first: timedelta = timedelta(milliseconds=100)
    retry_longest: timedelta = timedelta(seconds=2)
    """Back-off of a delivery whose start could not be recorded, and of reads and writes of the store."""

    # pollers
    sticky_poller_window: timedelta = timedelta(seconds=10)
    recent_poller_window: timedelta = timedelta(minutes=1)
    query_poller_window: timedelta = timedelta(seconds=20)
    query_no_poller_margin: timedelta = timedelta(seconds=1)
    """This much before a query's deadline it fails if nobody has polled in `query_poller_window`."""
    poller_history_ttl: timedelta = timedelta(minutes=5)
    poller_history_size: int = 1_000
    shutdown_memory: timedelta = timedelta(seconds=30)
    """How long polls of a worker that was shut down are answered empty at once."""

    # rates
    default_rate: float = 100_000.0
    """Tasks per second and partition reported when nothing limits them."""
    rate_burst: timedelta = timedelta(milliseconds=100)
    """Tasks that an idle limited queue may hand out at once, as time at its rate. Upstream allows a second's worth."""

    # advice to pollers
    scaling_wait: timedelta = timedelta(seconds=1)
    scaling_backlog_age: timedelta = timedelta(milliseconds=200)
    scaling_decisions_per_second: float = 10.0
    scaling_add_dispatch_ratio: float = 1.2

    # fairness
    fairness_weights_limit: int = 1_000
    fairness_keys_kept: int = 100
    """Counters of so many fairness keys survive a reload; the others start again where the queue stands."""
    fairness_keys_tracked: int = 10_000

    # worker deployments
    deployments_of_namespace: int = 100
    versions_of_deployment: int = 100
    queues_of_version: int = 100
    drainage_grace: timedelta = timedelta(minutes=3)
    """The first look at whether a version is drained, after it became neither current nor ramping."""
    drainage_refresh: timedelta = timedelta(minutes=3)
    """The looks after that."""

    # workers
    worker_ttl: timedelta = timedelta(minutes=5)
    """A worker is forgotten this long after its last heartbeat."""
    workers_limit: int = 100_000

    def partitions_of(self, *, namespace: str, family: str) -> int:
        """The number of partitions of a normal queue, of each of its kinds. Hosts and callers must agree on it."""
        if not self.queue_partitions:
            return self.partitions
        named = self.queue_partitions.get(f"{namespace}/{family}") or self.queue_partitions.get(family)
        return named or self.partitions
