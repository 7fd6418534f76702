"""The page of shards and hosts."""

from __future__ import annotations

from tinytemporal_site.console.hosts import views
from tinytemporal_site.console.routes import Route

ROUTES = [Route("hosts/", views.hosts, name="hosts", permission="history.view_shard")]
