"""A run whose time is up.

    time_out_run(draft) -> None     end it as timed out; its retry policy or cron schedule may start another

Source: upstream's executeWorkflowRunTimeoutTask.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.history.v1 import WorkflowExecutionTimedOutEventAttributes

from history.failures import timeout_failure
from history.state import Draft
from history.transitions.close import close_run, end_started_task
from history.transitions.continuation import FollowUp, retry_or_cron, start_follow_up


def time_out_run(draft: Draft) -> None:
    """The run must be open and past `run_expires_at`. Once the whole execution's time is up nothing follows."""
    info = draft.info
    failure = timeout_failure("workflow timeout", TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE)
    follow_up: FollowUp | None = None
    state = RetryState.RETRY_STATE_TIMEOUT
    if info.execution_expires_at is None or info.execution_expires_at > draft.work.now:
        follow_up, state = retry_or_cron(draft, failure)
    end_started_task(draft)
    close_run(
        draft,
        WorkflowExecutionTimedOutEventAttributes(
            retry_state=state, new_execution_run_id=follow_up.run_id if follow_up else ""
        ),
    )
    if follow_up is not None:
        start_follow_up(draft, follow_up, failure=failure, last_result=follow_up.known_result)
