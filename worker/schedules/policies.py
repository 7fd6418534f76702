"""What the buffer of due actions comes to, by their overlap policies.

    process(buffer, is_running=..., resolve=...) -> Decision

Source: upstream's service/worker/scheduler/buffer.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct, field
from temporalio.api.enums.v1 import ScheduleOverlapPolicy as Policy

from common.contracts.schedules import BufferedStart

SKIP = Policy.SCHEDULE_OVERLAP_POLICY_SKIP
BUFFER_ONE = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE
BUFFER_ALL = Policy.SCHEDULE_OVERLAP_POLICY_BUFFER_ALL
CANCEL_OTHER = Policy.SCHEDULE_OVERLAP_POLICY_CANCEL_OTHER
TERMINATE_OTHER = Policy.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER
ALLOW_ALL = Policy.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL
UNSPECIFIED = Policy.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED

Resolve = Callable[[Policy.ValueType], Policy.ValueType]


class Decision(Struct):
    """`alongside` start whatever runs; `next` is the one that starts since nothing runs; `kept` stay in the buffer."""

    alongside: list[BufferedStart] = field(default_factory=list)
    next: BufferedStart | None = None
    kept: list[BufferedStart] = field(default_factory=list)
    cancel: bool = False
    terminate: bool = False
    skipped: int = 0


def process(buffer: Sequence[BufferedStart], *, is_running: bool, resolve: Resolve) -> Decision:
    decision = Decision()
    for start in buffer:
        policy = resolve(start.overlap_policy)
        if policy == ALLOW_ALL:
            decision.alongside.append(start)
        elif not is_running and decision.next is None:
            decision.next = start
        else:
            _overlap(decision, start, policy, is_running=is_running)
    if decision.cancel or decision.terminate:
        # They would be ended at once like what runs.
        decision.alongside.clear()
    return decision


def _overlap(decision: Decision, start: BufferedStart, policy: Policy.ValueType, *, is_running: bool) -> None:
    if policy == BUFFER_ALL or (policy == BUFFER_ONE and not decision.kept):
        decision.kept.append(start)
    elif policy not in (CANCEL_OTHER, TERMINATE_OTHER):
        decision.skipped += 1
    elif is_running:
        decision.cancel |= policy == CANCEL_OTHER
        decision.terminate |= policy == TERMINATE_OTHER
        decision.kept.append(start)  # until what runs has ended
    else:
        decision.next = start
