"""The retry rules, against their own definition in floats and at their edges."""

from __future__ import annotations

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import RetryPolicy
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import (
    ApplicationFailureInfo,
    CanceledFailureInfo,
    Failure,
    ServerFailureInfo,
    TerminatedFailureInfo,
)

from common.protos import duration
from history.failures import STORED_FAILURE_LIMIT, stored_failure, timeout_failure
from history.transitions.retry import LONGEST, exponential, is_retryable, next_retry
from tests.history.commands import retry_policy
from tests.history.harness import START

IN_PROGRESS = RetryState.RETRY_STATE_IN_PROGRESS


def application(type_name: str = "E", *, non_retryable: bool = False, delay: float | None = None) -> Failure:
    info = ApplicationFailureInfo(type=type_name, non_retryable=non_retryable)
    if delay is not None:
        info.next_retry_delay.CopyFrom(duration(timedelta(seconds=delay)))
    return Failure(message="x", application_failure_info=info)


def delay_of(policy: RetryPolicy, attempt: int, failure: Failure | None = None) -> float | None:
    retry = next_retry(policy, attempt=attempt, now=START, expires_at=None, failure=failure)
    return retry.delay.total_seconds() if retry.delay is not None else None


def test_intervals_grow_and_stop_growing_at_the_maximum() -> None:
    policy = retry_policy(initial=0.2, coefficient=2, maximum=3600)
    assert [delay_of(policy, attempt) for attempt in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert delay_of(retry_policy(initial=1, maximum=3), 5) == 3


def test_an_interval_that_does_not_grow_never_shrinks() -> None:
    policy = retry_policy(initial=60, coefficient=1, maximum=6000)
    assert {delay_of(policy, attempt) for attempt in range(1, 61)} == {60.0}


def test_a_requested_delay_overrides_the_maximum_and_counts_attempts() -> None:
    policy = retry_policy(initial=1, maximum=1, attempts=2)
    assert delay_of(policy, 1, application(delay=5)) == 5
    retry = next_retry(policy, attempt=2, now=START, expires_at=None, failure=application(delay=5))
    assert retry.state == RetryState.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED


def test_a_requested_delay_of_zero_ends_it_as_upstream_does() -> None:
    retry = next_retry(retry_policy(), attempt=1, now=START, expires_at=None, failure=application(delay=0))
    assert retry.state == RetryState.RETRY_STATE_TIMEOUT


def test_an_overflowing_coefficient_is_clamped() -> None:
    policy = retry_policy(initial=1, coefficient=1e300, maximum=100)
    assert delay_of(policy, 50) == 100
    assert exponential(retry_policy(initial=1e9, coefficient=1e300), 10_000) == LONGEST


def test_no_attempt_begins_after_the_deadline() -> None:
    policy = retry_policy(initial=2, coefficient=1, maximum=10)
    expires = START + timedelta(seconds=3)
    assert next_retry(policy, attempt=1, now=START, expires_at=expires, failure=None).state == IN_PROGRESS
    late = next_retry(policy, attempt=2, now=START + timedelta(seconds=2), expires_at=expires, failure=None)
    assert late.state == RetryState.RETRY_STATE_TIMEOUT
    assert late.delay is None


@given(
    initial=st.floats(min_value=0.001, max_value=1e6),
    coefficient=st.floats(min_value=1, max_value=1e12),
    maximum=st.floats(min_value=0.001, max_value=1e8),
    attempt=st.integers(min_value=1, max_value=10_000),
    left=st.floats(min_value=0, max_value=1e9),
)
def test_every_interval_is_positive_within_the_maximum_and_the_deadline(
    initial: float, coefficient: float, maximum: float, attempt: int, left: float
) -> None:
    policy = retry_policy(initial=initial, coefficient=coefficient, maximum=max(initial, maximum))
    expires = START + timedelta(seconds=left)
    retry = next_retry(policy, attempt=attempt, now=START, expires_at=expires, failure=None)
    if retry.state == IN_PROGRESS:
        assert retry.delay is not None
        assert timedelta() < retry.delay <= timedelta(seconds=max(initial, maximum)) + timedelta(microseconds=1)
        assert retry.delay >= min(timedelta(seconds=initial), retry.delay)
        assert START + retry.delay <= expires
    else:
        assert retry.state == RetryState.RETRY_STATE_TIMEOUT


@given(st.integers(min_value=1, max_value=500), st.floats(min_value=1, max_value=100))
def test_intervals_never_shrink(attempt: int, coefficient: float) -> None:
    policy = RetryPolicy(initial_interval=Duration(seconds=1), backoff_coefficient=coefficient)
    assert exponential(policy, attempt) <= exponential(policy, attempt + 1)


@pytest.mark.parametrize(
    ("failure", "types", "expected"),
    [
        (None, (), True),
        (Failure(message="plain"), (), True),
        (application(), (), True),
        (application(), ("E",), False),
        (application(non_retryable=True), (), False),
        (Failure(canceled_failure_info=CanceledFailureInfo()), (), False),
        (Failure(terminated_failure_info=TerminatedFailureInfo()), (), False),
        (Failure(server_failure_info=ServerFailureInfo(non_retryable=True)), (), False),
        (Failure(server_failure_info=ServerFailureInfo()), (), True),
        (timeout_failure("t", TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE), (), True),
        (timeout_failure("t", TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE), ("TemporalTimeout:StartToClose",), False),
        (timeout_failure("t", TimeoutType.TIMEOUT_TYPE_HEARTBEAT), ("TemporalTimeout:Heartbeat",), False),
        (timeout_failure("t", TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START), (), False),
        (timeout_failure("t", TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE), (), False),
    ],
)
def test_what_may_be_retried(failure: Failure | None, types: tuple[str, ...], expected: bool) -> None:
    assert is_retryable(failure, types) is expected


def test_a_large_failure_is_stored_cut_and_keeps_its_type() -> None:
    failure = application("Kind")
    failure.message = "é" * 10_000
    failure.cause.CopyFrom(application("Cause"))
    stored = stored_failure(failure)
    assert stored is not None
    assert stored.message == "Failure exceeds size limit."
    assert stored.cause.application_failure_info.type == "Kind"
    assert stored.ByteSize() <= STORED_FAILURE_LIMIT + 100
    small = application()
    assert stored_failure(small) is small
