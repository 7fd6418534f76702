"""The pages of task queues."""

from __future__ import annotations

from tinytemporal_site.console.queues import views
from tinytemporal_site.console.routes import Route

ROUTES = [
    Route("queues/", views.queues, name="queues", permission="matching.view_taskqueue"),
    Route("queues/<path:physical_queue>/", views.queue, name="queue", permission="matching.view_taskqueue"),
]
