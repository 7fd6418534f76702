"""Which actions a page offers: those that its reader may do, and that suit what it shows."""

from __future__ import annotations

from typing import Any

from django import template
from django.contrib.admin.utils import quote
from django.urls import reverse

from common.archetypes import archetype_of
from tinytemporal_site.console.actions.bulk import BULK, Bulk
from tinytemporal_site.console.actions.catalog import ACTIONS, Action

register = template.Library()


@register.simple_tag(takes_context=True)
def execution_actions(context: Any, run: Any) -> list[tuple[Action, str]]:
    """With their addresses. The actions are those of workflows."""
    if archetype_of(run.workflow_id):
        return []
    user = context["request"].user
    return [
        (action, reverse("admin:console_act", args=[quote(run.run_id), action.name]))
        for action in ACTIONS.values()
        if action.is_offered(run.status) and user.has_perm(action.permission)
    ]


@register.simple_tag(takes_context=True)
def unload_address(context: Any, queue: Any) -> str:
    """Empty when its reader may not."""
    if not context["request"].user.has_perm("console.unload_queue"):
        return ""
    return reverse("admin:console_unload", args=[quote(queue.physical_queue)])


@register.simple_tag(takes_context=True)
def bulk_actions(context: Any) -> list[Bulk]:
    user = context["request"].user
    if not user.has_perm("console.run_batch"):
        return []
    return [bulk for bulk in BULK.values() if user.has_perm(bulk.permission)]
