"""Two ready groups: `viewer` sees everything, `operator` may do everything there is an action for as well.

They are made after each migration, and get what they lack; who wants other groups makes others.
"""

from __future__ import annotations

from typing import Any

from django.db import DEFAULT_DB_ALIAS

VIEWER, OPERATOR = "viewer", "operator"
APPS = ("tinytemporal_site", "history", "matching", "visibility", "frontend", "worker")
CONSOLE = "console"
LAST = "auth"
"""By the time that this app's migrations are announced, the permissions of all ours are there: it is listed after them."""


def ensure_groups(*, using: str = DEFAULT_DB_ALIAS, **_signal: Any) -> None:
    """After `migrate` on the database that holds the accounts; quick when nothing lacks."""
    if using != DEFAULT_DB_ALIAS:
        return
    from django.contrib.auth.models import Group, Permission

    permissions = Permission.objects.using(using)
    views = permissions.filter(content_type__app_label__in=APPS, codename__startswith="view_")
    actions = permissions.filter(content_type__app_label=CONSOLE)
    for name, granted in ((VIEWER, [*views]), (OPERATOR, [*views, *actions])):
        group, _ = Group.objects.using(using).get_or_create(name=name)
        group.permissions.add(*granted)
