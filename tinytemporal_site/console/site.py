"""The admin site: Django's, with the console's pages beside the models' and what needs attention on the first page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import path


class ConsoleSite(admin.AdminSite):
    site_header = "tinytemporal"
    site_title = "tinytemporal"
    index_title = "What needs attention"
    index_template = "console/index.html"

    def get_urls(self) -> list[Any]:
        """Built with the first request: the views, and what they need, are loaded by then and not at the start."""
        from tinytemporal_site.console.pages import ROUTES

        pages = [
            path(route.pattern, self.admin_view(route.checked_view()), name=f"console_{route.name}") for route in ROUTES
        ]
        return [*pages, *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        from tinytemporal_site.console.overview.views import overview

        return super().index(request, {**overview(request), **(extra_context or {})})
