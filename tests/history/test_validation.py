"""Rules of requests that History and the frontend share."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.deployment.v1 import Deployment, WorkerDeploymentVersion
from temporalio.api.enums.v1 import VersioningBehavior
from temporalio.api.workflow.v1 import VersioningOverride

from common.errors import InvalidArgument
from history.config import HistoryConfig
from history.validation import capped, check_retry_policy, checked_policy, duration_fault, shared_policy, with_defaults
from history.versioning_override import PINNED, modern_override

S = Duration


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (S(), ""),
        (S(seconds=5, nanos=1), ""),
        (S(seconds=-5), "negative duration"),
        (S(nanos=-1), "negative duration"),
        (S(seconds=-1, nanos=-1), "negative duration"),
        (S(seconds=1, nanos=-1), "duration has seconds and nanos with different signs"),
        (S(seconds=-1, nanos=1), "duration has seconds and nanos with different signs"),
    ],
)
def test_durations(value: Duration, fault: str) -> None:
    assert duration_fault(value) == fault


def test_b36_two_hundred_years_are_one_hundred() -> None:
    assert capped(S(seconds=200 * 365 * 86_400)) == timedelta(seconds=3_153_600_000)


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(backoff_coefficient=1),
        RetryPolicy(maximum_attempts=1, initial_interval=S(seconds=-1)),
        RetryPolicy(initial_interval=S(seconds=5), backoff_coefficient=2, maximum_interval=S(seconds=5)),
        RetryPolicy(backoff_coefficient=1, non_retryable_error_types=["Any", "TemporalTimeout:Heartbeat"]),
        RetryPolicy(backoff_coefficient=1, non_retryable_error_types=["TemporalTimeout:StartToClose"]),
    ],
)
def test_good_retry_policies(policy: RetryPolicy) -> None:
    check_retry_policy(policy)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (RetryPolicy(initial_interval=S(seconds=-1)), "invalid InitialInterval set on retry policy: negative duration"),
        (RetryPolicy(backoff_coefficient=0.5), "BackoffCoefficient cannot be less than 1 on retry policy."),
        (
            RetryPolicy(backoff_coefficient=1, maximum_interval=S(seconds=-1)),
            "invalid MaximumInterval set on retry policy: negative duration",
        ),
        (
            RetryPolicy(backoff_coefficient=1, initial_interval=S(seconds=2), maximum_interval=S(seconds=1)),
            "MaximumInterval cannot be less than InitialInterval on retry policy.",
        ),
        (
            RetryPolicy(backoff_coefficient=1, maximum_attempts=-1),
            "MaximumAttempts cannot be negative on retry policy.",
        ),
        (
            RetryPolicy(backoff_coefficient=1, non_retryable_error_types=["TemporalTimeout:Lunch"]),
            "Invalid timeout type value: Lunch.",
        ),
        (
            RetryPolicy(backoff_coefficient=1, non_retryable_error_types=["TemporalTimeout:Unspecified"]),
            "Invalid timeout type value: Unspecified.",
        ),
    ],
)
def test_bad_retry_policies(policy: RetryPolicy, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        check_retry_policy(policy)
    assert refused.value.message == message


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(),
        RetryPolicy(maximum_attempts=1),
        RetryPolicy(initial_interval=S(seconds=3), backoff_coefficient=1.5, non_retryable_error_types=["E"]),
    ],
)
def test_a_shared_policy_is_a_checked_one_of_the_config_at_hand(policy: RetryPolicy) -> None:
    for config in (HistoryConfig(), HistoryConfig(default_activity_retry_initial=timedelta(seconds=7))):
        assert shared_policy(policy, config) == checked_policy(policy, config)
        assert shared_policy(policy, config) is shared_policy(policy, config)


def test_a_bad_policy_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="negative duration"):
            shared_policy(RetryPolicy(initial_interval=S(seconds=-1)), HistoryConfig())


def test_retry_defaults_fill_only_what_is_unset() -> None:
    config = HistoryConfig()
    filled = with_defaults(RetryPolicy(), config)
    assert filled == RetryPolicy(
        initial_interval=S(seconds=1), backoff_coefficient=2, maximum_interval=S(seconds=100), maximum_attempts=0
    )
    given = RetryPolicy(
        initial_interval=S(seconds=3), backoff_coefficient=1, maximum_interval=S(seconds=9), maximum_attempts=4
    )
    assert with_defaults(given, config) == given
    assert with_defaults(RetryPolicy(initial_interval=S(seconds=3)), config).maximum_interval == S(seconds=300)


VERSION = WorkerDeploymentVersion(deployment_name="app", build_id="1.0")
MODERN = VersioningOverride(pinned=VersioningOverride.PinnedOverride(behavior=PINNED, version=VERSION))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (MODERN, MODERN),
        (
            VersioningOverride(behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED, pinned_version="app.1.0"),
            MODERN,
        ),
        (
            VersioningOverride(behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED, pinned_version="app:1.0"),
            MODERN,
        ),
        (
            VersioningOverride(
                behavior=VersioningBehavior.VERSIONING_BEHAVIOR_PINNED,
                deployment=Deployment(series_name="app", build_id="1.0"),
            ),
            MODERN,
        ),
        (
            VersioningOverride(behavior=VersioningBehavior.VERSIONING_BEHAVIOR_AUTO_UPGRADE),
            VersioningOverride(auto_upgrade=True),
        ),
        (VersioningOverride(), VersioningOverride()),
    ],
)
def test_versioning_overrides_in_any_form(given: VersioningOverride, expected: VersioningOverride) -> None:
    assert modern_override(given) == expected
