"""Workflow rules through the API, as the official server (1.32.0) answers with frontend.workflowRulesAPIsEnabled."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import pytest
from temporalio.api.rules.v1 import WorkflowRule, WorkflowRuleSpec
from temporalio.api.workflowservice import v1 as ws

from common.protos import timestamp
from frontend.config import FrontendConfig
from tests.behaviours.harness import Refusal

from .conftest import Setup, serving

INVALID = grpc.StatusCode.INVALID_ARGUMENT
UNKNOWN = Refusal(INVALID, "Workflow Rule with this ID not Found.")
EXISTS = Refusal(INVALID, "Workflow Rule with this ID already exists.")
NO_ID = Refusal(INVALID, "Workflow Rule ID is not set.")
FULL = Refusal(INVALID, "Workflow Rule limit exceeded. Max: 10")
DEFAULT = {"namespace": "default"}


@pytest.fixture
async def rules() -> AsyncIterator[Setup]:
    async with serving(Setup(config=FrontendConfig(workflow_rules=True))) as made:
        yield made


def creating(rule_id: str = "rule", **fields: Any) -> ws.CreateWorkflowRuleRequest:
    spec = WorkflowRuleSpec(id=rule_id, activity_start={"predicate": "ActivityType = 'a'"}, **fields)
    return ws.CreateWorkflowRuleRequest(spec=spec, identity="me", description="why", **DEFAULT)


async def listed(rules: Setup) -> list[str]:
    answer: ws.ListWorkflowRulesResponse = await rules.call(ws.ListWorkflowRulesRequest(**DEFAULT))
    assert answer.next_page_token == b""
    return [rule.spec.id for rule in answer.rules]


@pytest.mark.parametrize(
    "request_, answer",
    [
        (ws.CreateWorkflowRuleRequest(**DEFAULT), Refusal(INVALID, "Rule Specification is not set.")),
        (ws.CreateWorkflowRuleRequest(spec=WorkflowRuleSpec(), **DEFAULT), NO_ID),
        (creating("r" * 1001), Refusal(INVALID, "Workflow Rule Id length exceeds limit.")),
        (ws.DescribeWorkflowRuleRequest(**DEFAULT), NO_ID),
        (ws.DescribeWorkflowRuleRequest(rule_id="r" * 2000, **DEFAULT), UNKNOWN),
        (ws.DeleteWorkflowRuleRequest(**DEFAULT), NO_ID),
        (ws.DeleteWorkflowRuleRequest(rule_id="none", **DEFAULT), UNKNOWN),
        (ws.ListWorkflowRulesRequest(), Refusal(INVALID, "Namespace is empty.")),
        (
            ws.CreateWorkflowRuleRequest(namespace="nope"),
            Refusal(grpc.StatusCode.NOT_FOUND, "Namespace nope is not found.", "NamespaceNotFoundFailure"),
        ),
    ],
)
async def test_a_request_with_one_fault(rules: Setup, request_: Any, answer: Refusal) -> None:
    assert await rules.refused(request_) == answer


async def test_a_rule_is_made_shown_listed_and_deleted(rules: Setup) -> None:
    assert await listed(rules) == []
    made = (await rules.call(creating())).rule
    assert made == WorkflowRule(
        create_time=timestamp(rules.clock.now()),
        spec=creating().spec,
        created_by_identity="me",
        description="why",
    )
    assert await rules.refused(creating()) == EXISTS
    await rules.call(creating("r" * 1000))
    assert await listed(rules) == ["rule", "r" * 1000]
    shown = await rules.call(ws.DescribeWorkflowRuleRequest(rule_id="rule", **DEFAULT))
    assert shown.rule == made
    await rules.call(ws.DeleteWorkflowRuleRequest(rule_id="rule", **DEFAULT))
    assert await rules.refused(ws.DeleteWorkflowRuleRequest(rule_id="rule", **DEFAULT)) == UNKNOWN
    assert await rules.refused(ws.DescribeWorkflowRuleRequest(rule_id="rule", **DEFAULT)) == UNKNOWN
    assert await listed(rules) == ["r" * 1000]


async def test_a_rule_needs_neither_sense_nor_effect(rules: Setup) -> None:
    spec = WorkflowRuleSpec(id="only-id")
    assert (await rules.call(ws.CreateWorkflowRuleRequest(spec=spec, **DEFAULT))).rule.spec == spec
    spec = WorkflowRuleSpec(id="bad", visibility_query="Foo = 1", activity_start={"predicate": "what is this"})
    assert (await rules.call(ws.CreateWorkflowRuleRequest(spec=spec, **DEFAULT))).rule.spec == spec


async def test_at_the_limit_those_that_expired_make_room(rules: Setup) -> None:
    now = rules.clock.now()
    ends = {"last": now + timedelta(days=1), "second": now - timedelta(days=1), "first": now - timedelta(days=2)}
    for rule_id, end in ends.items():
        await rules.call(creating(rule_id, expiration_time=timestamp(end)))
    for number in range(9):
        await rules.call(creating(f"r{number}"))
    assert await listed(rules) == ["last", *(f"r{number}" for number in range(9))]
    assert await rules.refused(creating("r9")) == FULL
    assert await rules.refused(creating("r1")) == FULL


@pytest.mark.parametrize("method", ["Create", "Describe", "Delete", "List"])
async def test_rules_are_off_by_default(setup: Setup, method: str) -> None:
    name = f"{method}WorkflowRule" + ("s" if method == "List" else "")
    request = getattr(ws, f"{name}Request")(**DEFAULT)
    assert await setup.refused(request) == Refusal(grpc.StatusCode.UNIMPLEMENTED, f"method {name} not supported")


async def test_nobody_can_trigger_a_rule(rules: Setup) -> None:
    answer = Refusal(grpc.StatusCode.UNIMPLEMENTED, "method TriggerWorkflowRule not supported")
    assert await rules.refused(ws.TriggerWorkflowRuleRequest(id="rule", **DEFAULT)) == answer
