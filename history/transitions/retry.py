"""When something that failed is tried again: the rules that activities and workflows share.

    is_retryable(failure, non_retryable_types) -> bool
    next_retry(policy, *, attempt, now, expires_at, failure) -> Retry
    exponential(policy, attempt) -> timedelta

Source: upstream's service/history/workflow/retry.go and common/retrypolicy.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from msgspec import Struct
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure

from common.protos import ZERO, from_duration

TIMEOUT_TYPE_PREFIX = "TemporalTimeout:"
"""Non-retryable types may name a timeout: "TemporalTimeout:StartToClose"."""
LONGEST = timedelta(days=106_751)
"""As upstream's largest duration (63 bits of nanoseconds), cut to days: what an overflowing interval becomes."""

_RETRYABLE_TIMEOUTS = {
    TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "StartToClose",
    TimeoutType.TIMEOUT_TYPE_HEARTBEAT: "Heartbeat",
}


class Retry(Struct, kw_only=True, frozen=True):
    """`delay` is None unless `state` is in-progress; otherwise `state` says why there is no further attempt."""

    state: RetryState.ValueType
    delay: timedelta | None = None


def is_retryable(failure: Failure | None, non_retryable_types: Collection[str]) -> bool:
    """Whether a failure of this kind may be tried again at all."""
    kind = failure.WhichOneof("failure_info") if failure is not None else None
    if failure is None or kind is None:
        return True
    if kind in ("terminated_failure_info", "canceled_failure_info"):
        return False
    if kind == "timeout_failure_info":
        name = _RETRYABLE_TIMEOUTS.get(failure.timeout_failure_info.timeout_type)
        return name is not None and TIMEOUT_TYPE_PREFIX + name not in non_retryable_types
    if kind == "server_failure_info":
        return not failure.server_failure_info.non_retryable
    if kind == "application_failure_info":
        info = failure.application_failure_info
        return not info.non_retryable and info.type not in non_retryable_types
    return True


def requested_delay(failure: Failure | None) -> timedelta | None:
    """The delay that an application failure asks for; it overrides the policy's intervals, its maximum too."""
    if failure is not None and failure.HasField("application_failure_info"):
        info = failure.application_failure_info
        if info.HasField("next_retry_delay"):
            return from_duration(info.next_retry_delay)
    return None


def exponential(policy: RetryPolicy, attempt: int) -> timedelta:
    """Initial interval × coefficient^(attempt - 1), clamped instead of overflowing."""
    initial = from_duration(policy.initial_interval)
    try:
        seconds = initial.total_seconds() * policy.backoff_coefficient ** (attempt - 1)
    except OverflowError:
        return LONGEST
    if seconds >= LONGEST.total_seconds():
        return LONGEST
    return max(ZERO, timedelta(seconds=seconds))


def next_retry(
    policy: RetryPolicy,
    *,
    attempt: int,
    now: datetime,
    expires_at: datetime | None,
    failure: Failure | None,
) -> Retry:
    """Whether and after what delay `attempt` (from 1) is followed by another, given that its failure is retryable.

    No attempt begins after `expires_at`. A maximum interval of zero means none, and then an interval of zero ends it.
    """
    if 0 < policy.maximum_attempts <= attempt:
        return Retry(state=RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED)
    requested = requested_delay(failure)
    if requested is not None:
        delay, maximum = requested, requested
    else:
        delay, maximum = exponential(policy, max(attempt, 1)), from_duration(policy.maximum_interval)
    if not maximum and delay <= ZERO:
        return Retry(state=RetryState.RETRY_STATE_TIMEOUT)
    if maximum and (delay <= ZERO or delay > maximum):
        delay = maximum
    if expires_at is not None and now + min(delay, LONGEST) > expires_at:
        return Retry(state=RetryState.RETRY_STATE_TIMEOUT)
    return Retry(state=RetryState.RETRY_STATE_IN_PROGRESS, delay=delay)
