"""The first page."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def overview(request: HttpRequest) -> dict[str, Any]:  # noqa: ARG001  what it shows is coming
    return {}
