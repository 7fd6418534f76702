"""Commands as a worker sends them, with what a test does not care about filled in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio.api.command.v1 import (
    CancelTimerCommandAttributes,
    Command,
    CompleteWorkflowExecutionCommandAttributes,
    ModifyWorkflowPropertiesCommandAttributes,
    RecordMarkerCommandAttributes,
    RequestCancelActivityTaskCommandAttributes,
    ScheduleActivityTaskCommandAttributes,
    StartTimerCommandAttributes,
    UpsertWorkflowSearchAttributesCommandAttributes,
)
from temporalio.api.common.v1 import ActivityType, Memo, Payload, RetryPolicy, SearchAttributes
from temporalio.api.enums.v1 import CommandType

from common.protos import duration


def schedule_activity(
    activity_id: str = "a",
    *,
    start_to_close: float = 10,
    schedule_to_close: float = 0,
    schedule_to_start: float = 0,
    heartbeat: float = 0,
    retry: RetryPolicy | None = None,
    **fields: Any,
) -> Command:
    fields.setdefault("activity_type", ActivityType(name="Act"))
    attributes = ScheduleActivityTaskCommandAttributes(activity_id=activity_id, retry_policy=retry, **fields)
    if not attributes.HasField("task_queue"):
        attributes.task_queue.name = "queue"
    for name, seconds in (
        ("start_to_close_timeout", start_to_close),
        ("schedule_to_close_timeout", schedule_to_close),
        ("schedule_to_start_timeout", schedule_to_start),
        ("heartbeat_timeout", heartbeat),
    ):
        if seconds:
            getattr(attributes, name).CopyFrom(duration(timedelta(seconds=seconds)))
    return Command(
        command_type=CommandType.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
        schedule_activity_task_command_attributes=attributes,
    )


def retry_policy(
    *, initial: float = 1, coefficient: float = 2, maximum: float = 0, attempts: int = 0, types: tuple[str, ...] = ()
) -> RetryPolicy:
    policy = RetryPolicy(
        initial_interval=duration(timedelta(seconds=initial)),
        backoff_coefficient=coefficient,
        maximum_attempts=attempts,
        non_retryable_error_types=types,
    )
    if maximum:
        policy.maximum_interval.CopyFrom(duration(timedelta(seconds=maximum)))
    return policy


def cancel_activity(scheduled_event_id: int) -> Command:
    return Command(
        command_type=CommandType.COMMAND_TYPE_REQUEST_CANCEL_ACTIVITY_TASK,
        request_cancel_activity_task_command_attributes=RequestCancelActivityTaskCommandAttributes(
            scheduled_event_id=scheduled_event_id
        ),
    )


def start_timer(timer_id: str = "t", seconds: float | None = 60) -> Command:
    attributes = StartTimerCommandAttributes(timer_id=timer_id)
    if seconds is not None:
        attributes.start_to_fire_timeout.CopyFrom(duration(timedelta(seconds=seconds)))
    return Command(command_type=CommandType.COMMAND_TYPE_START_TIMER, start_timer_command_attributes=attributes)


def cancel_timer(timer_id: str = "t") -> Command:
    return Command(
        command_type=CommandType.COMMAND_TYPE_CANCEL_TIMER,
        cancel_timer_command_attributes=CancelTimerCommandAttributes(timer_id=timer_id),
    )


def marker(name: str = "m", **fields: Any) -> Command:
    return Command(
        command_type=CommandType.COMMAND_TYPE_RECORD_MARKER,
        record_marker_command_attributes=RecordMarkerCommandAttributes(marker_name=name, **fields),
    )


def upsert(**values: bytes) -> Command:
    fields = {name: Payload(metadata={"encoding": b"json/plain"}, data=data) for name, data in values.items()}
    return Command(
        command_type=CommandType.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
        upsert_workflow_search_attributes_command_attributes=UpsertWorkflowSearchAttributesCommandAttributes(
            search_attributes=SearchAttributes(indexed_fields=fields)
        ),
    )


def upsert_memo(**values: bytes) -> Command:
    fields = {name: Payload(metadata={"encoding": b"json/plain"}, data=data) for name, data in values.items()}
    return Command(
        command_type=CommandType.COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES,
        modify_workflow_properties_command_attributes=ModifyWorkflowPropertiesCommandAttributes(
            upserted_memo=Memo(fields=fields)
        ),
    )


def complete_workflow() -> Command:
    return Command(
        command_type=CommandType.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
        complete_workflow_execution_command_attributes=CompleteWorkflowExecutionCommandAttributes(),
    )
