"""What an action asks of whoever does it."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from django import forms
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import ResetReapplyType

MOST_TEXT = 1_000


def _new_id() -> str:
    return str(uuid4())


class JsonInput(forms.CharField):
    """JSON text; cleaned, it is the payloads of one argument, or None when there is none."""

    widget = forms.Textarea(attrs={"rows": 4, "cols": 60, "spellcheck": "false"})

    def clean(self, value: Any) -> Payloads | None:
        text = super().clean(value).strip()
        if not text:
            return None
        try:
            read = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is no JSON: {error}") from error
        data = json.dumps(read, separators=(",", ":"), ensure_ascii=False).encode()
        return Payloads(payloads=[Payload(metadata={"encoding": b"json/plain"}, data=data)])


class ActionForm(forms.Form):
    """`request_id` is drawn when the page is made: sent twice, the action happens once."""

    request_id = forms.UUIDField(initial=_new_id, widget=forms.HiddenInput)

    def __init__(self, *args: Any, run: Any = None, **kwargs: Any) -> None:
        """`run` is what is acted on; None in a batch."""
        super().__init__(*args, **kwargs)
        self.run = run


class SignalForm(ActionForm):
    signal_name = forms.CharField(max_length=MOST_TEXT)
    input = JsonInput(required=False, help_text="JSON, the signal's one argument; empty: none")


class ReasonForm(ActionForm):
    reason = forms.CharField(
        max_length=MOST_TEXT, required=False, help_text="Kept in the history and in the admin's log"
    )


class RequiredReasonForm(ActionForm):
    reason = forms.CharField(max_length=MOST_TEXT, help_text="Kept in the history and in the admin's log")


class DeleteForm(ActionForm):
    reason = forms.CharField(max_length=MOST_TEXT, required=False, help_text="Kept in the admin's log")


REAPPLY = [
    (ResetReapplyType.RESET_REAPPLY_TYPE_ALL_ELIGIBLE, "signals and updates that came later"),
    (ResetReapplyType.RESET_REAPPLY_TYPE_SIGNAL, "signals that came later"),
    (ResetReapplyType.RESET_REAPPLY_TYPE_NONE, "nothing"),
]


class ResetForm(RequiredReasonForm):
    event_id = forms.TypedChoiceField(
        coerce=int,
        label="Back to",
        help_text="What happened after that event is forgotten; a new run goes on from there",
    )
    reapply = forms.TypedChoiceField(coerce=int, choices=REAPPLY, label="Apply again")
    field_order = ("event_id", "reapply", "reason")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from tinytemporal_site.console.actions.points import reset_points

        super().__init__(*args, **kwargs)
        self.fields["event_id"].choices = [(p.event_id, p.words) for p in reset_points(self.run)]  # type: ignore[attr-defined]


class BatchResetForm(RequiredReasonForm):
    target = forms.ChoiceField(
        choices=[("first_workflow_task", "the first workflow task"), ("last_workflow_task", "the last workflow task")],
        label="Back to",
    )
    reapply = forms.TypedChoiceField(coerce=int, choices=REAPPLY, label="Apply again")
    field_order = ("target", "reapply", "reason")


class RetryForm(ActionForm):
    activity_id = forms.ChoiceField(
        label="Activity", help_text="Its attempts are counted from 1 again; a paused one is unpaused"
    )
    reset_heartbeat = forms.BooleanField(required=False, label="Forget the heartbeat's details")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        from tinytemporal_site.console.actions.points import pending_activities

        super().__init__(*args, **kwargs)
        self.fields["activity_id"].choices = pending_activities(self.run)  # type: ignore[attr-defined]


class BatchSignalForm(SignalForm):
    reason = forms.CharField(max_length=MOST_TEXT)


class BatchRetryForm(RequiredReasonForm):
    reset_heartbeat = forms.BooleanField(required=False, label="Forget the heartbeats' details")
