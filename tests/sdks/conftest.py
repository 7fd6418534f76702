"""Which of the tours run here.

A tour runs where its language's tools are installed. Where one lacks, its tests are left out when tests are collected
and named at the session's end; with `CI=true` they are kept, and fail with what is missing.
"""

from __future__ import annotations

import os

import pytest

from tests.sdks.projects import PROJECTS, Project

_LEFT_OUT = pytest.StashKey[list[str]]()


def project_of(item: pytest.Item) -> Project | None:
    callspec = getattr(item, "callspec", None)
    project = callspec.params.get("project") if callspec else None
    return project if isinstance(project, Project) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("CI") == "true":
        return
    missing = {project.language: project.missing_tools() for project in PROJECTS}
    out = [item for item in items if (project := project_of(item)) and missing[project.language]]
    languages = {project.language for item in out if (project := project_of(item))}
    config.stash[_LEFT_OUT] = [f"{language}: no {', '.join(missing[language])}" for language in sorted(languages)]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_LEFT_OUT, []):
        terminalreporter.write_line(f"tests/sdks left out {line}", yellow=True)
