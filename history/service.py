"""History as a `HistoryClient`: each method is the entry function of the module of its name in `history/api/`."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

import history.processors  # noqa: F401  registers the handlers of transfer tasks
from common.contracts.history import HistoryClient
from common.errors import Unimplemented
from history.engine.engine import Engine

METHODS = [name for name, _ in inspect.getmembers(HistoryClient, inspect.isfunction) if not name.startswith("_")]
"""The contract's methods."""


class _Service:
    """Holds one bound entry function for each method of the contract."""

    def __init__(self, engine: Engine) -> None:
        for name in METHODS:
            setattr(self, name, _bind(name, engine))


def _bind(name: str, engine: Engine) -> Callable[..., Awaitable[Any]]:
    if find_spec(f"history.api.{name}") is None:

        async def absent(*_: Any, **__: Any) -> Any:
            words = "".join(word.title() for word in name.split("_"))
            raise Unimplemented(f"unknown method {words} for service temporal.api.workflowservice.v1.WorkflowService")

        return absent
    entry = getattr(import_module(f"history.api.{name}"), name)

    async def call(*args: Any, **kwargs: Any) -> Any:
        return await entry(engine, *args, **kwargs)

    call.__name__ = name
    return call


def history_service(engine: Engine) -> HistoryClient:
    """The in-process binding of the contract to this host's engine."""
    return cast(HistoryClient, _Service(engine))
