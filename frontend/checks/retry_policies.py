"""Retry policies of workflows: defaults for what is unset, then the rules.

Source: upstream's common/retrypolicy/retry_policy.go.
"""

from __future__ import annotations

from temporalio.api.common.v1 import RetryPolicy

from frontend.checks.durations import NANOS, nanoseconds
from history.validation import check_retry_policy as check_rules

_INITIAL_S = 1
_COEFFICIENT = 2.0
_MAXIMUM_MULTIPLE = 100


def check_retry_policy(policy: RetryPolicy) -> None:
    """Fills in the defaults, in place, and raises InvalidArgument."""
    if not nanoseconds(policy.initial_interval):
        policy.initial_interval.seconds = _INITIAL_S
    if not nanoseconds(policy.maximum_interval):
        total = nanoseconds(policy.initial_interval) * _MAXIMUM_MULTIPLE
        sign = -1 if total < 0 else 1
        seconds, nanos = divmod(abs(total), NANOS)
        policy.maximum_interval.seconds = sign * seconds
        policy.maximum_interval.nanos = sign * nanos
    if not policy.backoff_coefficient:
        policy.backoff_coefficient = _COEFFICIENT
    check_rules(policy)
