"""Links of Nexus calls (a URL and a type) as the API's links.

    link_of(url, kind) -> Link | None         None for what is no link of a kind that a history holds
    links_of(links) -> list[Link]             those of a call that are

Source: upstream's common/nexus/{links,link_converter}.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qs, unquote, urlsplit

from temporalio.api.common.v1 import Link
from temporalio.api.enums.v1 import EventType
from temporalio.api.nexus.v1 import Link as NexusLink

from common.nexus import event_type_words

ACTIVITY_LINK = "temporal.api.common.v1.Link.Activity"
WORKFLOW_LINK = "temporal.api.common.v1.Link.Workflow"
_PATH = re.compile(
    r"/namespaces/([^/]+)/(workflows|activities|nexus-operations)/([^/]+)/([^/]+)(?:/(history|details))?"
)
_EVENT_TYPES = {event_type_words(value): value for value in EventType.values()}


def links_of(links: Iterable[NexusLink]) -> list[Link]:
    found = (link_of(link.url, link.type) for link in links)
    return [link for link in found if link is not None]


def link_of(url: str, kind: str) -> Link | None:
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    match = _PATH.fullmatch(parts.path)
    if parts.scheme != "temporal" or match is None:
        return None
    namespace, place, subject, run_id, page = match.groups()
    namespace, subject, run_id = unquote(namespace), unquote(subject), unquote(run_id)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    match kind, place, page:
        case "temporal.api.common.v1.Link.WorkflowEvent", "workflows", "history":
            return _event_link(Link.WorkflowEvent(namespace=namespace, workflow_id=subject, run_id=run_id), query)
        case "temporal.api.common.v1.Link.Activity", "activities", "details":
            return Link(activity=Link.Activity(namespace=namespace, activity_id=subject, run_id=run_id))
        case "temporal.api.common.v1.Link.NexusOperation", "nexus-operations", "details":
            operation = Link.NexusOperation(namespace=namespace, operation_id=subject, run_id=run_id)
            return Link(nexus_operation=operation)
        case "temporal.api.common.v1.Link.Workflow", "workflows", None:
            reason = query.get("reason", "")
            return Link(workflow=Link.Workflow(namespace=namespace, workflow_id=subject, run_id=run_id, reason=reason))
    return None


def _event_link(event: Link.WorkflowEvent, query: dict[str, str]) -> Link | None:
    event_type = _event_type(query.get("eventType", ""))
    if event_type is None:
        return None
    match query.get("referenceType"):
        case "EventReference":
            event_id = query.get("eventID", "")
            if event_id and not event_id.isdigit():
                return None
            event.event_ref.event_id = int(event_id or 0)
            event.event_ref.event_type = event_type
        case "RequestIdReference":
            event.request_id_ref.request_id = query.get("requestID", "")
            event.request_id_ref.event_type = event_type
        case _:
            return None
    return Link(workflow_event=event)


def _event_type(name: str) -> EventType.ValueType | None:
    """In either form of its name."""
    if name in _EVENT_TYPES:
        return _EVENT_TYPES[name]
    return EventType.Value(name) if name in EventType.keys() else None  # noqa: SIM118  no mapping
