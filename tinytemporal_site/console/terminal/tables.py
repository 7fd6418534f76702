"""The facts as tables. Texts from users are shown as they are: nothing in them is markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tinytemporal_site.console.terminal.facts import Facts

_STYLES = {"bad": "bold red", "warn": "yellow", "ok": "green"}
_WIDTH = 120
"""Of what is no terminal, such as a file."""


class Tables:
    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, width=None if out.isatty() else _WIDTH, highlight=False)

    def overview(self, facts: Facts) -> None:
        if not facts["live"]:
            self.say("No running process is reached from here: only the rows are shown.", "yellow")
        for away in facts["away"]:
            self.say(f"away: {away}", "red")
        self._attention(facts["attention"])
        self._table("Executions", ["status", "runs"], facts["executions"].items())
        hour = facts["lastHour"]
        self.say(f"In the last hour {hour['started']} were started and {hour['closed']} ended.")
        self._dicts("Task queues", facts["taskQueues"])
        self._dicts("Shards", facts["shards"])
        self._dicts("Batches that run", facts["batches"])

    def run(self, facts: Facts) -> None:
        plain = {name: value for name, value in facts.items() if not isinstance(value, (list, dict))}
        self._table(facts["workflowId"], ["", ""], [(name, value) for name, value in plain.items() if value])
        events = facts["events"]
        title = f"Events ({len(events)} of {facts['eventsInAll']})"
        shown = [(e["id"], e["time"], e["event"], json.dumps(e["attributes"], ensure_ascii=False)) for e in events]
        self._table(title, ["id", "time", "event", "attributes"], shown)
        waits = [(kind, found["count"], "; ".join(found["unread"])) for kind, found in facts["waitsFor"].items()]
        self._table("Waits for", ["kind", "count", "can't be read"], waits)

    def say(self, text: str, style: str = "") -> None:
        self._console.print(_text(text, style=style))

    def _attention(self, items: Iterable[Facts]) -> None:
        table = Table("count", "what", "worst", title="Attention", title_justify="left")
        for item in items:
            worst = "\n".join([*item["worst"], *([item["note"]] if item["note"] else [])])
            table.add_row(_text(item["count"], style=_STYLES.get(item["level"], "")), _text(item["what"]), _text(worst))
        self._console.print(table)

    def _dicts(self, title: str, rows: Sequence[Facts]) -> None:
        names = list(dict.fromkeys(name for row in rows for name in row))
        self._table(title, names, [[row.get(name, "") for name in names] for row in rows])

    def _table(self, title: str, names: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
        found = [[_text("" if value is None else str(value)) for value in row] for row in rows]
        if not found:
            self.say(f"{title}: none")
            return
        table = Table(*names, title=_text(title), title_justify="left", show_header=any(names))
        for row in found:
            table.add_row(*row)
        self._console.print(table)


def _text(text: str, *, style: str = "") -> Text:
    """No markup, and control characters written out: a terminal would obey them."""
    return Text("".join(one if one.isprintable() or one == "\n" else ascii(one)[1:-1] for one in text), style=style)
