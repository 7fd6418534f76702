"""The worker role's table in the admin."""

from __future__ import annotations

from django.contrib import admin

from common.keyed_admin import KeyedAdmin, columns_of
from worker.models import BatchOperationView, ScheduleView


@admin.register(BatchOperationView)
class BatchOperationAdmin(KeyedAdmin):
    """Newest first, namespace by namespace."""

    key_fields = ("namespace", "job_id")
    list_display = ("job_id", "namespace", "operation", "state", "started_at", "closed_at")
    ordering = ("-namespace", "-started_at", "-job_id")
    fields = tuple(name for name in columns_of(BatchOperationView) if name != "id")


@admin.register(ScheduleView)
class ScheduleAdmin(KeyedAdmin):
    """Newest first, namespace by namespace."""

    key_fields = ("namespace", "schedule_id")
    list_display = ("schedule_id", "namespace", "next_at", "created_at")
    ordering = ("namespace", "-created_at", "schedule_id")
    fields = tuple(name for name in columns_of(ScheduleView) if name != "id")
