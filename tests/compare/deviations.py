"""Where this server answers differently on purpose, each with its reason; everything else that differs is a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from tests.compare.differences import differences


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """Differences whose line matches `line`, in the scenarios that match `scenario` (regular expressions of the whole)."""

    why: str
    line: str
    scenario: str = ".*"

    def covers(self, scenario: str, line: str) -> bool:
        return bool(re.fullmatch(self.scenario, scenario) and re.fullmatch(self.line, line, re.DOTALL))


DEVIATIONS = (
    Deviation(
        why="A closed run waits for nothing; the official server shows what it had been waiting for.",
        line=r".* / left pending_(workflow_task|activities|children): .* \| missing",
    ),
    Deviation(
        why="When a reset point goes is written into the run that follows; there, into the closed run as well while it is in memory.",
        line=r"at the end, .* / workflow_execution_info / auto_reset_points / points / \d / expire_time: .* \| missing",
    ),
    Deviation(
        why="A worker is told the options that hold, not those that were scheduled.",
        line=r"task / (start_to_close|heartbeat)_timeout: .*",
        scenario="activity_options",
    ),
    Deviation(
        why="A time-out completes an attempt as a failure does.",
        line=r".* / last_attempt_complete_time: missing \| '<time>'",
        scenario="activities_time_out.*",
    ),
    Deviation(
        why="A command for an unknown namespace fails the workflow task with its reason; there the completion is refused and the "
        "task runs into its time-out, again and again.",
        line=r"(told for|at the end,) (.* )?unknown namespace.*",
        scenario="bad_(children|externals)",
    ),
    Deviation(
        why="The same for a message that has no body.",
        line=r"at the end, .*no body.*",
        scenario="updates_with_bad_messages",
    ),
    Deviation(
        why="An update that waits while its run continues as new is given to the next run; there the caller is sent away to try again.",
        line=r"(waiting, by id alone|messages of the next run|at the end, .*main\+).*",
        scenario="updates_over_continue_as_new",
    ),
    Deviation(
        why="The state of a closed run knows nothing of what was never accepted; both are NOT_FOUND.",
        line=r"late polled / message: .*",
        scenario="updates_outlived_by_the_run",
    ),
    Deviation(
        why="An update-with-start that finds its run says as much of it as a start does.",
        line=r".* / responses / \d / (start|update)_workflow / (link|first_execution_run_id): missing \| .*",
        scenario="update_with_start",
    ),
    Deviation(
        why="A repeated reset is the same reset.",
        line=r"(same request / run_id|at the end, (history of )?(main|reset)\b).*",
        scenario="resets_a_running_one",
    ),
    Deviation(
        why="Histories are not kept in batches, so there is no boundary of one to miss.",
        line=r"event \d / message: 'StateRebuilder unable to Rebuild .*",
        scenario="resets_refused",
    ),
    Deviation(
        why="The size of the history is known when an eager task starts.",
        line=r".* WORKFLOW_TASK_STARTED / history_size_bytes: missing \| '<present>'",
        scenario="start_eagerly",
    ),
    Deviation(
        why="Back-off of failing workflow tasks is random within bounds.",
        line=r".* WORKFLOW_TASK_SCHEDULED / start_to_close_timeout: .*",
        scenario="tasks_(that_)?fail.*",
    ),
    Deviation(
        why="An answer to a query without a type is an error of its worker, and told at once.",
        line=r"unspecified / (refused|message): .*",
        scenario="queries_of_an_idle_run",
    ),
    Deviation(
        why="An activity by id without a workflow is one of its own, which there are none of yet.",
        line=r"no workflow / .*",
        scenario="activities_answered_by_id",
    ),
    Deviation(
        why="No points, told by an empty message or by none.",
        line=r".* / auto_reset_points: missing \| \{\}",
    ),
)


@dataclass(kw_only=True)
class Judgement:
    wrong: list[str] = field(default_factory=list)
    meant: list[Deviation] = field(default_factory=list)
    """One for each difference that it covers."""


def judged(scenario: str, official: Any, ours: Any) -> Judgement:
    """All differences of one scenario, those that are meant apart."""
    judgement = Judgement()
    for line in differences(official, ours):
        meant = next((deviation for deviation in DEVIATIONS if deviation.covers(scenario, line)), None)
        if meant is None:
            judgement.wrong.append(line)
        else:
            judgement.meant.append(meant)
    return judgement
