"""Admin pages through Django's test client, on a database of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tests.databases import django_entry
from tests.django_default import default_database, reader_client


@pytest.fixture(scope="module")
def django_connection(module_database_url: str, django_db_blocker: Any) -> Iterator[Any]:
    """Django's default database is a fresh one of the module's kind; the connection to it."""
    with default_database(django_entry(module_database_url), blocker=django_db_blocker) as connection:
        yield connection


@pytest.fixture
def reader(django_connection: Any) -> Client:
    """Signed in as a superuser."""
    return reader_client()
