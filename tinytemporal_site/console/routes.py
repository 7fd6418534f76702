"""How a part of the console says which pages it has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase

View = Callable[..., HttpResponseBase]


@dataclass(frozen=True, kw_only=True)
class _Named:
    name: str
    permission: str = ""
    """Of Django, as "history.view_shard"; who lacks it is answered with 403. Empty: any who may use the admin."""


@dataclass(frozen=True)
class Route(_Named):
    """One page. `pattern` is below /admin/, as for Django's `path`; the page's name becomes `admin:console_<name>`. The site
    sees to the sign-in and to the check against forged requests."""

    pattern: str
    view: View

    def checked_view(self) -> View:
        if not self.permission:
            return self.view

        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not request.user.has_perm(self.permission):
                raise PermissionDenied
            return self.view(request, *args, **kwargs)

        return checked
