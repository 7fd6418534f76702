"""The list of scenarios, and running them against one server."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import grpc
from temporalio.api.operatorservice import v1 as operator_v1

from tests.behaviours.harness import Server
from tests.compare.normalise import refused
from tests.compare.world import World

Act = Callable[[World], Awaitable[None]]
SCENARIOS: dict[str, Act] = {}
AT_ONCE = 6
LONGEST_S = 180.0
# What scenarios put search attributes under.
SEARCH_ATTRIBUTES = {"CompareKeyword": 2, "CompareInt": 3, "CompareText": 1, "CompareBool": 5, "CompareDatetime": 6}


def scenario(act: Act) -> Act:
    """Registers an async function of a world under its name."""
    name = act.__name__
    assert name not in SCENARIOS, name
    SCENARIOS[name] = act
    return act


async def observe(address: str, names: Iterable[str], *, at_once: int = AT_ONCE) -> dict[str, Any]:
    """What each of these scenarios sees at that frontend, by name; a few at a time."""
    room = asyncio.Semaphore(at_once)
    async with grpc.aio.insecure_channel(address) as channel:
        namespace_id = await prepare(Server(channel))

        async def run(name: str) -> Any:
            async with room:
                world = World(channel, scenario=name)
                world.label(namespace_id, "namespace")
                return await play(world, SCENARIOS[name])

        names = list(names)
        return dict(zip(names, await asyncio.gather(*map(run, names)), strict=True))


async def play(world: World, act: Act) -> dict[str, Any]:
    """One scenario from start to end; where it can't go on is one more thing that was seen."""
    try:
        async with asyncio.timeout(LONGEST_S):
            await act(world)
    except Exception as error:  # noqa: BLE001
        where = [f for f in traceback.extract_tb(error.__traceback__) if "/scenarios/" in f.filename]
        said = refused(error) if isinstance(error, grpc.aio.AioRpcError) else f"{type(error).__name__}: {error}"
        world.note("broke off", {"line": where[-1].line if where else "", "because": said})
    return await world.observations()


async def prepare(server: Server) -> str:
    """Registers the search attributes that scenarios use; gives the namespace's id."""
    request = operator_v1.AddSearchAttributesRequest(namespace="default", search_attributes=SEARCH_ATTRIBUTES)
    try:
        await server.operator_service.AddSearchAttributes(request)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.ALREADY_EXISTS:
            raise
    return str((await server.call("DescribeNamespace")).namespace_info.id)
