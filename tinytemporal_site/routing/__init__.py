"""Clients that reach every shard and every task queue, wherever they are: see `router`."""

from __future__ import annotations

from tinytemporal_site.routing.router import Router
from tinytemporal_site.routing.routes import history_router, matching_router

__all__ = ["Router", "history_router", "matching_router"]
