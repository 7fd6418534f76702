"""A realistic history, event by event, for the codec's speed and hook tests."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import (
    ActivityType,
    Header,
    Memo,
    Payload,
    Payloads,
    RetryPolicy,
    SearchAttributes,
    WorkerVersionStamp,
    WorkflowType,
)
from temporalio.api.enums.v1 import EventType, TaskQueueKind
from temporalio.api.failure.v1 import ApplicationFailureInfo, Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.sdk.v1 import WorkflowTaskCompletedMetadata
from temporalio.api.taskqueue.v1 import TaskQueue

RUN_ID = "0199f5a2-7c1e-7b52-9d3c-2f6b8a4e1d07"
RETRY_POLICY = RetryPolicy(
    initial_interval=Duration(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=Duration(seconds=100),
    non_retryable_error_types=["ValueError"],
)


def payload(data: bytes, *, encoding: bytes = b"json/plain") -> Payload:
    """Return a payload as the SDK's default converter makes it."""
    return Payload(metadata={"encoding": encoding}, data=data)


def payloads(*data: bytes) -> Payloads:
    """Return payloads as the SDK's default converter makes them."""
    return Payloads(payloads=[payload(each) for each in data])


FAILURE = Failure(
    message="could not charge the card",
    source="PythonSDK",
    stack_trace='  File "/app/activities.py", line 31, in charge\n    raise ApplicationError("could not charge")\n',
    application_failure_info=ApplicationFailureInfo(type="CardError", details=payloads(b'{"code":"declined"}')),
    cause=Failure(message="declined", source="PythonSDK", application_failure_info=ApplicationFailureInfo(type="E")),
)


def _event(event_id: int, kind: str, **attributes: object) -> HistoryEvent:
    name = f"{kind.lower()}_event_attributes"
    return HistoryEvent(
        event_id=event_id,
        event_time=Timestamp(seconds=1_760_000_000 + event_id, nanos=123_456_789 * event_id % 1_000_000_000),
        event_type=EventType.Value(f"EVENT_TYPE_{kind}"),
        task_id=1_048_576 + event_id,
        **{name: attributes},  # type: ignore[arg-type]
    )


def history() -> list[HistoryEvent]:
    """Return the events of one order: an activity that fails and is retried, a signal, a timer, a result."""
    queue = TaskQueue(name="orders", kind=TaskQueueKind.TASK_QUEUE_KIND_NORMAL)
    ten, zero = Duration(seconds=10), Duration()
    order = payload(b'{"order":"A-1041","items":[{"sku":"X1","count":2},{"sku":"Y7","count":1}],"total":129.5}')
    return [
        _event(
            1,
            "WORKFLOW_EXECUTION_STARTED",
            workflow_type=WorkflowType(name="ProcessOrder"),
            task_queue=queue,
            input=Payloads(payloads=[order]),
            workflow_execution_timeout=zero,
            workflow_run_timeout=zero,
            workflow_task_timeout=ten,
            original_execution_run_id=RUN_ID,
            identity="1234@host",
            first_execution_run_id=RUN_ID,
            attempt=1,
            first_workflow_task_backoff=zero,
            memo=Memo(fields={"note": payload(b'"first order"')}),
            search_attributes=SearchAttributes(indexed_fields={"Customer": payload(b'"c-77"')}),
            header=Header(),
            workflow_id="order-A-1041",
        ),
        _event(2, "WORKFLOW_TASK_SCHEDULED", task_queue=queue, start_to_close_timeout=ten, attempt=1),
        _event(
            3,
            "WORKFLOW_TASK_STARTED",
            scheduled_event_id=2,
            identity="1234@host",
            request_id=RUN_ID,
            history_size_bytes=742,
            worker_version=WorkerVersionStamp(build_id="f3b1"),
        ),
        _event(
            4,
            "WORKFLOW_TASK_COMPLETED",
            scheduled_event_id=2,
            started_event_id=3,
            identity="1234@host",
            worker_version=WorkerVersionStamp(build_id="f3b1"),
            sdk_metadata=WorkflowTaskCompletedMetadata(
                lang_used_flags=[1, 3], sdk_name="temporal-python", sdk_version="1.32.0"
            ),
        ),
        _event(
            5,
            "ACTIVITY_TASK_SCHEDULED",
            activity_id="1",
            activity_type=ActivityType(name="charge"),
            task_queue=queue,
            header=Header(),
            input=Payloads(payloads=[order]),
            schedule_to_close_timeout=zero,
            schedule_to_start_timeout=zero,
            start_to_close_timeout=ten,
            heartbeat_timeout=zero,
            workflow_task_completed_event_id=4,
            retry_policy=RETRY_POLICY,
        ),
        _event(
            6,
            "ACTIVITY_TASK_STARTED",
            scheduled_event_id=5,
            identity="1234@host",
            request_id=RUN_ID,
            attempt=2,
            last_failure=FAILURE,
        ),
        _event(
            7,
            "ACTIVITY_TASK_COMPLETED",
            result=payloads(b'{"charged":true}'),
            scheduled_event_id=5,
            started_event_id=6,
            identity="1234@host",
        ),
        _event(
            8,
            "WORKFLOW_EXECUTION_SIGNALED",
            signal_name="approve",
            input=payloads(b'"manager"'),
            identity="cli@host",
            header=Header(),
        ),
        _event(
            9,
            "TIMER_STARTED",
            timer_id="2",
            start_to_fire_timeout=Duration(seconds=3600, nanos=500_000_000),
            workflow_task_completed_event_id=4,
        ),
        _event(10, "TIMER_FIRED", timer_id="2", started_event_id=9),
        _event(
            11,
            "ACTIVITY_TASK_FAILED",
            failure=FAILURE,
            scheduled_event_id=5,
            started_event_id=6,
            identity="1234@host",
            retry_state=5,
        ),
        _event(12, "WORKFLOW_EXECUTION_COMPLETED", result=payloads(b'"shipped"'), workflow_task_completed_event_id=11),
    ]
