"""What the frontend, History and the admin ask of schedules, and the record of one.

Upstream runs a schedule as a workflow of its own; here it is a row that the worker role acts on. Every change of it, whoever
makes it, is a compare-and-set of the row's version.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, Protocol

from msgspec import Struct, field
from temporalio.api.common.v1 import Memo, Payload, Payloads
from temporalio.api.enums.v1 import ScheduleOverlapPolicy, WorkflowExecutionStatus
from temporalio.api.failure.v1 import Failure
from temporalio.api.schedule.v1 import BackfillRequest, Schedule, ScheduleActionResult
from temporalio.api.workflowservice import v1 as ws

from common.records import Record

CALLBACK_URL = "temporal://schedules"
"""Where the completion callbacks of runs go that schedules started: not out of the server, but to `run_closed`."""


class BufferedStart(Record, kw_only=True):
    """An action that is due. `number` counts the schedule's actions: with it go the ids that make its start happen once."""

    number: int
    nominal_at: datetime
    actual_at: datetime
    """The nominal time with its jitter."""
    overlap_policy: ScheduleOverlapPolicy.ValueType = ScheduleOverlapPolicy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED
    """Unspecified: the schedule's."""
    manual: bool = False
    """Asked for by a trigger or a backfill."""


class RunEnd(Record, kw_only=True):
    """How the chain of a started run ended."""

    status: WorkflowExecutionStatus.ValueType
    result: Payloads | None = None
    failure: Failure | None = None


class Starting(Record, kw_only=True):
    """A start that was decided on, and not yet known to have happened."""

    start: BufferedStart
    workflow_id: str
    tracked: bool
    """Whether the schedule waits for its end: not with the policy that allows all."""
    give_up_at: datetime
    attempt: int = 0
    ended: RunEnd | None = None
    """It happened, and has ended already."""


class RunningRun(Record, kw_only=True):
    number: int
    workflow_id: str
    run_id: str
    """The first of its chain."""
    asked: Literal["", "cancel", "terminate"] = ""
    """What was decided to ask of it."""
    is_asked: bool = False
    """Whether it was asked."""


class ScheduleRecord(Record, kw_only=True):
    """A schedule, as its row holds it."""

    namespace: str
    schedule_id: str
    incarnation: str
    """Drawn at its creation: tells it from an earlier schedule of the same id."""
    seed: str
    """Of its jitter, as upstream's: the namespace's id and its own."""
    schedule: Schedule
    """The spec is canonical."""
    memo: Memo | None = None
    search_attributes: dict[str, Payload] = field(default_factory=dict)
    """Its own, typed in their metadata."""
    conflict_token: int = 1
    created_at: datetime
    updated_at: datetime | None = None
    request_ids: list[str] = field(default_factory=list)
    """Of the newest changes."""

    processed_until: datetime
    """Every slot up to then was seen to."""
    drawn: int = 0
    """The number of the last action."""
    buffer: list[BufferedStart] = field(default_factory=list)
    starting: list[Starting] = field(default_factory=list)
    running: list[RunningRun] = field(default_factory=list)
    backfills: list[BackfillRequest] = field(default_factory=list)
    next_backfill_at: datetime | None = None
    retry_at: datetime | None = None
    """When to try again what History refused for the moment."""
    last_result: Payloads | None = None
    last_failure: Failure | None = None

    recent_actions: list[ScheduleActionResult] = field(default_factory=list)
    action_count: int = 0
    missed_catchup_window: int = 0
    overlap_skipped: int = 0
    buffer_dropped: int = 0

    next_at: datetime | None = None
    """When the worker role has something to do next; None while only a change can give it some."""


class RunClosed(Struct, kw_only=True):
    """The end of a chain that a schedule started."""

    namespace: str
    schedule_id: str
    incarnation: str
    number: int
    end: RunEnd


class ListedSchedules(Struct, kw_only=True):
    schedules: list[ScheduleRecord]
    next_page_token: bytes


class ScheduleClient(Protocol):
    """Unknown schedules raise NotFound; whatever is wrong with a request raises INVALID_ARGUMENT in upstream's words."""

    def canonicalize(self, schedule: Schedule) -> None:
        """The spec's canonical form, in place."""
        ...

    async def create(self, request: ws.CreateScheduleRequest, *, namespace_id: str) -> ScheduleRecord:
        """Durable when this returns. Raises WorkflowExecutionAlreadyStarted for an id that is taken; a repeated request
        gives the same schedule."""
        ...

    async def describe(self, *, namespace: str, schedule_id: str) -> ws.DescribeScheduleResponse: ...

    async def update(self, request: ws.UpdateScheduleRequest) -> None:
        """Raises FailedPrecondition for a token that is not the schedule's any more."""
        ...

    async def patch(self, request: ws.PatchScheduleRequest) -> None: ...

    async def delete(self, *, namespace: str, schedule_id: str) -> None: ...

    async def matching_times(
        self, request: ws.ListScheduleMatchingTimesRequest
    ) -> ws.ListScheduleMatchingTimesResponse: ...

    async def list_schedules(
        self, request: ws.ListSchedulesRequest, *, custom_attributes: Mapping[str, str]
    ) -> ws.ListSchedulesResponse:
        """The newest first. `custom_attributes`: the namespace's own search attributes, name → type name."""
        ...

    async def count(self, *, namespace: str, query: str, custom_attributes: Mapping[str, str]) -> int: ...

    async def delete_all(self, *, namespace: str) -> None:
        """The namespace is deleted."""
        ...

    async def run_closed(self, closed: RunClosed) -> None:
        """Durable when this returns; nothing for a schedule that is gone. Repeating it changes nothing more."""
        ...
