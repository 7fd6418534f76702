"""Workflow rules: what their conditions mean, and the three moments at which they pause an activity."""

from datetime import timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec.structs import replace
from temporalio.api.failure.v1 import Failure
from temporalio.api.rules.v1 import WorkflowRule, WorkflowRuleAction, WorkflowRuleSpec

from common.protos import timestamp
from common.records import decode, encode
from history.api.pending_activities import pending_activity
from history.records import ActivityItem, ExecutionInfo, NamespaceRecord
from history.transitions.rules import matches
from tests.history.commands import retry_policy, schedule_activity
from tests.history.harness import START, Host
from tests.history.test_pause import begin, fail, item_of, unpause_activity

ITEM = ActivityItem(
    scheduled_event_id=5,
    activity_id="the-id",
    activity_type="acts",
    task_queue="q",
    scheduled_at=START,
    first_scheduled_at=START,
)
BEFORE, AFTER = "2026-05-04T11:58:00Z", "2026-05-04T13:01:40.5+01:00"

# As the official server answered for an activity's first attempt (1.32.0): for which of these it was paused.
HOLD = (
    "ActivityType = 'acts'",
    'ActivityType = "acts"',
    "ActivityType != 'other'",
    "ActivityType starts_with 'ac'",
    "ActivityType STARTS_WITH 'ac'",
    "`ActivityType` = 'acts'",
    "ActivityType <> 'x'",
    "ActivityId = 'the-id'",
    "ActivityId starts_with 'the'",
    "ActivityState = 'Scheduled'",
    "ActivityState != 'Started'",
    "Attempts = 1",
    "Attempts < 2",
    "Attempts >= 1",
    "Attempts != -1",
    "TaskQueue = 'q'",
    "TaskQueue starts_with 'q'",
    f"StartedTime < '{AFTER}'",
    "StartedTime = '1970-01-01T00:00:00Z'",
    "StartedTime = 0",
    "StartedTime not between 0 and 5",
    "ActivityType = 'acts' order by ActivityType",
    "ActivityType = 'acts' group by x",
    "ActivityType = 'acts' for update",
    "ActivityType = 'acts';",
    "(ActivityType = 'acts')",
    "ActivityType = 'x' or Attempts = 1",
    "Attempts = 1 or Foo = 1",
    "Attempts = 1 and ActivityType = 'acts' and TaskQueue='q'",
    "ActivityType = 'acts' having 1=1",
)
DO_NOT_HOLD = (
    "ActivityType='other'",
    "ActivityType not starts_with 'ac'",
    "activitytype = 'acts'",
    "ActivityType = ''",
    "ActivityType = acts",
    "ActivityType = 5",
    "ActivityType in ('acts')",
    "ActivityType like 'ac%'",
    "ActivityType > 'aa'",
    "ActivityState = 'Started'",
    "ActivityState = 'SCHEDULED'",
    "Attempts > 1",
    "Attempts = '1'",
    "Attempts = 1.0",
    "Attempts between 0 and 3",
    "Attempts = 0x1",
    "BackoffInterval >= 0",
    "BackoffInterval = 'x'",
    "LastFailure contains 'x'",
    "LastFailure = 'x'",
    "StartedTime > 5",
    "StartedTime between 0 and 5",
    "StartedTime < 'abc'",
    "",
    "   ",
    "where ActivityType = 'acts'",
    "ActivityType = 'acts' limit 1",
    "Foo = 1 or Attempts = 1",
    "Attempts = 1 and Foo = 1",
    "Attempts = 2 and Foo = 1",
    "not Attempts = 2",
    "Attempts is not null",
    "now()",
    "Attempts",
    "'a' = 'a'",
    "ActivityType = null",
    "true",
    "Attempts <=> 1",
    "ActivityType = 'ac' 'ts'",
)
RUN_HOLDS = (
    "",
    "WorkflowId = 'wf'",
    "WorkflowId starts_with 'wf'",
    "WorkflowId != 'x'",
    "WorkflowType = 'Flow'",
    "ExecutionStatus = 'Running'",
    "ExecutionStatus != 'Completed'",
    "StartTime > 5",
    f"StartTime > '{BEFORE}'",
    f"StartTime between '{BEFORE}' and '{AFTER}'",
    "StartTime > '2020-01-01T00:00:00.5+01:00'",
    "WorkflowType = 'Flow' and ExecutionStatus = 'Running'",
)
RUN_DOES_NOT_HOLD = (
    "  ",
    "ExecutionStatus = 'running'",
    "ExecutionStatus = 1",
    "ExecutionStatus starts_with 'Run'",
    f"StartTime not between '{BEFORE}' and '{AFTER}'",
    "StartTime < '2020-01-01'",
    "TaskQueue = 'q'",
    "CustomKeywordField = 'x'",
    "RunId != 'x'",
)


def spec(
    predicate: str = "ActivityType = 'Act'", run: str = "", rule_id: str = "rule", **fields: Any
) -> WorkflowRuleSpec:
    fields.setdefault("actions", [WorkflowRuleAction(activity_pause={})])
    return WorkflowRuleSpec(id=rule_id, activity_start={"predicate": predicate}, visibility_query=run, **fields)


def info() -> ExecutionInfo:
    host = Host()
    host.start()
    return replace(host.info, workflow_type="Flow")


@pytest.mark.parametrize("predicate", HOLD)
def test_a_predicate_that_holds_for_a_first_attempt(predicate: str) -> None:
    assert matches(spec(predicate), info(), ITEM)


@pytest.mark.parametrize("predicate", DO_NOT_HOLD)
def test_a_predicate_that_does_not(predicate: str) -> None:
    assert not matches(spec(predicate), info(), ITEM)


@pytest.mark.parametrize("query", [*RUN_HOLDS, "WorkflowType starts_with 'Fl'"])
def test_a_query_that_holds_for_a_run(query: str) -> None:
    assert matches(spec("Attempts = 1", query), info(), ITEM)


@pytest.mark.parametrize("query", [*RUN_DOES_NOT_HOLD, "WorkflowType not starts_with 'Fl'"])
def test_a_query_that_does_not(query: str) -> None:
    assert not matches(spec("Attempts = 1", query), info(), ITEM)


def test_what_is_asked_of_a_retried_attempt() -> None:
    item = replace(
        ITEM,
        attempt=3,
        started_event_id=-124,
        started_at=START,
        scheduled_at=START,
        last_attempt_complete_at=START - timedelta(seconds=8.9),
        last_failure=Failure(message="a broken thing"),
    )
    for predicate in (
        "BackoffInterval = 8 AND Attempts > 2",
        "ActivityState = 'Started'",
        f"StartedTime > '{BEFORE}'",
        f"StartedTime BETWEEN '{BEFORE}' AND '{AFTER}'",
    ):
        assert matches(spec(predicate), info(), item), predicate
    # Its operator is one that the official server's parser does not know.
    assert not matches(spec("LastFailure contains 'broken'"), info(), item)
    assert matches(spec("ActivityState = 'CancelRequested'"), info(), replace(ITEM, cancel_requested=True))


def test_a_rule_without_a_trigger_means_nothing() -> None:
    assert not matches(WorkflowRuleSpec(id="only-id"), info(), ITEM)


# --- when they are asked


def ruled(*specs: WorkflowRuleSpec, **activity: Any) -> Host:
    activity.setdefault("retry", retry_policy(initial=10))
    host = Host()
    rule(host, *specs)
    host.start()
    host.do(schedule_activity(**activity))
    return host


def rule(host: Host, *specs: WorkflowRuleSpec) -> None:
    """These are the namespace's rules from now on."""
    assert host.namespace is not None
    rules = {spec.id: WorkflowRule(spec=spec, created_by_identity="me", description="why") for spec in specs}
    host.namespace = replace(host.namespace, workflow_rules=rules)


def test_the_first_attempt_is_paused_instead_of_started() -> None:
    host = ruled(spec())
    assert begin(host) is None
    item = item_of(host)
    assert (item.paused_at, item.pause_rule_id, item.started_event_id, item.stamp) == (host.now, "rule", 0, 1)
    assert host.info.search_attributes["TemporalPauseInfo"].data == b'["property:activityType=Act"]'
    assert host.namespace is not None
    shown = pending_activity(item, now=host.now, rules=host.namespace.workflow_rules)
    assert shown.paused and shown.pause_info.rule.rule_id == "rule"
    assert (shown.pause_info.rule.identity, shown.pause_info.rule.reason) == ("me", "why")
    rule(host)
    assert pending_activity(item, now=host.now).pause_info.rule.reason == ""
    unpause_activity(host)
    assert item_of(host).pause_rule_id == "" and begin(host) is not None


def test_an_unpaused_first_attempt_meets_the_rule_again() -> None:
    host = ruled(spec())
    begin(host)
    unpause_activity(host)
    assert begin(host) is None


def test_a_failed_attempt_is_not_followed_by_another() -> None:
    host = ruled()
    begin(host)
    rule(host, spec("ActivityState = 'Started'"))
    fail(host)
    item = item_of(host)
    assert (item.attempt, item.started_event_id, item.pause_rule_id) == (2, 0, "rule")
    assert not host.timer_tasks
    unpause_activity(host)
    assert host.transfer_tasks[-1].attempt == 2 and begin(host) is not None


def test_a_back_off_ends_in_a_pause() -> None:
    host = ruled()
    begin(host)
    fail(host)
    rule(host, spec("BackoffInterval >= 10"))
    sent = len(host.transfer_tasks)
    host.advance(11)
    item = item_of(host)
    assert (item.pause_rule_id, item.retry_at, len(host.transfer_tasks)) == ("rule", None, sent)
    unpause_activity(host)
    assert len(host.transfer_tasks) == sent + 1


def test_later_attempts_are_not_asked_once_more_when_they_start() -> None:
    host = ruled()
    begin(host)
    fail(host)
    host.advance(11)
    rule(host, spec())
    assert begin(host) is not None


@pytest.mark.parametrize(
    "harmless",
    [
        spec(expiration_time=timestamp(START - timedelta(seconds=1))),
        spec(actions=[]),
        spec(actions=[WorkflowRuleAction()]),
        spec(run="ExecutionStatus = 'Completed'"),
        spec("no condition at all"),
        spec(run="Nonsense = 1"),
    ],
    ids=["expired", "no action", "unknown action", "other runs", "bad predicate", "bad query"],
)
def test_rules_without_effect(harmless: WorkflowRuleSpec) -> None:
    assert begin(ruled(harmless)) is not None


def test_the_first_rule_that_means_the_activity_is_the_one() -> None:
    host = ruled(spec(rule_id="a", run="WorkflowId = 'other'"), spec(rule_id="b"), spec(rule_id="c"))
    begin(host)
    assert item_of(host).pause_rule_id == "b"


def test_a_rule_is_stored_as_readable_json() -> None:
    made = WorkflowRule(spec=spec(expiration_time=Timestamp(seconds=60)), create_time=timestamp(START))
    record = NamespaceRecord(name="n", namespace_id="id", created_at=START, workflow_rules={"rule": made})
    text = encode(record)
    assert (
        b'"workflowRules":{"rule":{"createTime":"2026-05-04T12:00:00Z","spec":{"id":"rule","activityStart":'
        b'{"predicate":"ActivityType = \'Act\'"},"actions":[{"activityPause":{}}],"expirationTime":"1970-01-01T00:01:00Z"}}}'
    ) in text
    assert decode(NamespaceRecord, text, table="namespaces", key="n") == record
