"""Runs for the read model, and what is asked of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import WorkflowExecutionStatus as Status

from common.contracts.visibility import VisibilityIntent
from common.search_attributes import PREDEFINED
from visibility.store import SqlVisibilityStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMESPACE = "default"
CUSTOM = {f"Custom{name}": name for name in ("Text", "Keyword", "Int", "Double", "Bool", "Datetime", "KeywordList")}


def run(
    name: str, *, minute: int = 0, closed: int | None = None, attributes: Mapping[str, Any] | None = None, **more: Any
) -> VisibilityIntent:
    """A run that started at `minute` past noon and closed at `closed`; its workflow id and run id are its name."""
    start = NOON + timedelta(minutes=minute)
    close = None if closed is None else NOON + timedelta(minutes=closed)
    given: dict[str, Any] = {
        "task_id": 1,
        "namespace": NAMESPACE,
        "workflow_id": name,
        "run_id": name,
        "workflow_type": "Order",
        "task_queue": "orders",
        "status": Status.WORKFLOW_EXECUTION_STATUS_COMPLETED if close else Status.WORKFLOW_EXECUTION_STATUS_RUNNING,
        "start_time": start,
        "execution_time": start,
        "close_time": close,
        "search_attributes": {key: typed(key, value) for key, value in (attributes or {}).items()},
    }
    return VisibilityIntent(**{**given, **more})


def typed(name: str, value: Any, custom: Mapping[str, str] = CUSTOM) -> Payload:
    """A search attribute's value as History has it."""
    type_name = PREDEFINED.get(name) or custom[name]
    return Payload(metadata={"encoding": b"json/plain", "type": type_name.encode()}, data=json.dumps(value).encode())


async def listed(
    store: SqlVisibilityStore, query: str = "", *, namespace: str = NAMESPACE, page_size: int = 1_000
) -> list[str]:
    """The run ids that a query finds, in their order."""
    page = await store.list_workflow_executions(
        namespace=namespace, query=query, page_size=page_size, next_page_token=b"", custom_attributes=CUSTOM
    )
    return [info.execution.run_id for info in page.executions]


async def counted(store: SqlVisibilityStore, query: str = "", *, namespace: str = NAMESPACE) -> int:
    answer = await store.count_workflow_executions(namespace=namespace, query=query, custom_attributes=CUSTOM)
    return answer.count


async def grouped(store: SqlVisibilityStore, query: str) -> list[tuple[Payload, int]]:
    answer = await store.count_workflow_executions(namespace=NAMESPACE, query=query, custom_attributes=CUSTOM)
    assert answer.count == sum(group.count for group in answer.groups)
    return [(group.values[0], group.count) for group in answer.groups]
