"""Every action on one execution: its words, who may, what is asked, and the API call that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf.message import Message
from msgspec import Struct
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice import v1 as ws

from history.models import Execution
from tinytemporal_site.console.actions import forms

OPEN = ("Running", "Paused")
Given = Mapping[str, Any]
"""The form's cleaned data."""


class Action(Struct, frozen=True, kw_only=True):
    name: str
    """In its address."""
    title: str
    """On its button, and with the workflow id as its page's heading."""
    permission: str
    form: type[forms.ActionForm]
    method: str
    """Of the API."""
    request: Callable[[Execution, Given, str], Message]
    """From the run, the form and the identity of whoever does it."""
    explanation: str
    done: str
    """What is said afterwards."""
    statuses: tuple[str, ...] = ()
    """Of runs that it is offered for; empty: all. What it may be done to is History's to say."""
    is_dangerous: bool = False

    def is_offered(self, status: str) -> bool:
        return not self.statuses or status in self.statuses


def _execution(run: Execution) -> WorkflowExecution:
    return WorkflowExecution(workflow_id=run.workflow_id, run_id=run.run_id)


def _signal(run: Execution, given: Given, identity: str) -> Message:
    return ws.SignalWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_execution(run),
        signal_name=given["signal_name"],
        input=given["input"],
        identity=identity,
        request_id=str(given["request_id"]),
    )


def _cancel(run: Execution, given: Given, identity: str) -> Message:
    return ws.RequestCancelWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_execution(run),
        reason=given["reason"],
        identity=identity,
        request_id=str(given["request_id"]),
    )


def _terminate(run: Execution, given: Given, identity: str) -> Message:
    return ws.TerminateWorkflowExecutionRequest(
        namespace=run.namespace, workflow_execution=_execution(run), reason=given["reason"], identity=identity
    )


def _reset(run: Execution, given: Given, identity: str) -> Message:
    return ws.ResetWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_execution=_execution(run),
        reason=given["reason"],
        workflow_task_finish_event_id=given["event_id"],
        reset_reapply_type=given["reapply"],
        identity=identity,
        request_id=str(given["request_id"]),
    )


def _pause(run: Execution, given: Given, identity: str) -> Message:
    return ws.PauseWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        reason=given["reason"],
        identity=identity,
        request_id=str(given["request_id"]),
    )


def _unpause(run: Execution, given: Given, identity: str) -> Message:
    return ws.UnpauseWorkflowExecutionRequest(
        namespace=run.namespace,
        workflow_id=run.workflow_id,
        run_id=run.run_id,
        reason=given["reason"],
        identity=identity,
        request_id=str(given["request_id"]),
    )


def _retry(run: Execution, given: Given, identity: str) -> Message:
    return ws.ResetActivityRequest(
        namespace=run.namespace,
        execution=_execution(run),
        id=given["activity_id"],
        reset_heartbeat=given["reset_heartbeat"],
        identity=identity,
    )


def _delete(run: Execution, given: Given, identity: str) -> Message:  # noqa: ARG001  one form for all
    return ws.DeleteWorkflowExecutionRequest(namespace=run.namespace, workflow_execution=_execution(run))


_ALL = (
    Action(
        name="signal",
        title="Signal",
        permission="console.signal_execution",
        form=forms.SignalForm,
        method="SignalWorkflowExecution",
        request=_signal,
        explanation="The signal becomes an event of the run, and its worker is given a workflow task.",
        done="The signal was taken.",
        statuses=OPEN,
    ),
    Action(
        name="cancel",
        title="Cancel",
        permission="console.cancel_execution",
        form=forms.ReasonForm,
        method="RequestCancelWorkflowExecution",
        request=_cancel,
        explanation="The run is asked to cancel itself: its code decides what it still does, and when it ends.",
        done="The run was asked to cancel itself.",
        statuses=OPEN,
    ),
    Action(
        name="terminate",
        title="Terminate",
        permission="console.terminate_execution",
        form=forms.RequiredReasonForm,
        method="TerminateWorkflowExecution",
        request=_terminate,
        explanation="The run ends at once; its code does nothing any more.",
        done="The run was terminated.",
        statuses=OPEN,
        is_dangerous=True,
    ),
    Action(
        name="pause",
        title="Pause",
        permission="console.pause_execution",
        form=forms.ReasonForm,
        method="PauseWorkflowExecution",
        request=_pause,
        explanation="No workflow task and no activity of the run begins until it is unpaused.",
        done="The run was paused.",
        statuses=("Running",),
    ),
    Action(
        name="unpause",
        title="Unpause",
        permission="console.pause_execution",
        form=forms.ReasonForm,
        method="UnpauseWorkflowExecution",
        request=_unpause,
        explanation="The run goes on where it was paused.",
        done="The run goes on.",
        statuses=("Paused",),
    ),
    Action(
        name="retry",
        title="Retry an activity now",
        permission="console.retry_activity",
        form=forms.RetryForm,
        method="ResetActivity",
        request=_retry,
        explanation="The activity is put on its queue at once and does not wait for its next attempt.",
        done="The activity is tried again.",
        statuses=OPEN,
    ),
    Action(
        name="reset",
        title="Reset",
        permission="console.reset_execution",
        form=forms.ResetForm,
        method="ResetWorkflowExecution",
        request=_reset,
        explanation="A new run begins with this one's history up to an event. This run is terminated if it is still open.",
        done="A new run was begun: it is the current one of this workflow id.",
        is_dangerous=True,
    ),
    Action(
        name="delete",
        title="Delete",
        permission="console.delete_execution",
        form=forms.DeleteForm,
        method="DeleteWorkflowExecution",
        request=_delete,
        explanation="The run leaves all tables, with its history. One that is still open is terminated first.",
        done="The run is being deleted.",
        is_dangerous=True,
    ),
)
ACTIONS: dict[str, Action] = {action.name: action for action in _ALL}
