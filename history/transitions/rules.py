"""The namespace's workflow rules, before an attempt of an activity begins.

    pause_by_rule(draft, item) -> ActivityItem     stored and paused when a rule says so, else as it was

Asked when a poller gets the first attempt, when an attempt fails and may be retried, and when a back-off ends. Nothing of it
is in the history. Source: upstream's ActivityMatchWorkflowRules.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from temporalio.api.rules.v1 import WorkflowRuleSpec

from common.protos import from_timestamp
from history.records import ActivityItem, ExecutionInfo
from history.rules.conditions import RuleError, condition
from history.rules.fields import ACTIVITY, RUN
from history.state import Draft
from history.transitions.pause_info import paused, show_pauses

log = logging.getLogger(__name__)


def pause_by_rule(draft: Draft, item: ActivityItem) -> ActivityItem:
    """The first rule in order of creation counts. An expired rule, and one whose condition makes no sense, has no say."""
    if item.paused_at is not None or draft.info.archetype:
        return item
    now = draft.work.now
    for rule in draft.work.rules.values():
        spec = rule.spec
        if spec.HasField("expiration_time") and from_timestamp(spec.expiration_time) < now:
            continue
        if any(action.HasField("activity_pause") for action in spec.actions) and matches(spec, draft.info, item):
            item = paused(item, now=now, rule_id=spec.id)
            draft.activities[item.scheduled_event_id] = item
            show_pauses(draft)
            return item
    return item


def matches(spec: WorkflowRuleSpec, info: ExecutionInfo, item: ActivityItem) -> bool:
    """Whether the rule means this activity of this run."""
    if not spec.HasField("activity_start"):
        return False
    try:
        if spec.visibility_query and not condition(spec.visibility_query, RUN)(info):
            return False
        return condition(spec.activity_start.predicate, ACTIVITY)(item)
    except RuleError as error:
        _report(spec.id, str(error))
        return False


@lru_cache(maxsize=1_000)
def _report(rule_id: str, problem: str) -> None:
    """Once, not for every activity."""
    log.warning("workflow rule %s holds for nothing: %s", rule_id, problem)
