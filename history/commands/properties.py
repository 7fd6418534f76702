"""Commands that change what clients see of a run: its search attributes and its memo."""

from __future__ import annotations

from temporalio.api.command.v1 import Command
from temporalio.api.common.v1 import Memo
from temporalio.api.enums.v1 import CommandType, WorkflowTaskFailedCause
from temporalio.api.history.v1 import (
    UpsertWorkflowSearchAttributesEventAttributes,
    WorkflowPropertiesModifiedEventAttributes,
)

from common.errors import InvalidArgument
from history import search_attributes
from history.apply.properties import merged
from history.commands import BadCommand, CommandContext, cause_name, handles
from history.commands.limits import check_search_attribute_names, check_size, map_size
from history.transitions.visibility import record_visibility

Cause = WorkflowTaskFailedCause
BAD_ATTRIBUTES = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_SEARCH_ATTRIBUTES
BAD_PROPERTIES = Cause.WORKFLOW_TASK_FAILED_CAUSE_BAD_MODIFY_WORKFLOW_PROPERTIES_ATTRIBUTES


@handles(CommandType.COMMAND_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES)
def upsert_search_attributes(ctx: CommandContext, command: Command) -> None:
    name = "UpsertWorkflowSearchAttributesCommand"
    if not command.HasField("upsert_workflow_search_attributes_command_attributes"):
        raise ctx.bad(BAD_ATTRIBUTES, f"{name}Attributes is not set on {name}.")
    attributes = command.upsert_workflow_search_attributes_command_attributes
    if not attributes.HasField("search_attributes"):
        raise ctx.bad(BAD_ATTRIBUTES, f"SearchAttributes is not set on {name}.")
    fields = attributes.search_attributes.indexed_fields
    if not fields:
        raise ctx.bad(BAD_ATTRIBUTES, f"IndexedFields is not set on {name}.")
    check_search_attribute_names(ctx, fields)
    try:
        search_attributes.check_search_attributes(fields, custom=ctx.custom_search_attributes)
    except InvalidArgument as error:
        raise ctx.bad(BAD_ATTRIBUTES, error.message) from error
    check_size(
        ctx, map_size(fields), BAD_ATTRIBUTES, "UpsertWorkflowSearchAttributesCommandAttributes exceeds size limit."
    )
    try:
        search_attributes.check_size(merged(ctx.draft.info.search_attributes, fields))
    except InvalidArgument as error:
        raise BadCommand(BAD_ATTRIBUTES, f"{cause_name(BAD_ATTRIBUTES)}: {error.message}", terminate=True) from error
    ctx.add(
        command,
        UpsertWorkflowSearchAttributesEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id, search_attributes=attributes.search_attributes
        ),
    )
    record_visibility(ctx.draft)


@handles(CommandType.COMMAND_TYPE_MODIFY_WORKFLOW_PROPERTIES)
def modify_properties(ctx: CommandContext, command: Command) -> None:
    name = "ModifyWorkflowPropertiesCommand"
    if not command.HasField("modify_workflow_properties_command_attributes"):
        raise ctx.bad(BAD_PROPERTIES, f"{name}Attributes is not set on {name}.")
    attributes = command.modify_workflow_properties_command_attributes
    if not attributes.HasField("upserted_memo"):
        raise ctx.bad(BAD_PROPERTIES, f"UpsertedMemo is not set on {name}.")
    fields = attributes.upserted_memo.fields
    if not fields:
        raise ctx.bad(BAD_PROPERTIES, f"UpsertedMemo.Fields is not set on {name}.")
    check_size(ctx, map_size(fields), BAD_PROPERTIES, "ModifyWorkflowPropertiesCommandAttributes exceeds size limit.")
    if Memo(fields=merged(ctx.draft.info.memo, fields)).ByteSize() > ctx.work.config.memo_limit:
        raise BadCommand(
            BAD_PROPERTIES,
            f"{cause_name(BAD_PROPERTIES)}: ModifyWorkflowPropertiesCommandAttributes. Memo exceeds size limit.",
            terminate=True,
        )
    ctx.add(
        command,
        WorkflowPropertiesModifiedEventAttributes(
            workflow_task_completed_event_id=ctx.completed_event_id, upserted_memo=attributes.upserted_memo
        ),
    )
    record_visibility(ctx.draft)
