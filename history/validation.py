"""Rules about requests that History and the frontend share. Messages are upstream's.

    check_duration(value, name) / capped(value)     durations of the API
    check_retry_policy(policy), with_defaults(policy, config), checked_policy(policy, config), shared_policy(policy, config)
    run_timeout_within, capped_task_timeout         timeouts of a run
    check_blob, check_memo
Source: upstream's common/retrypolicy, common/primitives/timestamp and service/history/api/create_workflow_util.go.
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import TimeoutType

from common.errors import InvalidArgument
from common.protos import ZERO, duration, from_duration
from history.config import HistoryConfig

LONGEST = timedelta(days=36_500)
"""100 years of 365 days; longer durations are cut to it."""
TIMEOUT_PREFIX = "TemporalTimeout:"
"""Non-retryable error types that mean a timeout: this and the timeout type's name."""


def duration_fault(value: Duration) -> str:
    """What is wrong with a duration, in upstream's words; "" when nothing is."""
    seconds, nanos = value.seconds, value.nanos
    if seconds >= 0 and nanos >= 0:
        return ""
    if (seconds > 0 and nanos < 0) or (seconds < 0 and nanos > 0):
        return "duration has seconds and nanos with different signs"
    return "negative duration"


def check_duration(value: Duration, message: str) -> None:
    """Raises INVALID_ARGUMENT with `message`, whose `{}` becomes the fault."""
    fault = duration_fault(value)
    if fault:
        raise InvalidArgument(message.format(fault))


def capped(value: Duration) -> timedelta:
    """The duration, no longer than 100 years."""
    return min(from_duration(value), LONGEST)


def check_retry_policy(policy: RetryPolicy) -> None:
    """Raises INVALID_ARGUMENT. A policy of one attempt retries nothing, so the rest of it does not matter."""
    if policy.maximum_attempts == 1:
        return
    check_duration(policy.initial_interval, "invalid InitialInterval set on retry policy: {}")
    if policy.backoff_coefficient < 1:
        raise InvalidArgument("BackoffCoefficient cannot be less than 1 on retry policy.")
    check_duration(policy.maximum_interval, "invalid MaximumInterval set on retry policy: {}")
    maximum = capped(policy.maximum_interval)
    if ZERO < maximum < capped(policy.initial_interval):
        raise InvalidArgument("MaximumInterval cannot be less than InitialInterval on retry policy.")
    if policy.maximum_attempts < 0:
        raise InvalidArgument("MaximumAttempts cannot be negative on retry policy.")
    for name in policy.non_retryable_error_types:
        if name.startswith(TIMEOUT_PREFIX):
            _check_timeout_name(name.removeprefix(TIMEOUT_PREFIX))


def _check_timeout_name(name: str) -> None:
    full = "TIMEOUT_TYPE_" + "".join("_" + c if c.isupper() else c.upper() for c in name).removeprefix("_")
    unset = TimeoutType.Name(TimeoutType.TIMEOUT_TYPE_UNSPECIFIED)
    if not {name, full} & ({*TimeoutType.keys()} - {unset}):
        raise InvalidArgument(f"Invalid timeout type value: {name}.")


def with_defaults(policy: RetryPolicy, config: HistoryConfig) -> RetryPolicy:
    """A copy with the server's defaults in the fields that are unset, and intervals capped."""
    initial = capped(policy.initial_interval) or config.default_activity_retry_initial
    maximum = capped(policy.maximum_interval)
    if not maximum:
        maximum = min(int(config.default_activity_retry_maximum_multiple) * initial, LONGEST)
    return RetryPolicy(
        initial_interval=duration(initial),
        backoff_coefficient=policy.backoff_coefficient or config.default_activity_retry_coefficient,
        maximum_interval=duration(maximum),
        maximum_attempts=policy.maximum_attempts,
        non_retryable_error_types=policy.non_retryable_error_types,
    )


def checked_policy(policy: RetryPolicy, config: HistoryConfig) -> RetryPolicy:
    """`with_defaults` of a policy that is valid once they are filled in. Raises INVALID_ARGUMENT."""
    if policy.maximum_attempts != 1:  # filling in cuts signs off
        check_duration(policy.initial_interval, "invalid InitialInterval set on retry policy: {}")
        check_duration(policy.maximum_interval, "invalid MaximumInterval set on retry policy: {}")
    filled = with_defaults(policy, config)
    check_retry_policy(filled)
    return filled


def shared_policy(policy: RetryPolicy, config: HistoryConfig) -> RetryPolicy:
    """`checked_policy`, remembered: a workflow's activities rarely have more than a few. Not to be changed: all activities
    with such a policy share the result."""
    return _shared(
        policy.SerializeToString(),
        config.default_activity_retry_initial,
        config.default_activity_retry_maximum_multiple,
        config.default_activity_retry_coefficient,
    )


@lru_cache(maxsize=1_024)
def _shared(policy: bytes, initial: timedelta, multiple: float, coefficient: float) -> RetryPolicy:
    config = HistoryConfig(
        default_activity_retry_initial=initial,
        default_activity_retry_maximum_multiple=multiple,
        default_activity_retry_coefficient=coefficient,
    )
    return checked_policy(RetryPolicy.FromString(policy), config)


def run_timeout_within(run_timeout: timedelta, *, execution_timeout: timedelta) -> timedelta:
    """A run's timeout: no longer than the whole execution's, and that when it has none of its own. Zero means none."""
    if not execution_timeout:
        return min(run_timeout, LONGEST)
    return min(run_timeout or execution_timeout, execution_timeout, LONGEST)


def capped_task_timeout(task_timeout: timedelta, *, run_timeout: timedelta, config: HistoryConfig) -> timedelta:
    """A workflow task's timeout: the default when unset, the maximum at most, and no longer than the run's."""
    timeout = min(task_timeout or config.default_task_timeout, config.max_task_timeout)
    return min(timeout, run_timeout) if run_timeout else timeout


def check_blob(message: Message, config: HistoryConfig) -> None:
    """Raises INVALID_ARGUMENT for a payload message over the limit."""
    if message.ByteSize() > config.blob_limit:
        raise InvalidArgument("Blob data size exceeds limit.")


def check_memo(message: Message, config: HistoryConfig) -> None:
    if message.ByteSize() > config.memo_limit:
        raise InvalidArgument("Memo size exceeds limit.")
