"""The search attribute TemporalReportedProblems: set when a run's workflow tasks keep failing, gone once one completes.

    report_problems(draft) -> None     after a failed or timed-out task
    clear_problems(draft) -> None      after a completed one

Source: upstream's UpdateReportedProblemsSearchAttribute and its default of five consecutive problems.
"""

from __future__ import annotations

import json

from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import TimeoutType, WorkflowTaskFailedCause

from history.state import Draft
from history.transitions.visibility import record_visibility

ATTRIBUTE = "TemporalReportedProblems"
CONSECUTIVE = 5


def report_problems(draft: Draft) -> None:
    info = draft.info
    if info.task_failures < CONSECUTIVE or not info.last_task_failure_category:
        return
    category = info.last_task_failure_category
    problems = [f"category={category}", f"cause={category}Cause{_camel(info.last_task_failure_cause)}"]
    data = json.dumps(problems, separators=(",", ":")).encode()
    present = info.search_attributes.get(ATTRIBUTE)
    if present is not None and present.data == data:
        return
    payload = Payload(metadata={"encoding": b"json/plain", "type": b"KeywordList"}, data=data)
    info.search_attributes = {**info.search_attributes, ATTRIBUTE: payload}
    record_visibility(draft)


def clear_problems(draft: Draft) -> None:
    info = draft.info
    if ATTRIBUTE not in info.search_attributes:
        return
    info.search_attributes = {name: value for name, value in info.search_attributes.items() if name != ATTRIBUTE}
    info.last_task_failure_category = info.last_task_failure_cause = ""
    record_visibility(draft)


def _camel(name: str) -> str:
    """An enum value's name without its prefix, in CamelCase."""
    for enum in (WorkflowTaskFailedCause, TimeoutType):
        if name in enum.keys():  # noqa: SIM118 - an enum wrapper, not a dict
            prefix = "WORKFLOW_TASK_FAILED_CAUSE_" if enum is WorkflowTaskFailedCause else "TIMEOUT_TYPE_"
            return "".join(part.title() for part in name.removeprefix(prefix).split("_"))
    return name
