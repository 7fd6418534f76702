"""Which folder may import which: downward only, so that each can be understood, tested and moved without the upper."""

from pathlib import Path

import pytest

from tests.architecture.source import LEVELS, imported, modules


def allowed(*, importer: str, target: str) -> bool:
    """History and Matching, which call each other, meet in the contracts of `common`; so do all siblings."""
    return importer == target or LEVELS[target] < LEVELS[importer]


@pytest.mark.parametrize("folder", LEVELS)
def test_imports_run_downward_only(folder: str) -> None:
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules(folder)
        for line, name in imported(module)
        if (target := name.partition(".")[0]) in LEVELS and not allowed(importer=folder, target=target)
    ]
    assert wrong == []


def test_product_does_not_import_tests() -> None:
    wrong = [f"{m}:{line}" for m in modules() for line, name in imported(m) if name.partition(".")[0] == "tests"]
    assert wrong == []


# A column's type is part of what a migration says, and stands for as long as the migration does.
COLUMN_TYPES = "common.fields"


def test_migrations_import_no_app() -> None:
    """A migration must keep meaning what it meant when it was written, whatever the app's code becomes."""
    migrations = [module for module in modules() if "migrations" in module.parts]
    wrong = [f"{m}:{line} imports {name}" for m in migrations for line, name in imported(m) if is_ours(m, name)]
    assert wrong == []


def is_ours(module: Path, name: str) -> bool:
    """Whether this imports the project's code, other than a helper beside the migrations or a column type."""
    if name == COLUMN_TYPES:
        return False
    return name.partition(".")[0] in LEVELS and not name.startswith(".".join(module.parent.parts))


PURE = ("history/transitions", "history/commands", "history/apply")
IMPURE = {
    "asyncio",
    "datetime.datetime.now",
    "django",
    "grpc",
    "os",
    "psycopg",
    "random",
    "secrets",
    "socket",
    "sqlite3",
}


@pytest.mark.parametrize("folder", PURE)
def test_transitions_touch_nothing_outside(folder: str) -> None:
    """A transition is run again after a failed batch and folded again by `verify`, so it may only compute."""
    wrong = [
        f"{module}:{line} imports {name}"
        for module in modules(folder)
        for line, name in imported(module)
        if name in IMPURE or name.partition(".")[0] in IMPURE
    ]
    assert wrong == []
