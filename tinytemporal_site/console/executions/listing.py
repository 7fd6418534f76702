"""A page of the list: read from the read model as ListWorkflowExecutions reads it, key-set pages and all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.clock import RealClock
from common.errors import InvalidArgument
from common.protos import from_timestamp
from history.models import Namespace
from tinytemporal_site.console.executions.reading import PageDatabase, finished
from tinytemporal_site.console.executions.search import Form, query_of
from visibility.router import alias
from visibility.statuses import STATUS_NAME
from visibility.store import open_visibility_store

PAGE = 50
MOST_NAMESPACES = 100


class Row(Struct, frozen=True, kw_only=True):
    run_id: str
    workflow_id: str
    workflow_type: str
    status: str
    task_queue: str
    started_at: datetime
    closed_at: datetime | None
    length: timedelta | None
    events: int


class Page(Struct, frozen=True, kw_only=True):
    rows: list[Row]
    following: str
    """Where the next page begins; empty: there is none."""
    query: str
    """What was asked, in the filter language."""
    errors: dict[str, str]


def list_page(form: Form) -> Page:
    custom = custom_attributes(form.namespace)
    asked = query_of(form, custom)
    if asked.errors:
        return Page(rows=[], following="", query="", errors=asked.errors)
    store = open_visibility_store(PageDatabase(alias()))
    try:
        page = finished(
            store.list_workflow_executions(
                namespace=form.namespace,
                query=asked.query,
                page_size=PAGE,
                next_page_token=form.after.encode(),
                custom_attributes=custom,
                archetype=form.archetype,
            )
        )
    except InvalidArgument as error:
        return Page(rows=[], following="", query=asked.query, errors={"filter": error.message})
    rows = [_row(info) for info in page.executions]
    return Page(rows=rows, following=page.next_page_token.decode(), query=asked.query, errors={})


def _row(info: WorkflowExecutionInfo) -> Row:
    is_closed = info.HasField("close_time")
    started_at = from_timestamp(info.start_time)
    closed_at = from_timestamp(info.close_time) if is_closed else None
    return Row(
        run_id=info.execution.run_id,
        workflow_id=info.execution.workflow_id,
        workflow_type=info.type.name,
        status=STATUS_NAME[info.status],
        task_queue=info.task_queue,
        started_at=started_at,
        closed_at=closed_at,
        length=(closed_at or RealClock().now()) - started_at,
        events=info.history_length,
    )


def custom_attributes(namespace: str) -> dict[str, str]:
    """Of a namespace, name → type name; of an unknown one none."""
    if "\0" in namespace:
        return {}
    found: Any = Namespace.objects.filter(name=namespace).values_list("data", flat=True)[:1]
    for data in found:
        attributes = data.get("searchAttributes") if isinstance(data, dict) else None
        return dict(attributes) if isinstance(attributes, dict) else {}
    return {}


def namespace_names() -> list[str]:
    return list(Namespace.objects.order_by("name").values_list("name", flat=True)[:MOST_NAMESPACES])
