"""Django's admin log: who did what to which object. An entry is there before its action happens, and is completed with
the outcome: what was done is never unlogged, and what was refused is logged as refused."""

from __future__ import annotations

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.http import HttpRequest

BEGUN = "begun"


def begin(request: HttpRequest, *, model: type[Model], key: str, shown: str, action: str, reason: str = "") -> LogEntry:
    """`key` is the object's in the admin, `shown` what the log calls it."""
    assert request.user.pk is not None, "no action without somebody signed in"
    kind = ContentType.objects.get_for_model(model, for_concrete_model=False)
    return LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=kind,
        object_id=key,
        object_repr=shown[:200],
        action_flag=CHANGE,
        change_message=_text(action, reason, BEGUN),
    )


def complete(entry: LogEntry, *, action: str, outcome: str, reason: str = "") -> None:
    entry.change_message = _text(action, reason, outcome)
    entry.save(update_fields=["change_message"])


def _text(action: str, reason: str, outcome: str) -> str:
    return f"{action}{f' ({reason})' if reason else ''}: {outcome}"
