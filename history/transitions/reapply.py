"""Applying events again, in a run that took another's place, that others brought about.

    reapply_chain(draft, events, *, exclude, find) -> None

Source: upstream's reapplyEvents in service/history/ndc/workflow_resetter.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import Message
from temporalio.api.enums.v1 import EventType, ResetReapplyExcludeType, UpdateAdmittedEventOrigin
from temporalio.api.history.v1 import (
    HistoryEvent,
    WorkflowExecutionUpdateAdmittedEventAttributes,
)
from temporalio.api.update.v1 import Request

from common.protos import attributes_of
from history.apply.children import ENDS
from history.apply.nexus import ENDS as NEXUS_ENDS
from history.events import add_event
from history.state import Draft
from history.transitions.signals import add_signal

Exclude = ResetReapplyExcludeType
SIGNAL = Exclude.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL
NEXUS = Exclude.RESET_REAPPLY_EXCLUDE_TYPE_NEXUS
UPDATE = Exclude.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE
ALL = frozenset(Exclude.values()) - {Exclude.RESET_REAPPLY_EXCLUDE_TYPE_UNSPECIFIED}

Excluded = frozenset[Exclude.ValueType]


def reapply_chain(
    draft: Draft,
    events: Sequence[HistoryEvent],
    *,
    exclude: Excluded,
    find: Callable[[str], Sequence[HistoryEvent] | None],
) -> None:
    """Apply a run's later events and those of the runs it continued as, as far as they are kept. `find` gives a run's events,
    or None. With all types excluded not even the ends of children are applied."""
    if exclude >= ALL:
        return
    for event in events:
        if event.event_type in _CHILD_EVENTS:
            _reapply_child(draft, event)
        else:
            _reapply(draft, event, exclude)
    next_run_id = _continued_to(events)
    while next_run_id:
        later = find(next_run_id)
        if later is None:
            return
        for event in later:
            _reapply(draft, event, exclude)
        next_run_id = _continued_to(later)


def _continued_to(events: Sequence[HistoryEvent]) -> str:
    if not events or events[-1].event_type != EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
        return ""
    return events[-1].workflow_execution_continued_as_new_event_attributes.new_execution_run_id


def _reapply(draft: Draft, event: HistoryEvent, exclude: Excluded) -> None:
    match event.event_type:
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED if SIGNAL not in exclude:
            signaled = event.workflow_execution_signaled_event_attributes
            add_signal(
                draft,
                name=signaled.signal_name,
                payloads=signaled.input if signaled.HasField("input") else None,
                identity=signaled.identity,
                header=signaled.header if signaled.HasField("header") else None,
                request_id=signaled.request_id,
                links=event.links,
            )
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ADMITTED if UPDATE not in exclude:
            admitted = event.workflow_execution_update_admitted_event_attributes
            _admit(draft, admitted.request, origin=admitted.origin)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED if UPDATE not in exclude:
            accepted = event.workflow_execution_update_accepted_event_attributes
            if accepted.HasField("accepted_request"):  # else its admission is an event of its own
                _admit(
                    draft,
                    accepted.accepted_request,
                    origin=UpdateAdmittedEventOrigin.UPDATE_ADMITTED_EVENT_ORIGIN_REAPPLY,
                )
        case event_type if event_type in _NEXUS_EVENTS and NEXUS not in exclude:
            _reapply_nexus(draft, event)
        case EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:
            _reapply_options(draft, event)
        case _:
            pass


def _admit(draft: Draft, request: Request, *, origin: UpdateAdmittedEventOrigin.ValueType) -> None:
    if request.meta.update_id not in draft.updates:
        add_event(draft, WorkflowExecutionUpdateAdmittedEventAttributes(request=request, origin=origin))


def _reapply_options(draft: Draft, event: HistoryEvent) -> None:
    options = event.workflow_execution_options_updated_event_attributes
    if options.attached_request_id and options.attached_request_id in draft.request_ids:
        return
    add_event(draft, options, links=event.links, worker_may_ignore=event.worker_may_ignore)


_NEXUS_EVENTS = frozenset((*NEXUS_ENDS, EventType.EVENT_TYPE_NEXUS_OPERATION_STARTED))


def _reapply_nexus(draft: Draft, event: HistoryEvent) -> None:
    """What became of an operation that the new run waits for as well: the same one, by its request id."""
    attributes: Any = attributes_of(event)
    item = draft.nexus_operations.get(attributes.scheduled_event_id)
    if item is None or item.request_id != attributes.request_id:
        return
    if event.event_type == EventType.EVENT_TYPE_NEXUS_OPERATION_STARTED and item.state == "started":
        return
    add_event(draft, attributes, links=event.links)


_CHILD_EVENTS = frozenset((*ENDS, EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED))


def _reapply_child(draft: Draft, event: HistoryEvent) -> None:
    """What became of a child that the new run waits for as well."""
    attributes = attributes_of(event)
    child = draft.children.get(attributes.initiated_event_id)  # type: ignore[attr-defined]
    if child is None:
        return
    if event.event_type in (
        EventType.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED,
        EventType.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_FAILED,
    ):
        if not child.started_event_id:
            add_event(draft, attributes)
    elif child.started_event_id:
        add_event(draft, _with_started_id(attributes, child.started_event_id))


def _with_started_id(attributes: Message, started_event_id: int) -> Message:
    copy = type(attributes)()
    copy.CopyFrom(attributes)
    copy.started_event_id = started_event_id  # type: ignore[attr-defined]
    return copy
