"""What a schedule must say of itself. Source: CreateSchedule, UpdateSchedule and validateStartWorkflowArgsForSchedule in
upstream's service/frontend/workflow_handler.go.
"""

from __future__ import annotations

from temporalio.api.enums.v1 import WorkflowIdReusePolicy
from temporalio.api.schedule.v1 import Schedule
from temporalio.api.workflow.v1 import NewWorkflowExecutionInfo

from common.errors import InvalidArgument
from frontend.checks.ids import check_workflow_id, too_long
from frontend.checks.priorities import check_priority
from frontend.checks.search_attributes import check_search_attributes
from frontend.checks.starting import check_timeouts
from frontend.checks.task_queues import check_user_task_queue
from frontend.services import Frontend
from history.versioning_override import check_structure

ID_PREFIX = "temporal-sys-scheduler:"
"""Upstream's schedules are workflows with ids that begin so: what is left is a schedule's id."""
STARTED_ID_SUFFIX = "-2009-11-10T23:00:00Z"
"""Such a time is appended to the ids of the workflows that a schedule starts."""
NOTES_LIMIT = 1000
_REUSE = (
    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_UNSPECIFIED,
    WorkflowIdReusePolicy.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
)


def check_schedule_id(schedule_id: str, *, limit: int) -> None:
    if not schedule_id:
        raise InvalidArgument("ScheduleId is not set on request.")
    check_workflow_id(ID_PREFIX + schedule_id, limit=limit)


def check_notes(*notes: str) -> None:
    if any(too_long(note, NOTES_LIMIT) for note in notes):
        raise InvalidArgument("Schedule notes exceeds limit.")


async def check_action(frontend: Frontend, schedule: Schedule, *, namespace: str) -> None:
    """The workflow that a schedule starts, checked as when it is started; types its search attributes."""
    if not schedule.action.HasField("start_workflow"):
        return
    action = schedule.action.start_workflow
    limit = frontend.config.id_limit
    check_workflow_id(action.workflow_id + STARTED_ID_SUFFIX, limit=limit)
    if not action.workflow_type.name:
        raise InvalidArgument("WorkflowType is not set on request.")
    if too_long(action.workflow_type.name, limit):
        raise InvalidArgument("WorkflowType length exceeds limit.")
    check_user_task_queue(action.task_queue, is_set=action.HasField("task_queue"), limit=limit)
    check_timeouts(action)
    _check_policies(action)
    if action.HasField("versioning_override"):
        check_structure(action.versioning_override)
    check_priority(action.priority, key_limit=frontend.config.fairness_key_limit)
    if action.search_attributes.indexed_fields:
        custom = await frontend.custom_attributes(namespace)
        check_search_attributes(action.search_attributes, namespace=namespace, custom=custom)


def _check_policies(action: NewWorkflowExecutionInfo) -> None:
    if action.cron_schedule:
        raise InvalidArgument("Scheduled workflow must not contain CronSchedule")
    if action.workflow_id_reuse_policy not in _REUSE:
        raise InvalidArgument("Scheduled workflow must not contain WorkflowIDReusePolicy")
