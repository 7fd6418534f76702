"""This part's pages."""

from __future__ import annotations

from tinytemporal_site.console.executions import views
from tinytemporal_site.console.routes import Route

VIEW = "history.view_executionview"

ROUTES: list[Route] = [
    Route("executions/", views.executions, name="executions", permission=VIEW),
    Route("executions/<str:run_id>/", views.execution, name="execution", permission=VIEW),
    Route("executions/<str:run_id>/history.json", views.history, name="execution_history", permission=VIEW),
    Route("executions/<str:run_id>/live/", views.live, name="execution_live", permission=VIEW),
    Route("executions/<str:run_id>/query/", views.query, name="execution_query", permission=VIEW),
]
