"""What a schedule's record says of itself, and of its next times.

Source of the rules and their numbers: CurrentTweakablePolicies and the functions around it in upstream's
service/worker/scheduler/workflow.go.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy
from temporalio.api.schedule.v1 import Schedule

from common.contracts.schedules import ScheduleRecord
from common.protos import duration, from_duration
from worker.schedules.policies import SKIP
from worker.schedules.spec import CompiledSpec, Slot, TooManyExcluded

DEFAULT_CATCHUP = timedelta(days=365)
SHORTEST_CATCHUP = timedelta(seconds=10)
KEPT_AFTER_END = timedelta(days=7)
"""How long a schedule is kept that has nothing more to do."""
MOST_BUFFERED = 1_000
ACTIONS_SHOWN = 10
SECOND = timedelta(seconds=1)


def set_defaults(schedule: Schedule) -> None:
    """What is not given, written out, so that it shows."""
    policies = schedule.policies
    policies.overlap_policy = policies.overlap_policy or SKIP
    given = from_duration(policies.catchup_window) if policies.HasField("catchup_window") else DEFAULT_CATCHUP
    policies.catchup_window.CopyFrom(duration(max(given, SHORTEST_CATCHUP)))
    for part in ("spec", "action", "state"):
        getattr(schedule, part).SetInParent()


def compiled(record: ScheduleRecord) -> CompiledSpec:
    return CompiledSpec(record.schedule.spec, seed=record.seed)


def next_slot(spec: CompiledSpec, after: datetime) -> Slot | None:
    """None also when too many in a row are excluded."""
    try:
        return spec.next(after)
    except TooManyExcluded:
        return None


def overlap_policy(record: ScheduleRecord, policy: Policy.ValueType) -> Policy.ValueType:
    return policy or record.schedule.policies.overlap_policy or SKIP


def catchup_window(record: ScheduleRecord) -> timedelta:
    return from_duration(record.schedule.policies.catchup_window)


def takes_actions(record: ScheduleRecord) -> bool:
    """Whether slots lead to actions: neither paused nor without actions left."""
    state = record.schedule.state
    return not state.paused and (not state.limited_actions or state.remaining_actions > 0)


def is_busy(record: ScheduleRecord) -> bool:
    """Whether an action that does not allow others beside it is under way."""
    return bool(record.running) or any(start.tracked for start in record.starting)


def future_times(record: ScheduleRecord, *, now: datetime, limit: int) -> list[datetime]:
    """With their jitter, in order. A paused schedule has some as well: those that it would have."""
    state = record.schedule.state
    if state.limited_actions:
        limit = min(limit, int(state.remaining_actions))
    after = record.processed_until if takes_actions(record) else now
    spec = compiled(record)
    found: list[datetime] = []
    while len(found) < limit and (slot := next_slot(spec, after)) is not None:
        after = slot.actual
        if record.updated_at is None or after >= record.updated_at:
            found.append(after)
    return found


def expires_at(record: ScheduleRecord, *, wake_at: datetime | None) -> datetime | None:
    """When a schedule is removed that has nothing more to do; None while it has. `wake_at`: its next slot's time."""
    has_slots = wake_at is not None and takes_actions(record)
    if record.schedule.state.paused or has_slots or record.backfills or record.buffer:
        return None
    if record.running or record.starting:
        return None
    last = max(record.created_at, record.updated_at or record.created_at)
    if record.recent_actions:
        last = max(last, record.recent_actions[-1].actual_time.ToDatetime(tzinfo=last.tzinfo))
    return last + KEPT_AFTER_END
