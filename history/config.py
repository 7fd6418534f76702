"""History's limits and intervals, upstream's defaults unless said otherwise. Built from settings by the composition root."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct


class HistoryConfig(Struct, kw_only=True, frozen=True):
    shards: int = 4
    default_task_timeout: timedelta = timedelta(seconds=10)
    max_task_timeout: timedelta = timedelta(seconds=120)
    suggest_continue_as_new_events: int = 4_096
    suggest_continue_as_new_bytes: int = 4 * 1024 * 1024
    history_events_limit: int = 51_200
    history_bytes_limit: int = 50 * 1024 * 1024
    pending_activities_limit: int = 2_000
    pending_children_limit: int = 2_000
    pending_signals_limit: int = 2_000
    pending_cancels_limit: int = 2_000
    signals_limit: int = 10_000
    updates_in_flight_limit: int = 10
    updates_total_limit: int = 2_000
    buffered_events_limit: int = 100
    buffered_bytes_limit: int = 2 * 1024 * 1024
    blob_limit: int = 2 * 1024 * 1024
    memo_limit: int = 2 * 1024 * 1024
    long_poll: timedelta = timedelta(seconds=20)
    """How long GetWorkflowExecutionHistory and update polls wait before they answer with nothing new."""
    query_buffer_limit: int = 1
    default_activity_retry_initial: timedelta = timedelta(seconds=1)
    default_activity_retry_maximum_multiple: float = 100.0
    default_activity_retry_coefficient: float = 2.0
    callbacks_limit: int = 2_000
    """Completion callbacks of one run, those of its updates included."""
    update_callbacks_limit: int = 32
    """Completion callbacks of one update."""
    callback_timeout: timedelta = timedelta(seconds=10)
    """Of one request."""
    callback_retry_first: timedelta = timedelta(seconds=1)
    callback_retry_longest: timedelta = timedelta(hours=1)
    callback_requests_at_once: int = 32
    """To one destination for one namespace; more wait."""
    pending_nexus_operations_limit: int = 30
    nexus_header_limit: int = 8_192
    """Bytes of an operation's headers, names and values."""
    nexus_token_limit: int = 4_096
    nexus_timeout: timedelta = timedelta(seconds=10)
    """Of one call, to start or to cancel an operation."""
    nexus_callback_url: str = "http://127.0.0.1:7243/namespaces/{namespace}/nexus/callback"
    """Where services elsewhere send their operations' ends: this cluster's HTTP port, as they reach it."""
    nexus_shortest_call: timedelta = timedelta(milliseconds=1_500)
    """A call that has less time left is not made: the operation times out."""
    nexus_margin: timedelta = timedelta(seconds=1)
    """A worker has so much less of a call's time."""
    nexus_retry_first: timedelta = timedelta(seconds=1)
    nexus_retry_longest: timedelta = timedelta(hours=1)
    nexus_calls_at_once: int = 1_000
    """To one endpoint for one namespace; more wait."""
    cache_runs: int = 4_000
    cache_bytes: int = 32 * 1024 * 1024
    visibility_gather: timedelta = timedelta(milliseconds=50)
    """How long the read model's processor waits for more before it writes: start and close of a short run are one row
    then, and a busy server's transactions half as many. It is the least lag that a list has."""
    commit_gather: timedelta = timedelta(milliseconds=5)
    """How long the writer waits at most for the operations it expects, when the commit before held several; never when it
    held one."""
    timer_look_ahead: timedelta = timedelta(minutes=5)
    heartbeat_task_limit: timedelta = timedelta(minutes=30)
    """How long a worker may keep extending one workflow task (local activities)."""
    sticky_schedule_to_start: timedelta = timedelta(seconds=5)
