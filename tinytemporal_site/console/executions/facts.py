"""A run in facts: its summary, how far it is from its limits, and the runs around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from msgspec import Struct
from temporalio.api.enums.v1 import ContinueAsNewInitiator

from history.config import HistoryConfig
from history.records import ExecutionInfo
from tinytemporal_site.console.executions.rows import Items

_INITIATORS = {
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_WORKFLOW: "continued as new by its workflow",
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_RETRY: "a retry",
    ContinueAsNewInitiator.CONTINUE_AS_NEW_INITIATOR_CRON_SCHEDULE: "the next run of a cron schedule",
}
_NEAR = 0.8
"""Of a limit: from here on it is worth a look."""


class Limit(Struct, frozen=True, kw_only=True):
    name: str
    value: int
    most: int
    high: int
    """From here on it is shown as near."""
    note: str = ""

    @property
    def share(self) -> int:
        """In hundredths."""
        return round(100 * self.value / self.most)

    @property
    def left(self) -> int:
        return max(0, self.most - self.value)

    @property
    def is_near(self) -> bool:
        return self.value >= self.high


def limits(info: ExecutionInfo, items: Mapping[str, Items]) -> list[Limit]:
    config = HistoryConfig(suggest_continue_as_new_events=settings.SUGGEST_CONTINUE_AS_NEW_EVENTS)

    def waiting(kind: str) -> int:
        return items[kind].count if kind in items else 0

    suggested = config.suggest_continue_as_new_events
    found = [
        _limit(
            "Events",
            info.next_event_id - 1,
            config.history_events_limit,
            f"continue-as-new is suggested from {suggested:,}",
        ),
        _limit(
            "History bytes",
            info.history_size,
            config.history_bytes_limit,
            f"continue-as-new is suggested from {config.suggest_continue_as_new_bytes:,}",
        ),
        _limit("Pending activities", waiting("activity"), config.pending_activities_limit),
        _limit("Pending children", waiting("child"), config.pending_children_limit),
        _limit("Signals to others", waiting("externalSignal"), config.pending_signals_limit),
        _limit("Cancels of others", waiting("externalCancel"), config.pending_cancels_limit),
        _limit("Signals received", info.signal_count, config.signals_limit),
        _limit("Updates in flight", info.updates_in_flight, config.updates_in_flight_limit),
        _limit("Updates in all", info.update_count, config.updates_total_limit),
        _limit("Buffered events", waiting("bufferedEvent"), config.buffered_events_limit),
        _limit("Completion callbacks", waiting("callback"), config.callbacks_limit),
    ]
    return [limit for limit in found if limit.most > 0]


def _limit(name: str, value: int, most: int, note: str = "") -> Limit:
    return Limit(name=name, value=value, most=most, high=round(most * _NEAR), note=note)


class Relative(Struct, frozen=True, kw_only=True):
    """A run beside this one."""

    relation: str
    workflow_id: str
    run_id: str
    namespace: str
    status: str = ""
    """Empty: not known here."""


def relatives(info: ExecutionInfo, *, current_run_id: str) -> list[Relative]:
    """Its chain, what it was reset from and to, its parent and root; without their statuses."""
    own = (
        (f"Continues, as {_INITIATORS.get(info.initiator, 'a follow-up')}", info.continued_from_run_id),
        ("Followed by", info.continued_to_run_id),
        ("First run of the chain", info.first_run_id),
        ("Reset from", info.original_run_id),
        ("Reset to", info.reset_to_run_id),
        ("Current run of the workflow id", current_run_id),
    )
    found = [
        Relative(relation=relation, workflow_id=info.workflow_id, run_id=run_id, namespace=info.namespace)
        for relation, run_id in own
        if run_id and run_id != info.run_id
    ]
    parent = info.parent
    if parent is not None:
        found.append(
            Relative(
                relation="Parent", workflow_id=parent.workflow_id, run_id=parent.run_id, namespace=parent.namespace
            )
        )
        root = (info.root_workflow_id, info.root_run_id)
        if info.root_run_id and root != (parent.workflow_id, parent.run_id):
            found.append(Relative(relation="Root", workflow_id=root[0], run_id=root[1], namespace=parent.namespace))
    return found


def outcome_of(event_type: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """What a close event says of the end: `payloads` and `failure` in their JSON, `words` for the rest."""
    words = [
        f"{label} {attributes[name]}"
        for name, label in (("reason", "Reason:"), ("identity", "By"), ("newExecutionRunId", "Next run:"))
        if attributes.get(name)
    ]
    if event_type == "WorkflowExecutionContinuedAsNew":
        payloads, label = attributes.get("input"), "Input of the next run"
    elif "details" in attributes:
        payloads, label = attributes["details"], "Details"
    else:
        payloads, label = attributes.get("result"), "Result"
    return {"label": label, "payloads": payloads, "failure": attributes.get("failure"), "words": words}
