"""The recorded answers of the official server, one scenario a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "reference.json"


def read() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return recorded


def write(answers: dict[str, Any]) -> None:
    """One observation a line, so that a new recording shows what has changed."""
    scenarios = []
    for name, notes in sorted(answers.items()):
        lines = [f"  {json.dumps(what)}: {json.dumps(seen, ensure_ascii=False)}" for what, seen in notes.items()]
        scenarios.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    FILE.write_text("{\n" + ",\n".join(scenarios) + "\n}\n", encoding="utf-8")
