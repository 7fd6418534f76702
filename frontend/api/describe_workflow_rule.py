"""DescribeWorkflowRule: one rule of the namespace, as it was made."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DescribeWorkflowRuleRequest, DescribeWorkflowRuleResponse

from frontend.services import Frontend
from frontend.workflow_rules import check_enabled, check_rule_id, rule_of


async def describe_workflow_rule(
    frontend: Frontend, request: DescribeWorkflowRuleRequest
) -> DescribeWorkflowRuleResponse:
    """INVALID_ARGUMENT for an unknown rule."""
    check_enabled("DescribeWorkflowRule", frontend.config)
    check_rule_id(request.rule_id)
    record = await frontend.namespaces.read(request.namespace)
    return DescribeWorkflowRuleResponse(rule=rule_of(record, request.rule_id))
