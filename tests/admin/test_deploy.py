"""The documented settings of production leave Django's own check of a deployment without a warning."""

from __future__ import annotations

import re

from tests.databases import PROJECT, manage


def documented() -> dict[str, str]:
    """As the README has them, the key made up."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    block = readme.split("`manage.py check --deploy` has nothing to say:")[1].split("\n## ")[0]
    found = dict(re.findall(r"^    ([A-Z_]+)=(\S+)", block, re.MULTILINE))
    assert set(found) == {"DEBUG", "SECRET_KEY", "ALLOWED_HOSTS", "CSRF_TRUSTED_ORIGINS", "WEB_HTTPS"}
    return found | {"SECRET_KEY": "".join(chr(33 + number % 90) for number in range(0, 700, 11))}


def test_the_documented_settings_are_fit_for_deployment() -> None:
    said = manage("check", "--deploy", "--fail-level", "WARNING", database_url="sqlite://:memory:", **documented())
    assert "no issues" in said
