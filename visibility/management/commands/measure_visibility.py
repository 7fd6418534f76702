"""`manage.py measure_visibility`: the tables of README.md over the sample runs: each kind of query, its first and its hundredth
page; and counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from common.clock import RealClock
from common.contracts.visibility import CountResult
from common.database import open_database
from visibility.router import alias
from visibility.sample import CUSTOM, NAMESPACE
from visibility.store import SqlVisibilityStore, open_visibility_store

PAGE = 100
PAGES = 100
TIMES = 5
_INDEX = re.compile(r"visibility_\w+")
_BY_ATTRIBUTE = re.compile(r"visibility_by_\w+")

QUERIES = [
    "",
    "WorkflowId = 'order-1234'",
    "WorkflowId IN ('order-12', 'order-1234')",
    "WorkflowId STARTS_WITH 'order-123'",
    "WorkflowType = 'Type-0'",
    "WorkflowType = 'Type-49'",
    "WorkflowType != 'Type-0'",
    "WorkflowType IN ('Type-3', 'Type-30')",
    "TaskQueue = 'queue-19'",
    "RunId = 'none'",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus = 'Completed'",
    "ExecutionStatus = 'Failed'",
    "ExecutionStatus = 'TimedOut'",
    "ExecutionStatus != 'Completed'",
    "ExecutionStatus IN ('Failed', 'TimedOut')",
    "StartTime > '2026-01-01T06:00:00Z'",
    "StartTime BETWEEN '2026-01-01T06:00:00Z' AND '2026-01-01T06:30:00Z'",
    "StartTime < '2026-01-01T00:10:00Z'",
    "ExecutionTime < '2026-01-01T00:10:00Z'",
    "CloseTime > '2026-01-01T06:00:00Z'",
    "CloseTime BETWEEN '2026-01-01T06:00:00Z' AND '2026-01-01T06:30:00Z'",
    "CloseTime IS NULL",
    "CloseTime IS NOT NULL",
    "HistoryLength > 200",
    "HistorySizeBytes > 40000",
    "StateTransitionCount > 100",
    "ExecutionDuration > '2h'",
    "ExecutionDuration < '100ms'",
    "ParentWorkflowId = 'order-1234'",
    "ParentRunId = 'parent-of-1234'",
    "ParentWorkflowId IS NULL",
    "RootWorkflowId = 'order-1234'",
    "RootRunId = 'root-of-1234'",
    "BuildIds = 'versioned:3'",
    "TemporalScheduledById = 'schedule-7'",
    "TemporalChangeVersion = 'change-3'",
    "SampleKeyword = 'customer-7'",
    "SampleKeyword IN ('customer-7', 'customer-8')",
    "SampleKeyword STARTS_WITH 'customer-99'",
    "SampleKeyword IS NULL",
    "SampleKeyword IS NOT NULL",
    "SampleInt = 4711",
    "SampleInt BETWEEN 4700 AND 4800",
    "SampleDouble > 999.5",
    "SampleBool = true",
    "SampleDatetime < '2026-01-08T00:10:00Z'",
    "SampleText = 'word7'",
    "SampleText = 'word7-word8'",
    "SampleKeywordList = 'tag-7'",
    "SampleKeywordList IN ('tag-7', 'tag-8')",
    "NOT SampleKeywordList = 'tag-7'",
    "WorkflowType = 'Type-7' AND ExecutionStatus = 'Running'",
    "WorkflowType = 'Type-7' AND StartTime > '2026-01-01T06:00:00Z'",
    "ExecutionStatus = 'Running' AND SampleKeyword = 'customer-7'",
    "SampleKeyword = 'customer-7' OR SampleKeywordList = 'tag-7'",
    "NOT (WorkflowType = 'Type-0' OR ExecutionStatus = 'Completed')",
]

COUNTS = [
    "",
    "GROUP BY ExecutionStatus",
    "WorkflowType = 'Type-0'",
    "WorkflowType = 'Type-0' GROUP BY ExecutionStatus",
    "WorkflowType != 'Type-0'",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus != 'Completed'",
    "ExecutionStatus IN ('Failed', 'TimedOut')",
    "CloseTime IS NOT NULL",
    "WorkflowId STARTS_WITH 'order-123'",
    "TaskQueue = 'queue-19'",
    "TaskQueue = 'queue-0'",
    "StartTime > '2026-01-01T06:00:00Z'",
    "StartTime BETWEEN '2026-01-01T06:00:00Z' AND '2026-01-01T06:30:00Z'",
    "CloseTime > '2026-01-01T06:00:00Z'",
    "ExecutionStatus = 'Completed' AND StartTime > '2026-01-02T00:00:00Z'",
    "WorkflowType = 'Type-7' AND StartTime > '2026-01-01T06:00:00Z'",
    "ExecutionDuration > '1h'",
    "ParentWorkflowId IS NULL",
    "BuildIds = 'versioned:3'",
    "TemporalScheduledById = 'schedule-7'",
    "SampleKeyword = 'customer-7'",
    "SampleKeyword IS NOT NULL",
    "SampleInt BETWEEN 4700 AND 4800",
    "SampleBool = true",
    "SampleText = 'word7'",
    "SampleKeywordList IN ('tag-7', 'tag-8')",
    "ExecutionStatus = 'Running' AND SampleKeyword = 'customer-7'",
]


class Command(BaseCommand):
    help = "Prints how long each kind of query takes over the runs that generate_visibility made, as a table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--limit-ms", type=float, help="fail when a page's median is above this")

    def handle(self, *args: Any, **options: Any) -> None:
        slow = asyncio.run(self._measure(options["limit_ms"]))
        if slow:
            raise CommandError(f"slower than {options['limit_ms']} ms: {slow}")

    async def _measure(self, limit_ms: float | None) -> list[str]:
        database = open_database(alias())
        await database.start()
        slow = []
        try:
            store = open_visibility_store(database)
            runs = (
                await store.count_workflow_executions(namespace=NAMESPACE, query="", custom_attributes=CUSTOM)
            ).count
            self.stdout.write(f"{database.dialect}, {runs:,} runs; pages of {PAGE}; medians of {TIMES} in ms\n")
            self.stdout.write("| query | first page | later page | which | index |")
            self.stdout.write("| --- | ---: | ---: | ---: | --- |")
            for query in QUERIES:
                row, worst = await _row(store, query)
                self.stdout.write(row)
                if limit_ms is not None and worst > limit_ms:
                    slow.append(query)
            self.stdout.write("\n| count | found | ms |")
            self.stdout.write("| --- | ---: | ---: |")
            for query in COUNTS:
                found = (await _count(store, query)).count
                took_ms = await _median(partial(_count, store, query))
                self.stdout.write(f"| {_shown(query)} | {found:,} | {took_ms:.1f} |")
        finally:
            await database.stop()
        return slow


async def _row(store: SqlVisibilityStore, query: str) -> tuple[str, float]:
    first = await _median(lambda: _page(store, query, b""))
    token, number = await _walk(store, query)
    later = await _median(lambda: _page(store, query, token))
    plan = "\n".join(await store.plan(namespace=NAMESPACE, query=query, page_size=PAGE, custom_attributes=CUSTOM))
    indexes = sorted({_BY_ATTRIBUTE.sub("of the attribute", name) for name in _INDEX.findall(plan)})
    scanned = ", ".join(indexes) or "none"
    return f"| {_shown(query)} | {first:.1f} | {later:.1f} | {number} | {scanned} |", max(first, later)


async def _walk(store: SqlVisibilityStore, query: str) -> tuple[bytes, int]:
    """The token of the hundredth page, or of the last one before it."""
    token, number = b"", 1
    while number < PAGES:
        following = await _page(store, query, token)
        if not following:
            break
        token, number = following, number + 1
    return token, number


async def _page(store: SqlVisibilityStore, query: str, token: bytes) -> bytes:
    page = await store.list_workflow_executions(
        namespace=NAMESPACE, query=query, page_size=PAGE, next_page_token=token, custom_attributes=CUSTOM
    )
    return page.next_page_token


async def _count(store: SqlVisibilityStore, query: str) -> CountResult:
    return await store.count_workflow_executions(namespace=NAMESPACE, query=query, custom_attributes=CUSTOM)


def _shown(query: str) -> str:
    return f"`{query}`" if query else "(all)"


async def _median(call: Callable[[], Awaitable[object]]) -> float:
    clock = RealClock()
    took = []
    for _ in range(TIMES):
        begun = clock.monotonic()
        await call()
        took.append(clock.monotonic() - begun)
    return median(took) * 1_000
