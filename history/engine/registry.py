"""What waits on a run in memory, beside its state: queries that go out with its next workflow task, and callers of updates.

Nothing here is stored: after a crash the callers are gone, or ask again. Transitions do not touch it; API functions do, after
the commit. All of it belongs to the event loop of the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from temporalio.api.query.v1 import WorkflowQuery, WorkflowQueryResult


class Unblocked(Exception):
    """A buffered query need no longer wait for a workflow task: nothing is outstanding, so it may be asked directly."""


class QueryRegistry:
    """Queries that wait for the run's next workflow task, because events that came before them have not been handled."""

    def __init__(self) -> None:
        self._queries: dict[str, WorkflowQuery] = {}
        self._answers: dict[str, asyncio.Future[WorkflowQueryResult]] = {}

    def __len__(self) -> int:
        return len(self._queries)

    def buffer(self, query: WorkflowQuery) -> tuple[str, asyncio.Future[WorkflowQueryResult]]:
        """Let the query wait. The future gives the worker's result, or raises Unblocked. Call `remove` in the end."""
        query_id = str(uuid4())
        answer: asyncio.Future[WorkflowQueryResult] = asyncio.get_running_loop().create_future()
        self._queries[query_id] = query
        self._answers[query_id] = answer
        return query_id, answer

    def remove(self, query_id: str) -> None:
        """Forget a query, answered or not. Idempotent."""
        self._queries.pop(query_id, None)
        answer = self._answers.pop(query_id, None)
        if answer is not None and answer.done() and not answer.cancelled():
            answer.exception()  # seen: else asyncio complains of an answer that came after its caller had left

    def waiting(self) -> dict[str, WorkflowQuery]:
        """The queries to send with a workflow task that is being started: id → query. They stay until answered, so a task
        that fails or times out takes them to its successor."""
        return dict(self._queries)

    def complete(self, results: Mapping[str, WorkflowQueryResult]) -> None:
        """A worker answered; ids that nobody waits for are ignored."""
        for query_id, result in results.items():
            answer = self._answers.get(query_id)
            if answer is not None:
                self._queries.pop(query_id, None)
                if not answer.done():
                    answer.set_result(result)

    def unblock(self) -> None:
        """No workflow task is pending any more: let the rest be asked directly."""
        for query_id in list(self._queries):
            del self._queries[query_id]
            answer = self._answers[query_id]
            if not answer.done():
                answer.set_exception(Unblocked())


class RunRegistry:
    """One run's in-memory callers."""

    def __init__(self) -> None:
        self.queries = QueryRegistry()
        self.update_waiters: dict[str, Any] = {}
        """Update id → those who wait for it."""

    @property
    def is_active(self) -> bool:
        """Whether anybody waits; the run stays in the cache then."""
        return bool(len(self.queries) or self.update_waiters)
