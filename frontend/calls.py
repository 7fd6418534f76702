"""One call of an API method: the namespace check, the entry function, and another try when a shard or queue has moved.

The same for gRPC (`frontend.handlers`) and for callers in this process (`call`): the admin's actions and the server's own
worker do what a client could do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from google.protobuf.message import Message

from common.contracts.matching import StickyWorkerUnavailable
from common.errors import OutcomeUnknown, QueueOwnershipLost, ShardOwnershipLost, Unavailable
from frontend.config import FrontendConfig
from frontend.methods import Method, all_methods
from frontend.namespace_checks import namespace_check
from frontend.services import Frontend

Invoke = Callable[[Any], Awaitable[Message]]


@cache
def method_named(name: str) -> Method:
    """By its bare name; the services share none."""
    return {method.path.rpartition("/")[2]: method for method in all_methods()}[name]


async def call(frontend: Frontend, name: str, request: Message) -> Any:
    """Calls a method as a client would: `await call(frontend, "SignalWorkflowExecution", request)`."""
    return await invoker(frontend, method_named(name))(request)


def invoker(frontend: Frontend, method: Method) -> Invoke:
    """The method as a function of its request."""
    check = namespace_check(frontend, method)
    entry = method.entry

    async def invoke(request: Any) -> Message:
        if check is not None:
            await check(request)
        try:
            return await entry(frontend, request)
        except Unavailable as error:
            return await _again(frontend, method, request, error)

    return invoke


async def _again(frontend: Frontend, method: Method, request: Any, error: Unavailable) -> Message:
    """Tries a call again that found its shard, queue or database away.

    Not one whose outcome is unknown: what has perhaps been applied is only repeated by a client that knows better.
    """
    failures: dict[bool, int] = {True: 0, False: 0}
    while True:
        moved = isinstance(error, (ShardOwnershipLost, QueueOwnershipLost))
        failures[moved] += 1
        if not _may_repeat(error, failures=failures[moved], moved=moved, config=frontend.config):
            raise error
        config = frontend.config
        first = config.ownership_backoff if moved else config.unavailable_backoff
        await frontend.clock.sleep(first * 2 ** (failures[moved] - 1))
        try:
            return await method.entry(frontend, request)
        except Unavailable as again:
            error = again


def _may_repeat(error: Unavailable, *, failures: int, moved: bool, config: FrontendConfig) -> bool:
    if isinstance(error, (OutcomeUnknown, StickyWorkerUnavailable)):
        return False
    return failures <= (config.ownership_retries if moved else config.unavailable_retries)
