"""A frontend on a free port before fakes, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import grpc
import pytest
from temporalio.api.operatorservice import v1 as operator_v1
from temporalio.api.workflowservice import v1 as ws

from common.clock import ManualClock
from frontend.config import FrontendConfig
from frontend.server import FrontendServer
from history.namespaces import NamespaceRegistry
from history.nexus_endpoints import NexusEndpoints
from tests.behaviours.harness import Refusal, refusal

from .fakes import (
    FakeBatches,
    FakeMatching,
    FakeRole,
    FakeSchedules,
    FakeVisibility,
    MemoryNamespaceStore,
    MemoryNexusEndpointStore,
)

DEADLINE_S = 10.0


@dataclass
class Setup:
    """One frontend and everything around it."""

    http: ClassVar[tuple[str, int | None] | None] = None

    history: FakeRole = field(default_factory=FakeRole)
    matching: FakeMatching = field(default_factory=FakeMatching)
    visibility: FakeVisibility = field(default_factory=FakeVisibility)
    batches: FakeBatches = field(default_factory=FakeBatches)
    schedules: FakeSchedules = field(default_factory=FakeSchedules)
    store: MemoryNamespaceStore = field(default_factory=MemoryNamespaceStore)
    clock: ManualClock = field(default_factory=ManualClock)
    config: FrontendConfig = field(default_factory=FrontendConfig)

    def __post_init__(self) -> None:
        self.namespaces = NamespaceRegistry(store=self.store, clock=self.clock)
        self.endpoints = NexusEndpoints(store=MemoryNexusEndpointStore(), clock=self.clock)
        self.server = FrontendServer(
            history=self.history,
            matching=self.matching,
            visibility=self.visibility,
            batches=self.batches,
            schedules=self.schedules,
            namespaces=self.namespaces,
            endpoints=self.endpoints,
            clock=self.clock,
            config=self.config,
            address="127.0.0.1:0",
            http=self.http,
        )
        self.channel: grpc.aio.Channel

    @property
    def address(self) -> str:
        return self.server.addresses()["frontend"]

    def call(self, request: Any, *, deadline_s: float | None = DEADLINE_S) -> Awaitable[Any]:
        """The method that the request's type names."""
        method = type(request).__name__.removesuffix("Request")
        module = ws if hasattr(ws, type(request).__name__) else operator_v1
        stub = (ws.WorkflowServiceStub if module is ws else operator_v1.OperatorServiceStub)(self.channel)
        return getattr(stub, method)(request, timeout=deadline_s)

    async def refused(self, request: Any, *, deadline_s: float | None = DEADLINE_S) -> Refusal:
        return await refusal(self.call(request, deadline_s=deadline_s))


@asynccontextmanager
async def serving(setup: Setup) -> AsyncIterator[Setup]:
    """The setup's server started, with a client; stopped at the end."""
    await setup.server.start()
    try:
        async with grpc.aio.insecure_channel(setup.address) as channel:
            setup.channel = channel
            yield setup
    finally:
        await setup.server.stop()


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with serving(Setup()) as made:
        yield made


async def passing_time(setup: Setup, answer: Any) -> Any:
    """The answer, with the clock going on whenever the frontend waits for it."""
    waiting = asyncio.ensure_future(answer)
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=0.005)
        due = setup.clock.next_due()
        if due is not None:
            setup.clock.advance_to(due)
    return waiting.result()
