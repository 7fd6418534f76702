"""Admin pages through Django's test client, on a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.db.utils import load_backend
from django.test import Client

from tests.databases import django_entry


@pytest.fixture(scope="module")
def django_connection(module_database_url: str, django_db_blocker: Any) -> Iterator[Any]:
    """Django's default database is a fresh one of the module's kind; the connection to it."""
    before = connections["default"]
    complete = connections.configure_settings({"default": django_entry(module_database_url)})["default"]
    with django_db_blocker.unblock():
        connection = load_backend(complete["ENGINE"]).DatabaseWrapper(complete, "default")
        connections["default"] = connection
        User.objects.create_superuser("reader", password="secret")
        yield connection
        connection.close()
        connections["default"] = before


@pytest.fixture
def reader(django_connection: Any) -> Client:
    """Signed in as a superuser."""
    client = Client()
    client.force_login(User.objects.get(username="reader"))
    return client
