"""What History writes to the read model and the frontend asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct, field
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import WorkflowExecutionStatus
from temporalio.api.workflow.v1 import WorkflowExecutionInfo

from common.archetypes import Archetype
from common.records import Record

RUNNING = WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_RUNNING


class VisibilityIntent(Record, kw_only=True):
    """What the read model should show of a run after this transition, whole; a later one replaces an earlier one."""

    task_id: int
    namespace: str
    workflow_id: str
    run_id: str
    delete: bool = False
    workflow_type: str = ""
    task_queue: str = ""
    status: WorkflowExecutionStatus.ValueType = RUNNING
    start_time: datetime | None = None
    execution_time: datetime | None = None
    close_time: datetime | None = None
    history_length: int = 0
    history_size: int = 0
    state_transition_count: int = 0
    parent_workflow_id: str = ""
    parent_run_id: str = ""
    root_workflow_id: str = ""
    root_run_id: str = ""
    search_attributes: dict[str, Payload] = field(default_factory=dict)
    memo: dict[str, Payload] = field(default_factory=dict)


class ListPage(Struct, kw_only=True):
    """One page of executions as the API's WorkflowExecutionInfo messages, and where the next begins ("" at the end)."""

    executions: list[WorkflowExecutionInfo]
    next_page_token: bytes


class CountGroup(Struct, kw_only=True):
    """The values that the group's runs share, one for each attribute of GROUP BY, typed in their metadata."""

    values: list[Payload]
    count: int


class CountResult(Struct, kw_only=True):
    """`groups` is empty without GROUP BY."""

    count: int
    groups: list[CountGroup]


class VisibilityClient(Protocol):
    async def apply(self, intents: Sequence[VisibilityIntent]) -> None:
        """Upsert (or delete) rows from intents; the newest task id of a run wins;
        an intent older than what the row was made from changes nothing."""
        ...

    async def list_workflow_executions(
        self,
        *,
        namespace: str,
        query: str,
        page_size: int,
        next_page_token: bytes,
        custom_attributes: Mapping[str, str],
        archetype: Archetype = "",
    ) -> ListPage:
        """The runs that a filter in upstream's language finds, in upstream's order.

        `custom_attributes` are the namespace's own search attributes, name → type name (Keyword, Int, …). Raises
        InvalidArgument that names what is wrong with the query or the token. A page may be empty and not the last.
        `archetype`: executions of that kind instead, whose id and type the filter calls by their own names.
        """
        ...

    async def count_workflow_executions(
        self, *, namespace: str, query: str, custom_attributes: Mapping[str, str], archetype: Archetype = ""
    ) -> CountResult:
        """How many runs the filter finds, and with GROUP BY how many for each value."""
        ...

    async def index_attributes(self, attributes: Mapping[str, str]) -> None:
        """Make filters on these search attributes (name → type name) fast; idempotent, and lists go on meanwhile.

        To be called after an attribute was added; on a big table it takes its time. Raises Unavailable when the
        database refuses for now: filters work all the same, only slower.
        """
        ...
