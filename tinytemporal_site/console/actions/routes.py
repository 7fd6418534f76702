"""This part's pages."""

from __future__ import annotations

from tinytemporal_site.console.routes import Route

ROUTES: list[Route] = []
