"""A run in memory, and how a transition changes it.

`ExecutionState` is the committed state of one run. A transition never touches it: it works on a `Draft`, a copy-on-write
view that records what changed. Drafts stack (a draft's base is a state or another draft), so several transitions of one
run can go into one commit. After the commit the drafts are adopted into the state; after a failure they are dropped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct, field
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.update.v1 import Outcome
from temporalio.api.update.v1 import Request as UpdateRequest

from common.errors import TemporalError
from common.records import Record
from history.records import (
    ActivityExecution,
    ActivityItem,
    BufferedEvent,
    CallbackItem,
    ChildItem,
    ExecutionInfo,
    ExternalCancelItem,
    ExternalSignalItem,
    NexusOperationItem,
    OperationExecution,
    RequestIdItem,
    TimerItem,
    TimerTask,
    TransferTask,
    UpdateItem,
    VisibilityIntent,
    WorkflowTask,
)

if TYPE_CHECKING:
    from history.workspace import Workspace

K = TypeVar("K", str, int)
V = TypeVar("V")

_DELETED: Any = object()


class ItemMap(Generic[K, V]):
    """A mapping over a base mapping; `changed` holds what was set, or `deleted()` markers. Iteration keeps the base's
    order, then the order of additions."""

    __slots__ = ("_size", "base", "changed")

    def __init__(self, base: Mapping[K, V] | ItemMap[K, V]) -> None:
        self.base: Mapping[K, V] | ItemMap[K, V] = base
        self.changed: dict[K, V] = {}
        self._size: int | None = None
        """How many items there are, once somebody asked; a change then keeps it right."""

    def get(self, key: K) -> V | None:
        value = self.changed.get(key)
        if value is None:
            return self.base.get(key)
        return value if value is not _DELETED else None

    def __getitem__(self, key: K) -> V:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: K, value: V) -> None:
        if self._size is not None and key not in self:
            self._size += 1
        self.changed[key] = value

    def __delitem__(self, key: K) -> None:
        if self.pop(key) is None:
            raise KeyError(key)

    def pop(self, key: K) -> V | None:
        value = self.get(key)
        if value is not None:
            self.changed[key] = _DELETED
            if self._size is not None:
                self._size -= 1
        return value

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[K, V]]:
        changed = self.changed
        for key, value in self.base.items():
            value = changed.get(key, value)
            if value is not _DELETED:
                yield key, value
        for key, value in changed.items():
            if value is not _DELETED and key not in self.base:
                yield key, value

    def values(self) -> Iterator[V]:
        return (value for _, value in self.items())

    def __len__(self) -> int:
        if self._size is None:
            size = len(self.base)
            for key, value in self.changed.items():
                size += (value is not _DELETED) - (key in self.base)
            self._size = size
        return self._size

    def __bool__(self) -> bool:
        return len(self) > 0

    def adopt_into(self, target: dict[K, V]) -> None:
        """Write the changes into the bottom dictionary, after the commit."""
        for key, value in self.changed.items():
            if value is _DELETED:
                target.pop(key, None)
            else:
                target[key] = value


def is_deleted(value: object) -> bool:
    """Whether a value of `ItemMap.changed` marks a deletion."""
    return value is _DELETED


class UpdateTicket:
    """Where the callers of an admitted update find how it ended when that leaves no trace in the state: rejected, or given
    up. Set after a commit only."""

    __slots__ = ("outcome", "error")

    def __init__(self) -> None:
        self.outcome: Outcome | None = None
        self.error: TemporalError | None = None


class AdmittedUpdate(Struct, kw_only=True):
    """An update that waits for the worker's answer; in memory only, its client sends it again after a crash. Once it is
    accepted it is in `updates` instead."""

    request: UpdateRequest | None
    """None for one whose admission is an event of the history, where the worker finds it."""
    protocol_instance_id: str
    sent: bool = False
    """Whether it went out with a started workflow task."""
    more: tuple[UpdateRequest, ...] = ()
    """Later requests with callbacks of their own, which are attached once it is accepted."""
    ticket: UpdateTicket = field(default_factory=UpdateTicket)


PERSISTED: dict[str, tuple[str, type[Record], type]] = {
    "activities": ("activity", ActivityItem, int),
    "timers": ("timer", TimerItem, str),
    "children": ("child", ChildItem, int),
    "external_signals": ("externalSignal", ExternalSignalItem, int),
    "external_cancels": ("externalCancel", ExternalCancelItem, int),
    "updates": ("update", UpdateItem, str),
    "buffered": ("bufferedEvent", BufferedEvent, int),
    "request_ids": ("requestId", RequestIdItem, str),
    "callbacks": ("callback", CallbackItem, int),
    "nexus_operations": ("nexusOperation", NexusOperationItem, int),
    "activity_executions": ("activityExecution", ActivityExecution, str),
    "operation_executions": ("operationExecution", OperationExecution, str),
}
"""Attribute of the state → `kind` in `pending_items`, its record, and the type of its key."""

MAPS = (*PERSISTED, "activity_ids", "admitted")
_MAP_NAMES = frozenset(MAPS)


class ExecutionState(Struct, kw_only=True):
    """The committed state of one run. Never change it directly."""

    info: ExecutionInfo
    activities: dict[int, ActivityItem] = field(default_factory=dict)
    timers: dict[str, TimerItem] = field(default_factory=dict)
    children: dict[int, ChildItem] = field(default_factory=dict)
    external_signals: dict[int, ExternalSignalItem] = field(default_factory=dict)
    external_cancels: dict[int, ExternalCancelItem] = field(default_factory=dict)
    updates: dict[str, UpdateItem] = field(default_factory=dict)
    buffered: dict[int, BufferedEvent] = field(default_factory=dict)
    request_ids: dict[str, RequestIdItem] = field(default_factory=dict)
    callbacks: dict[int, CallbackItem] = field(default_factory=dict)
    nexus_operations: dict[int, NexusOperationItem] = field(default_factory=dict)
    activity_executions: dict[str, ActivityExecution] = field(default_factory=dict)
    operation_executions: dict[str, OperationExecution] = field(default_factory=dict)
    """Of an activity without a workflow: one, its key empty."""

    # derived or in memory only
    activity_ids: dict[str, int] = field(default_factory=dict)
    """Activity id → scheduled event id."""
    admitted: dict[str, AdmittedUpdate] = field(default_factory=dict)
    """Updates in flight, by update id; those with an accepted event are in `updates` too."""
    speculative_task: WorkflowTask | None = None
    """A workflow task made only to deliver updates; nothing of it is stored until it turns out to matter."""


class Draft:
    """One run while a transition changes it. Assign to `info`'s fields and set or delete items; records in the maps
    are shared with the committed state, so put a changed copy (`msgspec.structs.replace`), never alter one in place.

    Everything a commit needs is collected here: `events` (new, with their ids), changed items, tasks and intents.
    """

    __slots__ = (
        *MAPS, "base", "info", "speculative_task", "work", "events", "transfer_tasks", "timer_tasks",
        "deleted_timer_tasks", "deleted_transfer_tasks", "visibility", "deleted", "is_new", "info_changed", "is_stored",
        "_event_source", "_opened",
    )  # fmt: skip

    info: ExecutionInfo
    speculative_task: WorkflowTask | None
    activities: ItemMap[int, ActivityItem]
    timers: ItemMap[str, TimerItem]
    children: ItemMap[int, ChildItem]
    external_signals: ItemMap[int, ExternalSignalItem]
    external_cancels: ItemMap[int, ExternalCancelItem]
    updates: ItemMap[str, UpdateItem]
    buffered: ItemMap[int, BufferedEvent]
    request_ids: ItemMap[str, RequestIdItem]
    callbacks: ItemMap[int, CallbackItem]
    nexus_operations: ItemMap[int, NexusOperationItem]
    activity_executions: ItemMap[str, ActivityExecution]
    operation_executions: ItemMap[str, OperationExecution]
    activity_ids: ItemMap[str, int]
    admitted: ItemMap[str, AdmittedUpdate]

    def __init__(
        self,
        *,
        base: ExecutionState | Draft,
        work: Workspace,
        is_new: bool = False,
        event_source: Callable[[int], HistoryEvent] | None = None,
    ) -> None:
        self.base = base
        self.work = work
        self.is_new = is_new
        self.info_changed = self.is_stored = False
        """Whether the commit has to write the run's row, and anything at all; settled by `seal`."""
        self.info = copy.copy(base.info)
        self.speculative_task = base.speculative_task
        self._opened: dict[str, ItemMap[Any, Any]] = {}
        """The maps that were asked for so far: most transitions touch few of them."""
        self.events: list[HistoryEvent] = []
        self.transfer_tasks: list[TransferTask] = []
        self.timer_tasks: list[TimerTask] = []
        self.deleted_timer_tasks: list[int] = []
        self.deleted_transfer_tasks: list[int] = []
        self.visibility: VisibilityIntent | None = None
        self.deleted = False
        """Set by a transition that removes the run and all its rows."""
        self._event_source = event_source

    def __getattr__(self, name: str) -> Any:
        """A map that is used for the first time."""
        if name not in _MAP_NAMES:
            raise AttributeError(name)
        opened: ItemMap[Any, Any] = ItemMap(getattr(self.base, name))
        setattr(self, name, opened)
        self._opened[name] = opened
        return opened

    @property
    def workflow_task(self) -> WorkflowTask | None:
        """The pending workflow task, speculative or not."""
        return self.speculative_task or self.info.workflow_task

    def event(self, event_id: int) -> HistoryEvent:
        """An event of this run, committed or new. When it is not in memory the engine loads it and runs the transition
        again (see `history.workspace.EventsMissing`), so call this before anything that is costly."""
        for event in self.events:
            if event.event_id == event_id:
                return event
        if isinstance(self.base, Draft):
            return self.base.event(event_id)
        assert self._event_source is not None, "a new run's events are all in the draft"
        return self._event_source(event_id)

    def changed_items(self) -> Iterator[tuple[str, str, Record | None]]:
        """(kind, key, record or None for deleted) of each persisted item this draft changed."""
        for name, opened in self._opened.items():
            if opened.changed and name in PERSISTED:
                kind = PERSISTED[name][0]
                for key, value in opened.changed.items():
                    yield kind, str(key), None if value is _DELETED else value

    def seal(self) -> bool:
        """The transition is over: settle `info_changed` and `is_stored`. Returns whether it left anything to keep, stored
        or in memory only."""
        self.info_changed = self.is_new or self.info != self.base.info
        self.is_stored = (
            self.info_changed
            or self.deleted
            or bool(self.events or self.transfer_tasks or self.timer_tasks or self.visibility)
            or bool(self.deleted_timer_tasks or self.deleted_transfer_tasks)
            or next(self.changed_items(), None) is not None
        )
        return (
            self.is_stored
            or self.speculative_task is not self.base.speculative_task
            or ("admitted" in self._opened and bool(self.admitted.changed))
        )

    def adopt_into(self, state: ExecutionState) -> None:
        """After the commit: make `state` what this draft says."""
        state.info = self.info
        state.speculative_task = self.speculative_task
        for name, opened in self._opened.items():
            if opened.changed:
                opened.adopt_into(getattr(state, name))
