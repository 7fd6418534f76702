"""The project's own source as these tests see it: files, syntax trees, and which folder a module belongs to."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
LEVELS = {
    "common": 0,
    "history": 1,
    "matching": 1,
    "visibility": 1,
    "frontend": 2,
    "worker": 2,
    "tinytemporal_site": 3,
}


@cache
def modules(*folders: str) -> tuple[Path, ...]:
    """Every Python file under these folders (all of the product's when none is named), relative to the project."""
    found = (file for folder in folders or LEVELS for file in (PROJECT / folder).rglob("*.py"))
    return tuple(sorted(file.relative_to(PROJECT) for file in found))


@cache
def tree(module: Path) -> ast.Module:
    return ast.parse((PROJECT / module).read_text(encoding="utf-8"), filename=str(module))


def imported(module: Path) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything that the module imports, wherever in it, relative imports resolved."""
    package = module.parent.parts
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            yield node.lineno, ".".join([*base, *([node.module] if node.module else [])])


def texts(module: Path) -> Iterator[tuple[int, str]]:
    """Line and value of every string in the module that is not a docstring; of f-strings, their constant parts."""
    documentation = {id(node) for node in _docstrings(tree(module))}
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def _docstrings(root: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(root):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def dotted(node: ast.expr) -> str:
    """`a.b.c` for such an expression, else the empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""
