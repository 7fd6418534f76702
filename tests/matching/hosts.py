"""Several Matching hosts over one store and one History, tied together by real routers: in process, or over gRPC."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, Literal, cast

from common.clock import Clock, ManualClock, RealClock
from common.contracts.matching import MatchingClient
from common.membership import Member, Membership
from common.rpc import MATCHING, Channels, Contract, HostUnreachable, RpcServer
from matching.config import MatchingConfig
from matching.physical_queue import PhysicalQueue
from matching.service import MatchingService
from matching.task_queue import TaskQueue
from matching.task_queues import TaskQueueKey
from tinytemporal_site.cluster import Cluster, QueuePlacement
from tinytemporal_site.routing import matching_router

from .fakes import NAMESPACE, QUEUE, START, World

Binding = Literal["in process", "remote"]
FRONTEND = "frontend"


class Members(Membership):
    """Changes when the test says so."""

    def change(self, members: list[Member]) -> None:
        self._set("matching", members)
        self._tell()


class OneOf:
    """Of `Cluster`, what says which queues are this host's."""

    def __init__(self, membership: Membership) -> None:
        self.membership = membership
        self.host = membership.host

    owns = Cluster.owns


class InProcess:
    """Stands for `Channels`: the hosts are called where they are, a host that is gone is not reached."""

    def __init__(self) -> None:
        self.services: dict[str, MatchingService] = {}

    def to(self, address: str) -> "InProcess._Host":
        return self._Host(self, address)

    class _Host:
        def __init__(self, network: "InProcess", address: str) -> None:
            self._network = network
            self._address = address

        def client(self, contract: Contract) -> Any:
            found = self._network.services.get(self._address)
            if found is None:
                raise HostUnreachable(f"{self._address} is gone")
            return found


class Hosts(World):
    """`client` is a frontend's. Fixed members until `join` and `leave`."""

    def __init__(self, *, binding: Binding, config: MatchingConfig) -> None:
        super().__init__(config)
        self.clock: Clock = RealClock() if binding == "remote" else ManualClock(START)  # type: ignore[assignment]
        self.binding = binding
        self.network = InProcess()
        self.servers: dict[str, RpcServer] = {}
        self.channels: list[Channels] = []
        self.by_host: dict[str, MatchingService] = {}
        self.memberships: list[Members] = []
        self.members: list[Member] = []
        self.client = self._router(self._membership(FRONTEND), local=None)

    async def join(self, *hosts: str) -> None:
        for host in hosts:
            membership = self._membership(host)
            service = MatchingService(
                self.store,
                self.history,
                self.clock,
                self.config,
                host,
                user_data=self.store,
                deployments=self.deployments,
                placement=QueuePlacement(cluster=cast(Cluster, OneOf(membership))),
            )
            membership.subscribe(service.queues.rebalance)
            service.others.client = self._router(membership, local=service)
            await service.start()
            self.services.append(service)
            self.by_host[host] = service
            self.members.append(Member(role="matching", host=host, address=await self._serve(host, service)))
        self._publish()

    async def leave(self, host: str) -> None:
        """In order: the others know before it stops."""
        self.members = [member for member in self.members if member.host != host]
        self._publish()
        service = self.by_host.pop(host)
        await service.stop()
        if host in self.servers:
            await self.servers.pop(host).stop()
        self.network.services.pop(host, None)

    def crash(self, host: str) -> None:
        """The others can't reach it and believe it gone; what it still does, the fences have to stop."""
        self.by_host.pop(host)
        self.network.services.pop(host)
        self.members = [member for member in self.members if member.host != host]
        for membership in self.memberships:
            if membership.host != host:
                membership.change(self.members)

    async def end(self) -> None:
        await self.close()
        for channels in self.channels:
            await channels.close()
        for server in self.servers.values():
            await server.stop()

    def at(self, partition: int) -> MatchingService:
        """The service that holds the partition."""
        return self.by_host[self.host_of(partition)]

    def host_of(self, partition: int, queue: str = QUEUE) -> str:
        placement = QueuePlacement(cluster=cast(Cluster, OneOf(self.memberships[0])))
        return placement.host(namespace=NAMESPACE, family=queue, partition=partition)

    def loaded(self, partition: int, kind: str = "workflow") -> TaskQueue:
        found = self.at(partition).queues.loaded(TaskQueueKey(NAMESPACE, QUEUE, kind))  # type: ignore[arg-type]
        assert found is not None
        return found

    def physical(self, partition: int) -> PhysicalQueue:
        return next(p for p in self.loaded(partition).partitions if p.key.partition == partition)

    def _publish(self) -> None:
        for membership in self.memberships:
            membership.change(self.members)

    def _membership(self, host: str) -> Members:
        membership = Members(host=host)
        self.memberships.append(membership)
        return membership

    def _router(self, membership: Members, *, local: MatchingClient | None) -> MatchingClient:
        return matching_router(
            local=local,
            membership=membership,
            channels=self._channels(),
            clock=self.clock,
            partitions_of=self.config.partitions_of,
        )

    def _channels(self) -> Channels:
        if self.binding == "in process":
            return cast(Channels, self.network)
        channels = Channels(clock=self.clock)
        self.channels.append(channels)
        return channels

    async def _serve(self, host: str, service: MatchingService) -> str:
        if self.binding == "in process":
            self.network.services[host] = service
            return host
        server = RpcServer(
            role="matching",
            address="127.0.0.1:0",
            implementations={MATCHING: service},
            clock=self.clock,
            grace=timedelta(milliseconds=50),
        )
        await server.start()
        self.servers[host] = server
        return server.address


@asynccontextmanager
async def hosts(
    *names: str, binding: Binding = "in process", config: MatchingConfig | None = None, **fields: Any
) -> AsyncIterator[Hosts]:
    made = Hosts(binding=binding, config=config or MatchingConfig(match_wait=timedelta(), **fields))
    await made.join(*names)
    try:
        yield made
    finally:
        async with asyncio.timeout(30):
            await made.end()
