"""House rules that a reader could forget, each with its reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.source import PROJECT, dotted, imported, modules, texts, tree

CLOCK = Path("common/clock.py")
OUTSIDE_CLOCK = {
    "asyncio.sleep",
    "date.today",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.now",
    "datetime.utcnow",
    "loop.call_at",
    "loop.call_later",
    "loop.time",
    "time.monotonic",
    "time.monotonic_ns",
    "time.sleep",
    "time.time",
    "time.time_ns",
    "timezone.now",
}
# Module: why it may read a clock or wait by itself.
MAY_TELL_TIME: dict[str, str] = {}

SQL = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s|WITH\s+\w+\s+AS\s*\("
    r"|(CREATE|ALTER|DROP)\s+(UNIQUE\s+)?(TABLE|INDEX|VIEW|SCHEMA|DATABASE)\s|TRUNCATE\s|PRAGMA\s|BEGIN\b|LISTEN\s|NOTIFY\s)"
)
# Module: why it may hold SQL although it is no store.
MAY_HOLD_SQL: dict[str, str] = {
    "tinytemporal_site/databases.py": "the PRAGMAs that Django runs on each new SQLite connection",
}

LONGEST_FILE = 500
LONGEST_FUNCTION = 100
# Module: why it is longer than LONGEST_FILE lines.
MAY_BE_LONG: dict[str, str] = {}

SKIPS = {
    "pytest.skip",
    "pytest.xfail",
    "pytest.importorskip",
    "pytest.mark.skip",
    "pytest.mark.skipif",
    "pytest.mark.xfail",
}


def uses(module: Path, names: set[str]) -> Iterator[str]:
    """Where the module names one of these dotted things, imported under their own names or not."""
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Attribute) and dotted(node) in names:
            yield f"{module}:{node.lineno} {dotted(node)}"
        elif isinstance(node, ast.ImportFrom):
            found = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (f"{module}:{node.lineno} {name}" for name in found if name in names)


def test_time_comes_from_the_clock() -> None:
    """A virtual clock can drive the whole server only if nothing waits or looks at the time past it."""
    checked = [m for m in modules() if m != CLOCK and str(m) not in MAY_TELL_TIME]
    assert [use for module in checked for use in uses(module, OUTSIDE_CLOCK)] == []


def test_tests_wait_for_signals() -> None:
    """A test that sleeps is slow on a good day and wrong on a bad one. Workflow and activity code may: it is the input."""
    wrong = [
        f"{module}:{node.lineno}"
        for module in modules("tests")
        for node in outside_sdk_code(tree(module))
        if isinstance(node, ast.Call) and dotted(node.func) in {"asyncio.sleep", "time.sleep"}
    ]
    assert wrong == []


def outside_sdk_code(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, save definitions that an SDK's decorator makes a workflow or an activity."""
    for decorator in getattr(node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if dotted(called).partition(".")[0] in {"workflow", "activity"}:
            return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from outside_sdk_code(child)


def test_sql_lives_in_stores() -> None:
    """Each statement has one home, where the same suite runs it on both databases."""
    wrong = [
        f"{module}:{line} {text.strip()[:60]!r}"
        for module in modules()
        if not is_store(module) and str(module) not in MAY_HOLD_SQL
        for line, text in texts(module)
        if SQL.match(text)
    ]
    assert wrong == []


def is_store(module: Path) -> bool:
    in_folder = {"store", "stores", "migrations"} & set(module.parts) or module.is_relative_to("common/database")
    return bool(in_folder) or module.name.startswith(("store", "sql"))


def test_files_are_short() -> None:
    """Nine files in ten have at most 400 lines; one beyond 500 is about to become the place where everything lives."""
    lengths = {
        str(m): len((PROJECT / m).read_text(encoding="utf-8").splitlines()) for m in modules() + modules("tests")
    }
    long = {name for name, length in lengths.items() if length > LONGEST_FILE}
    assert long - MAY_BE_LONG.keys() == set()
    assert MAY_BE_LONG.keys() - long == set(), "no longer long: take it off the list"


def test_functions_are_short() -> None:
    wrong = [
        f"{module}:{node.lineno} {node.name}"
        for module in modules()
        for node in ast.walk(tree(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= LONGEST_FUNCTION
    ]
    assert wrong == []


@pytest.mark.parametrize("names", [MAY_TELL_TIME, MAY_HOLD_SQL, MAY_BE_LONG])
def test_exceptions_name_modules_that_exist(names: dict[str, str]) -> None:
    assert [name for name in names if not (PROJECT / name).is_file()] == []


def test_no_test_is_skipped() -> None:
    """What a test needs is installed by `make test` or started by the test; a skipped test proves nothing."""
    assert [use for module in modules("tests") for use in uses(module, SKIPS)] == []


def test_hot_path_uses_the_compiled_codec() -> None:
    """`json_format` costs far too much on the hot path; the codec of `common` is proven equal to it."""
    name = "google.protobuf.json_format"
    wrong = [f"{m}:{line}" for m in modules() for line, found in imported(m) if found == name]
    assert wrong == []
