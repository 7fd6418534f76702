"""What a batch can do to many executions: the same as one by one, as operations of StartBatchOperation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from temporalio.api.batch import v1 as batch
from temporalio.api.common.v1 import ResetOptions
from temporalio.api.workflowservice.v1 import StartBatchOperationRequest

from tinytemporal_site.console.actions import forms

Given = Mapping[str, Any]


class Bulk(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    permission: str
    form: type[forms.ActionForm]
    fill: Callable[[StartBatchOperationRequest, Given, str], None]
    """Puts the operation into the request."""
    explanation: str
    is_dangerous: bool = False


def _signal(request: StartBatchOperationRequest, given: Given, identity: str) -> None:
    request.signal_operation.CopyFrom(
        batch.BatchOperationSignal(signal=given["signal_name"], input=given["input"], identity=identity)
    )


def _cancel(request: StartBatchOperationRequest, given: Given, identity: str) -> None:  # noqa: ARG001  one form for all
    request.cancellation_operation.CopyFrom(batch.BatchOperationCancellation(identity=identity))


def _terminate(request: StartBatchOperationRequest, given: Given, identity: str) -> None:  # noqa: ARG001  as above
    request.termination_operation.CopyFrom(batch.BatchOperationTermination(identity=identity))


def _delete(request: StartBatchOperationRequest, given: Given, identity: str) -> None:  # noqa: ARG001  as above
    request.deletion_operation.CopyFrom(batch.BatchOperationDeletion(identity=identity))


def _reset(request: StartBatchOperationRequest, given: Given, identity: str) -> None:
    options = ResetOptions(reset_reapply_type=given["reapply"])
    getattr(options, given["target"]).SetInParent()
    request.reset_operation.CopyFrom(batch.BatchOperationReset(identity=identity, options=options))


def _retry(request: StartBatchOperationRequest, given: Given, identity: str) -> None:
    request.reset_activities_operation.CopyFrom(
        batch.BatchOperationResetActivities(
            identity=identity, match_all=True, reset_heartbeat=given["reset_heartbeat"], reset_attempts=True
        )
    )


_ALL = (
    Bulk(
        name="signal",
        title="Signal",
        permission="console.signal_execution",
        form=forms.BatchSignalForm,
        fill=_signal,
        explanation="Each run is sent the signal once.",
    ),
    Bulk(
        name="cancel",
        title="Cancel",
        permission="console.cancel_execution",
        form=forms.RequiredReasonForm,
        fill=_cancel,
        explanation="Each run is asked to cancel itself.",
    ),
    Bulk(
        name="terminate",
        title="Terminate",
        permission="console.terminate_execution",
        form=forms.RequiredReasonForm,
        fill=_terminate,
        explanation="Each run ends at once.",
        is_dangerous=True,
    ),
    Bulk(
        name="retry",
        title="Retry activities now",
        permission="console.retry_activity",
        form=forms.BatchRetryForm,
        fill=_retry,
        explanation="All activities that each run waits for are put on their queues at once, their attempts counted anew.",
    ),
    Bulk(
        name="reset",
        title="Reset",
        permission="console.reset_execution",
        form=forms.BatchResetForm,
        fill=_reset,
        explanation="For each run, a new one begins with its history up to a workflow task.",
        is_dangerous=True,
    ),
    Bulk(
        name="delete",
        title="Delete",
        permission="console.delete_execution",
        form=forms.RequiredReasonForm,
        fill=_delete,
        explanation="Each run leaves all tables, with its history.",
        is_dangerous=True,
    ),
)
BULK: dict[str, Bulk] = {each.name: each for each in _ALL}
