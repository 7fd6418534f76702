"""Recording a marker: an event that only the worker's own code gives a meaning (side effects, local activities, …)."""

from __future__ import annotations

from temporalio.api.command.v1 import Command
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import MarkerRecordedEventAttributes

from history.commands import CommandContext, handles
from history.commands.limits import ID_LIMIT, check_size, details_size, id_size

BAD_MARKER = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_BAD_RECORD_MARKER_ATTRIBUTES


@handles(CommandType.COMMAND_TYPE_RECORD_MARKER)
def record_marker(ctx: CommandContext, command: Command) -> None:
    if not command.HasField("record_marker_command_attributes"):
        raise ctx.bad(BAD_MARKER, "RecordMarkerCommandAttributes is not set on RecordMarkerCommand.")
    attributes = command.record_marker_command_attributes
    name = attributes.marker_name
    if not name:
        raise ctx.bad(BAD_MARKER, "MarkerName is not set on RecordMarkerCommand.")
    if (length := id_size(name)) > ID_LIMIT:
        raise ctx.bad(
            BAD_MARKER,
            "MarkerName on RecordMarkerCommand exceeds length limit. "
            f"MarkerName={name} Length={length} Limit={ID_LIMIT}",
        )
    check_size(
        ctx, details_size(attributes.details), BAD_MARKER, "RecordMarkerCommandAttributes.Details exceeds size limit."
    )
    ctx.add(
        command,
        MarkerRecordedEventAttributes(
            marker_name=name,
            details=attributes.details,
            workflow_task_completed_event_id=ctx.completed_event_id,
            header=attributes.header if attributes.HasField("header") else None,
            failure=attributes.failure if attributes.HasField("failure") else None,
        ),
    )
