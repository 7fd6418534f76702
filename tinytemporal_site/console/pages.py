"""All pages of the console. Those of actions come first: their addresses lie below those of what they act on."""

from __future__ import annotations

from tinytemporal_site.console.actions.routes import ROUTES as ACTIONS
from tinytemporal_site.console.executions.routes import ROUTES as EXECUTIONS
from tinytemporal_site.console.hosts.routes import ROUTES as HOSTS
from tinytemporal_site.console.queues.routes import ROUTES as QUEUES
from tinytemporal_site.console.routes import Route

ROUTES: list[Route] = [*ACTIONS, *EXECUTIONS, *QUEUES, *HOSTS]
