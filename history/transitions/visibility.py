"""What the read model shows of a run, derived from its state alone, so that `manage.py verify` can derive it again.

record_visibility(draft) -> None    call whenever status, memo, search attributes, … change
visibility_of(info, *, task_id, transitions) -> VisibilityIntent
"""

from __future__ import annotations

from temporalio.api.common.v1 import Payload

from common.archetypes import DIVISIONS, business_id
from history.records import ExecutionInfo, VisibilityIntent
from history.state import Draft


def record_visibility(draft: Draft) -> None:
    """Let the commit carry the run's whole present picture to the read model."""
    info = draft.info
    # The present transition is counted when it is kept.
    transitions = info.state_transition_count + 1
    draft.visibility = visibility_of(info, task_id=draft.work.next_task_id(), transitions=transitions)


def visibility_of(info: ExecutionInfo, *, task_id: int, transitions: int) -> VisibilityIntent:
    """As upstream, length, size and transitions of the history, and what it refers to, are shown once the run has closed."""
    closed = info.closed_at is not None
    parent = info.parent
    if info.archetype:
        return _of_archetype(info, task_id=task_id, transitions=transitions)
    return VisibilityIntent(
        task_id=task_id,
        namespace=info.namespace,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        workflow_type=info.workflow_type,
        task_queue=info.task_queue,
        status=info.status,
        start_time=info.started_at,
        execution_time=info.execution_time,
        close_time=info.closed_at,
        history_length=info.next_event_id - 1 if closed else 0,
        history_size=info.history_size if closed else 0,
        state_transition_count=transitions if closed else 0,
        parent_workflow_id=parent.workflow_id if parent else "",
        parent_run_id=parent.run_id if parent else "",
        root_workflow_id=info.root_workflow_id,
        root_run_id=info.root_run_id,
        search_attributes=_with_external_payloads(info) if closed else info.search_attributes,
        memo=info.memo,
    )


def _of_archetype(info: ExecutionInfo, *, task_id: int, transitions: int) -> VisibilityIntent:
    """In a division of its own, so that it is in no list of workflows, under the id that its client knows."""
    closed = info.closed_at is not None
    division = Payload(
        metadata={"encoding": b"json/plain", "type": b"Keyword"}, data=f'"{DIVISIONS[info.archetype]}"'.encode()
    )
    return VisibilityIntent(
        task_id=task_id,
        namespace=info.namespace,
        workflow_id=business_id(info.workflow_id),
        run_id=info.run_id,
        workflow_type=info.workflow_type,
        task_queue=info.task_queue,
        status=info.status,
        start_time=info.started_at,
        execution_time=info.execution_time,
        close_time=info.closed_at,
        state_transition_count=transitions if closed else 0,
        search_attributes={**info.search_attributes, "TemporalNamespaceDivision": division},
        memo=info.memo,
    )


def _with_external_payloads(info: ExecutionInfo) -> dict[str, Payload]:
    if not info.external_payload_count:
        return info.search_attributes
    return {
        **info.search_attributes,
        "TemporalExternalPayloadCount": _int(info.external_payload_count),
        "TemporalExternalPayloadSizeBytes": _int(info.external_payload_size),
    }


def _int(value: int) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "type": b"Int"}, data=str(value).encode())
