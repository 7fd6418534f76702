"""Django's default database exchanged for a while, for tests of the admin's pages on a database of either kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db import connections
from django.db.utils import load_backend
from django.test import Client


@contextmanager
def default_database(entry: dict[str, Any], *, blocker: Any) -> Iterator[Any]:
    """Gives the connection to `entry` (as in `settings.DATABASES`), where the superuser "reader" is made; `blocker` is
    pytest-django's."""
    before = connections["default"]
    complete = connections.configure_settings({"default": entry})["default"]
    with blocker.unblock():
        connection = load_backend(complete["ENGINE"]).DatabaseWrapper(complete, "default")
        connections["default"] = connection
        User.objects.create_superuser("reader", password="secret")
        yield connection
        connection.close()
        connections["default"] = before


def reader_client() -> Client:
    """Signed in as that superuser."""
    client = Client()
    client.force_login(User.objects.get(username="reader"))
    return client
