"""Whether a run had better continue as new, which its started workflow tasks tell it."""

from __future__ import annotations

from temporalio.api.enums.v1 import SuggestContinueAsNewReason

from history.state import Draft


def suggest_reasons(draft: Draft) -> list[SuggestContinueAsNewReason.ValueType]:
    """Why the run had better continue as new, if anything: its history's size or length, or its updates."""
    info = draft.info
    config = draft.work.config
    reasons = []
    if info.history_size >= config.suggest_continue_as_new_bytes:
        reasons.append(SuggestContinueAsNewReason.SUGGEST_CONTINUE_AS_NEW_REASON_HISTORY_SIZE_TOO_LARGE)
    if info.next_event_id >= config.suggest_continue_as_new_events:
        reasons.append(SuggestContinueAsNewReason.SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_HISTORY_EVENTS)
    # Upstream suggests it from 90% of the total limit on.
    if config.updates_total_limit and info.update_count >= config.updates_total_limit * 0.9:
        reasons.append(SuggestContinueAsNewReason.SUGGEST_CONTINUE_AS_NEW_REASON_TOO_MANY_UPDATES)
    return reasons
