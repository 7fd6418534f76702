"""What a poll answer says besides the task: how much waits behind it, and whether the worker should poll more or less.

Source: upstream's MakePollerScalingDecision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from temporalio.api.workflowservice import v1 as ws

from matching.matcher import Poller

if TYPE_CHECKING:
    from matching.task_queue import TaskQueue


def add_advice(queue: TaskQueue, response: Any, poller: Poller, *, now: float, is_stored: bool) -> None:
    """`now` in monotonic seconds."""
    backlog = queue.awaiting_dispatch
    if backlog and isinstance(response, ws.PollWorkflowTaskQueueResponse):
        response.backlog_count_hint = backlog
    delta = _suggestion(queue, waited_s=now - poller.began, now=now, backlog=backlog, is_stored=is_stored)
    if delta:
        response.poller_scaling_decision.poll_request_delta_suggestion = delta


def _suggestion(queue: TaskQueue, *, waited_s: float, now: float, backlog: int, is_stored: bool) -> int:
    config = queue.config
    if waited_s >= config.scaling_wait.total_seconds() and not is_stored:
        return -1  # it was idle for long, and not because a backlog had to be read
    spacing = 1.0 / (config.scaling_decisions_per_second * max(1, len(queue.pollers)))
    if now - queue.last_advice < spacing:
        return 0
    queue.last_advice = now
    if queue.limits.limited_lately():
        return 0  # more pollers would not help
    if backlog and (oldest := queue.oldest_waiting()) is not None:
        return 1 if queue.clock.now() - oldest > config.scaling_backlog_age else 0
    return 1 if _adds_outrun_dispatches(queue) else 0


def _adds_outrun_dispatches(queue: TaskQueue) -> bool:
    added = sum(tracker.rate() for tracker in queue.added.values())
    dispatched = sum(tracker.rate() for tracker in queue.dispatched.values())
    return dispatched > 0 and added / dispatched > queue.config.scaling_add_dispatch_ratio
