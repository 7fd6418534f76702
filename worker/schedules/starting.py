"""The start of a run by a schedule. Source: startWorkflow in upstream's service/worker/scheduler/workflow.go."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid5

import msgspec
from temporalio.api.common.v1 import Callback, Payload
from temporalio.api.enums.v1 import WorkflowIdConflictPolicy, WorkflowIdReusePolicy
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest

from common.contracts.schedules import CALLBACK_URL, ScheduleRecord, Starting
from common.protos import duration, from_duration
from history.config import HistoryConfig
from history.validation import capped_task_timeout, check_retry_policy, run_timeout_within

_COPIED = frozenset(
    (
        "workflow_type",
        "task_queue",
        "input",
        "workflow_execution_timeout",
        "retry_policy",
        "memo",
        "header",
        "user_metadata",
        "versioning_override",
        "priority",
    )
)


def start_request(
    record: ScheduleRecord, starting: Starting, *, config: HistoryConfig
) -> StartWorkflowExecutionRequest:
    """The same, whenever it is made for this start. Raises INVALID_ARGUMENT for a retry policy that is none, which upstream
    too finds out only now."""
    action = record.schedule.action.start_workflow
    start = starting.start
    # An id that has the slot's time in it is used once, however often the start is tried.
    once = not start.manual and not record.schedule.policies.keep_original_workflow_id
    reuse = WorkflowIdReusePolicy
    request = StartWorkflowExecutionRequest(
        namespace=record.namespace,
        workflow_id=starting.workflow_id,
        identity=identity_of(record),
        request_id=str(uuid5(UUID(record.incarnation), f"start {start.number}")),
        workflow_id_reuse_policy=(
            reuse.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE if once else reuse.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
        ),
        workflow_id_conflict_policy=WorkflowIdConflictPolicy.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
    )
    for field, value in action.ListFields():
        if field.name in _COPIED:
            getattr(request, field.name).CopyFrom(value)
    if action.HasField("retry_policy"):
        check_retry_policy(action.retry_policy)
    _set_timeouts(request, record, config)
    _set_attributes(request, record, start.nominal_at)
    if starting.tracked:
        if record.last_result is not None:
            request.last_completion_result.CopyFrom(record.last_result)
        if record.last_failure is not None:
            request.continued_failure.CopyFrom(record.last_failure)
        request.completion_callbacks.append(_callback(record, start.number))
    return request


def identity_of(record: ScheduleRecord) -> str:
    return f"temporal-scheduler-{record.namespace}-{record.schedule_id}"


def _set_timeouts(request: StartWorkflowExecutionRequest, record: ScheduleRecord, config: HistoryConfig) -> None:
    action = record.schedule.action.start_workflow
    run = run_timeout_within(
        from_duration(action.workflow_run_timeout),
        execution_timeout=from_duration(action.workflow_execution_timeout),
    )
    task = capped_task_timeout(from_duration(action.workflow_task_timeout), run_timeout=run, config=config)
    request.workflow_run_timeout.CopyFrom(duration(run))
    request.workflow_task_timeout.CopyFrom(duration(task))


def _set_attributes(request: StartWorkflowExecutionRequest, record: ScheduleRecord, nominal_at: datetime) -> None:
    fields = request.search_attributes.indexed_fields
    for name, payload in record.schedule.action.start_workflow.search_attributes.indexed_fields.items():
        fields[name].CopyFrom(payload)
    fields["TemporalScheduledStartTime"].CopyFrom(_payload(f"{nominal_at:%Y-%m-%dT%H:%M:%SZ}", "Datetime"))
    fields["TemporalScheduledById"].CopyFrom(_payload(record.schedule_id, "Keyword"))


def _payload(value: str, type_name: str) -> Payload:
    return Payload(metadata={"encoding": b"json/plain", "type": type_name.encode()}, data=msgspec.json.encode(value))


def _callback(record: ScheduleRecord, number: int) -> Callback:
    callback = Callback()
    callback.nexus.url = CALLBACK_URL
    callback.nexus.header["schedule-id"] = record.schedule_id
    callback.nexus.header["incarnation"] = record.incarnation
    callback.nexus.header["number"] = str(number)
    return callback
