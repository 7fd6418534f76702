"""The roles that a process can play, and what `runservice` makes of its arguments."""

import os
import socket

ROLES = ("history", "matching", "frontend", "worker", "web")
ALL = "all"


def chosen_roles(names: list[str]) -> frozenset[str]:
    """The roles that these arguments ask for: none, or `all` among them, means every role."""
    return frozenset(ROLES) if not names or ALL in names else frozenset(names)


def default_host() -> str:
    """A name that no other process of the cluster has: two processes with one name would take each other's leases."""
    return f"{socket.gethostname()}-{os.getpid()}"
