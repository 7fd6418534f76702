"""How upserted search attributes and memo change a run's state.

A null payload removes its key. Source: upstream's payload.MergeMapOfPayload.
"""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent

from history.apply import applies
from history.state import Draft

_NULLS = frozenset((b"", b"null", b"[]"))


def merged(present: Mapping[str, Payload], upserted: Mapping[str, Payload]) -> dict[str, Payload]:
    """A new map with the upserts applied."""
    result = dict(present)
    for name, payload in upserted.items():
        if is_null(payload):
            result.pop(name, None)
        else:
            result[name] = payload
    return result


def is_null(payload: Payload) -> bool:
    """Whether a payload says "nothing", whatever its encoding: no data, JSON null, or an empty JSON list."""
    return payload.data in _NULLS


@applies(EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES)
def apply_search_attributes(draft: Draft, event: HistoryEvent) -> None:
    fields = event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
    draft.info.search_attributes = merged(draft.info.search_attributes, fields)


@applies(EventType.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED)
def apply_properties(draft: Draft, event: HistoryEvent) -> None:
    fields = event.workflow_properties_modified_event_attributes.upserted_memo.fields
    draft.info.memo = merged(draft.info.memo, fields)
