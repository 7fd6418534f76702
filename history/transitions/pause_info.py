"""How a pending activity is paused, and what a list shows of it: the search attribute TemporalPauseInfo.

    paused(item, *, now, …) -> ActivityItem, unpaused(item) -> ActivityItem
    show_pauses(draft) -> None     call when the run, or one of its activities, was paused or unpaused

Source: upstream's updatePauseInfoSearchAttribute.
"""

from __future__ import annotations

import json
from datetime import datetime

from msgspec.structs import replace
from temporalio.api.common.v1 import Payload

from history.records import ActivityItem
from history.state import Draft
from history.transitions.visibility import record_visibility

ATTRIBUTE = "TemporalPauseInfo"


def paused(
    item: ActivityItem,
    *,
    now: datetime,
    identity: str = "",
    reason: str = "",
    request_id: str = "",
    rule_id: str = "",
) -> ActivityItem:
    """By somebody, or by a rule. What a worker has begun is left to it: the change counts for the next attempt."""
    return replace(
        item,
        paused_at=now,
        pause_identity=identity,
        pause_reason=reason,
        pause_request_id=request_id,
        pause_rule_id=rule_id,
        stamp=item.stamp if item.started_event_id or item.cancel_requested else item.stamp + 1,
    )


def unpaused(item: ActivityItem) -> ActivityItem:
    return replace(
        item,
        paused_at=None,
        pause_identity="",
        pause_reason="",
        pause_request_id="",
        pause_rule_id="",
        stamp=item.stamp + 1,
    )


def show_pauses(draft: Draft) -> None:
    info = draft.info
    entries = []
    if info.pause is not None:
        entries.append(f"Workflow:{info.workflow_id}")
        if info.pause.reason:
            entries.append(f"Reason:{info.pause.reason}")
    types = {item.activity_type for item in draft.activities.values() if item.paused_at is not None}
    entries += [f"property:activityType={name}" for name in sorted(types)]
    data = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    present = info.search_attributes.get(ATTRIBUTE)
    if present is None and not entries:
        return
    if entries:
        if present is not None and present.data == data:
            return
        payload = Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=data)
        info.search_attributes = {**info.search_attributes, ATTRIBUTE: payload}
    else:
        info.search_attributes = {name: value for name, value in info.search_attributes.items() if name != ATTRIBUTE}
    record_visibility(draft)
