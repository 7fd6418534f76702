"""Priorities: what an activity inherits from its workflow. Source: upstream's common/priorities."""

from __future__ import annotations

from temporalio.api.common.v1 import Priority


def merged(base: Priority | None, override: Priority | None) -> Priority | None:
    """Field by field the override's, where it sets one, else the base's."""
    if base is None or override is None:
        return base or override
    return Priority(
        priority_key=override.priority_key or base.priority_key,
        fairness_key=override.fairness_key or base.fairness_key,
        fairness_weight=override.fairness_weight or base.fairness_weight,
    )
