"""What the API functions work with: the other roles' clients, the namespaces, time and limits."""

from __future__ import annotations

from collections.abc import Mapping

from common.clock import Clock
from common.contracts.batches import BatchClient
from common.contracts.history import HistoryClient
from common.contracts.matching import MatchingClient
from common.contracts.schedules import ScheduleClient
from common.contracts.visibility import VisibilityClient
from frontend.config import FrontendConfig
from frontend.waiting import OutstandingPolls
from history.namespaces import NamespaceRegistry
from history.nexus_endpoints import NexusEndpoints


class Frontend:
    """The first argument of every function in `frontend.api`; holds no state of any request."""

    __slots__ = (
        "address",
        "batches",
        "clock",
        "config",
        "endpoints",
        "history",
        "http_address",
        "matching",
        "namespaces",
        "polls",
        "schedules",
        "visibility",
    )

    def __init__(
        self,
        *,
        history: HistoryClient,
        matching: MatchingClient,
        visibility: VisibilityClient,
        batches: BatchClient,
        schedules: ScheduleClient,
        namespaces: NamespaceRegistry,
        endpoints: NexusEndpoints,
        clock: Clock,
        config: FrontendConfig,
        address: str = "",
    ) -> None:
        self.history = history
        self.matching = matching
        self.visibility = visibility
        self.batches = batches
        self.schedules = schedules
        self.namespaces = namespaces
        self.endpoints = endpoints
        self.clock = clock
        self.config = config
        self.address = address
        """Where it listens, as HOST:PORT."""
        self.http_address = ""
        """Where its HTTP port listens, as HOST:PORT; empty without one."""
        self.polls = OutstandingPolls(clock=clock)

    async def custom_attributes(self, namespace: str) -> Mapping[str, str]:
        """The namespace's own search attributes, name → type name."""
        record = self.namespaces.peek(namespace) or await self.namespaces.get(namespace)
        return record.search_attributes
