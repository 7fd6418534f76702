"""Who did what in the admin, for all who may see it."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin
from django.contrib.admin.models import LogEntry

from common.admin import ReadOnlyAdmin


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    list_display = ("action_time", "user", "content_type", "object_repr", "change_message")
    list_select_related = ("user", "content_type")
    ordering = ("-id",)
    sortable_by = ()
    fields: ClassVar[tuple[str, ...]] = (
        "action_time",
        "user",
        "content_type",
        "object_id",
        "object_repr",
        "change_message",
    )
