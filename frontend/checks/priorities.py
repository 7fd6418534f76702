"""Priorities. Source: upstream's common/priorities/priority_util.go."""

from __future__ import annotations

from temporalio.api.common.v1 import Priority

from common.errors import InvalidArgument
from frontend.checks.ids import too_long


def check_priority(priority: Priority, *, key_limit: int) -> None:
    if priority.priority_key < 0:
        raise InvalidArgument("priority key can't be negative")
    if too_long(priority.fairness_key, key_limit):
        raise InvalidArgument("fairness key length exceeds limit")
    if priority.fairness_weight < 0:
        raise InvalidArgument("must be greater than zero")
