"""How the roles of this process meet those of others: membership, connections, and what serves them.

A process that has its database to itself (SQLite) is a cluster of its own and opens no port for other roles. On PostgreSQL
every process joins the cluster of its database, so a second one shares the work instead of quarrelling for it.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from common.clock import Clock
from common.database import Database
from common.membership import LiveMembership, Member, Membership
from common.membership.store import MemberStore
from common.rpc import Channels, Contract, RpcServer
from tinytemporal_site.routing.keys import queue_key, shard_key

HISTORY_ROLE, MATCHING_ROLE, WORKER_ROLE = "history", "matching", "worker"
ENGINE_ROLES = (HISTORY_ROLE, MATCHING_ROLE, "frontend")
_WILDCARDS = frozenset(("0.0.0.0", "::"))  # noqa: S104  recognised, not bound


class Cluster:
    """Of one process. `host` is its name, `roles` what it plays."""

    def __init__(self, *, host: str, roles: frozenset[str], database: Database, clock: Clock) -> None:
        self.host = host
        self.roles = roles
        self._clock = clock
        self.is_alone = database.dialect == "sqlite"
        if self.is_alone:
            check_alone(roles)
        self.channels = Channels(clock=clock)
        self.servers: list[RpcServer] = []
        self.membership = self._membership(database)
        self.membership.subscribe(self._drop_connections)

    def _membership(self, database: Database) -> Membership:
        if self.is_alone:
            alone = {role: [Member(role=role, host=self.host)] for role in self.roles}
            return Membership(host=self.host, fixed=alone)
        return LiveMembership(
            host=self.host,
            store=MemberStore(database=database),
            clock=self._clock,
            own=self._own,
            fixed=self._fixed(),
            shared={HISTORY_ROLE: [shard_key(n) for n in range(1, settings.NUM_HISTORY_SHARDS + 1)]},
        )

    def _fixed(self) -> dict[str, list[Member]]:
        """Raises ImproperlyConfigured when a list says that this host does not play what it was told to play."""
        given = {HISTORY_ROLE: settings.HISTORY_HOSTS, MATCHING_ROLE: settings.MATCHING_HOSTS}
        for role, hosts in given.items():
            if hosts and role in self.roles and self.host not in hosts:
                raise ImproperlyConfigured(
                    f"{role.upper()}_HOSTS names {', '.join(hosts)} but not this host, {self.host}: "
                    "start it with --host and one of these names."
                )
        return {
            role: [Member(role=role, host=host, address=address) for host, address in hosts.items()]
            for role, hosts in given.items()
            if hosts
        }

    def serve(self, served: Mapping[str, Mapping[Contract, Any]]) -> list[RpcServer]:
        """Servers of the roles that this process plays for others; to be started before the membership."""
        ports = {HISTORY_ROLE: settings.HISTORY_PORT, MATCHING_ROLE: settings.MATCHING_PORT}
        for role, implementations in served.items():
            address = f"{_bracketed(settings.BIND_ADDRESS)}:{ports[role]}"
            self.servers.append(
                RpcServer(role=role, address=address, implementations=implementations, clock=self._clock)
            )
        return self.servers

    def _own(self) -> dict[str, str]:
        """What this process tells others of itself."""
        own = dict.fromkeys(self.roles, "")
        if "frontend" in own:
            own["frontend"] = f"{self.advertised_host()}:{settings.FRONTEND_PORT}"
        for server in self.servers:
            for role, address in server.addresses().items():
                own[role] = f"{self.advertised_host()}:{address.rpartition(':')[2]}"
        return own

    @staticmethod
    def advertised_host() -> str:
        given = settings.ADVERTISE_ADDRESS or settings.BIND_ADDRESS
        return _bracketed(socket.gethostname() if given in _WILDCARDS else given)

    # --- what belongs to this host

    def owns_shard(self, shard_id: int) -> bool:
        return self.owns(HISTORY_ROLE, shard_key(shard_id))

    def sweeps_shard(self, shard_id: int) -> bool:
        """Whether this is the worker host whose loops see to the shard."""
        return self._works(shard_key(shard_id))

    def runs_batch(self, key: str) -> bool:
        """Whether this is the worker host that works the batch off."""
        return self._works(f"batch/{key}")

    def runs_schedule(self, key: str) -> bool:
        """Whether this is the worker host that sees to the schedule."""
        return self._works(f"schedule/{key}")

    def _works(self, key: str) -> bool:
        owner = self.membership.ring(WORKER_ROLE).owner(key)
        return owner is None or owner.host == self.host

    def owns(self, role: str, key: str, *, rank: int = 0) -> bool:
        """Whether what has that key is this host's, by membership."""
        owner = self.membership.ring(role).owner(key, rank=rank)
        if owner is None or owner.host == self.host:
            return owner is not None
        # Somebody thinks that it is ours: perhaps the owner has just died.
        self.membership.suspect(owner)
        return False

    def _drop_connections(self) -> None:
        rings = [self.membership.ring(role) for role in (HISTORY_ROLE, MATCHING_ROLE)]
        self.channels.keep_only({member.address for ring in rings for member in ring.members})


class QueuePlacement:
    """Matching's `Placement`, by the cluster's membership."""

    def __init__(self, *, cluster: Cluster) -> None:
        self._cluster = cluster

    @property
    def is_shared(self) -> bool:
        return len(self._cluster.membership.ring(MATCHING_ROLE).members) > 1

    def host(self, *, namespace: str, family: str, partition: int) -> str:
        owner = self._cluster.membership.ring(MATCHING_ROLE).owner(queue_key(namespace, family), rank=partition)
        return "" if owner is None else owner.host

    def owns(self, *, namespace: str, family: str, partition: int) -> bool:
        return self._cluster.owns(MATCHING_ROLE, queue_key(namespace, family), rank=partition)

    def keeps_workers(self, namespace: str) -> bool:
        return self.host(namespace=namespace, family="", partition=0) == self._cluster.host


def check_alone(roles: frozenset[str]) -> None:
    """SQLite is for one process. Raises ImproperlyConfigured for one that would need another beside it."""
    missing = [role for role in ENGINE_ROLES if role not in roles]
    if missing and roles & set(ENGINE_ROLES):
        raise ImproperlyConfigured(
            f"SQLite is for one process, and this one would lack {', '.join(missing)}: run all roles in it, "
            "or keep the data in PostgreSQL."
        )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
