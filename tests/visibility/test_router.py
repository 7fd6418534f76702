"""The read model may live in a database of its own."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings

from history.models import Namespace
from visibility.models import Visibility
from visibility.router import VisibilityRouter, alias

ROUTER = VisibilityRouter()


def test_without_a_database_of_its_own() -> None:
    assert alias() == "default"
    assert ROUTER.db_for_read(Visibility) == ROUTER.db_for_write(Visibility) == "default"
    assert ROUTER.db_for_read(Namespace) is None
    assert ROUTER.allow_migrate("default", "visibility") is True
    assert ROUTER.allow_migrate("default", "history") is None


def test_with_a_database_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(django_settings, "DATABASES", {"default": {}, "visibility": {}})
    assert ROUTER.db_for_read(Visibility) == ROUTER.db_for_write(Visibility) == "visibility"
    assert ROUTER.db_for_read(Namespace) is None
    assert ROUTER.allow_migrate("visibility", "visibility") is True
    assert ROUTER.allow_migrate("default", "visibility") is True
    assert ROUTER.allow_migrate("far", "visibility") is False
    assert ROUTER.allow_migrate("visibility", "history") is False
    assert ROUTER.allow_migrate("default", "history") is None
