"""Which host holds what of a task queue.

The partitions of a queue are spread over the Matching hosts. What one host holds of a queue (of one kind and version) is
loaded as one `TaskQueue`, whose partitions share their pollers and ready tasks; partition 0 is the root, to whose host the
others take what they can't match themselves (`matching.forwarding`).
"""

from __future__ import annotations

from typing import Protocol


class Placement(Protocol):
    """By membership. A family is a normal queue's namespace and name; its sticky queues are where its root is."""

    @property
    def is_shared(self) -> bool:
        """Whether there is more than one host."""
        ...

    def host(self, *, namespace: str, family: str, partition: int) -> str:
        """The name of the host, empty when none is known."""
        ...

    def owns(self, *, namespace: str, family: str, partition: int) -> bool:
        """Whether it is this host. If not, somebody thought so: the owner is looked after."""
        ...

    def keeps_workers(self, namespace: str) -> bool:
        """Whether this is the host that the heartbeats of a namespace's workers go to."""
        ...


class Alone:
    """One host has everything."""

    def __init__(self, *, host: str) -> None:
        self.is_shared = False
        self._host = host

    def host(self, *, namespace: str, family: str, partition: int) -> str:  # noqa: ARG002  whatever it is
        return self._host

    def owns(self, *, namespace: str, family: str, partition: int) -> bool:  # noqa: ARG002  whatever it is
        return True

    def keeps_workers(self, namespace: str) -> bool:  # noqa: ARG002  whatever it is
        return True


def partitions_here(placement: Placement, *, host: str, namespace: str, family: str, count: int) -> list[int]:
    """Those of the first `count` partitions that this host holds."""
    if count == 1:
        return [0] if placement.host(namespace=namespace, family=family, partition=0) == host else []
    return [
        partition
        for partition in range(count)
        if placement.host(namespace=namespace, family=family, partition=partition) == host
    ]


def first_elsewhere(placement: Placement, *, host: str, namespace: str, family: str, count: int) -> dict[str, int]:
    """The other hosts that hold some of the first `count` partitions, and the first partition of each."""
    found: dict[str, int] = {}
    for partition in range(count):
        other = placement.host(namespace=namespace, family=family, partition=partition)
        if other and other != host:
            found.setdefault(other, partition)
    return found
