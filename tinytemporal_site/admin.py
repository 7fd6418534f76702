"""Who is in the cluster, in the admin."""

from __future__ import annotations

from django.contrib import admin

from common.admin import ReadOnlyAdmin
from tinytemporal_site.models import ClusterMember


@admin.register(ClusterMember)
class ClusterMemberAdmin(ReadOnlyAdmin):
    list_display = ("member", "address", "started_at", "heartbeat_at")
    ordering = ("member",)
