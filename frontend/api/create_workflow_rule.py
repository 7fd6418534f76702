"""CreateWorkflowRule: from now on, activities that the rule means are paused before they start."""

from __future__ import annotations

from temporalio.api.rules.v1 import WorkflowRule
from temporalio.api.workflowservice.v1 import CreateWorkflowRuleRequest, CreateWorkflowRuleResponse

from common.errors import InvalidArgument
from common.protos import timestamp
from frontend.checks.ids import too_long
from frontend.services import Frontend
from frontend.workflow_rules import check_enabled, check_rule_id, with_rule


async def create_workflow_rule(frontend: Frontend, request: CreateWorkflowRuleRequest) -> CreateWorkflowRuleResponse:
    """As upstream's, it scans no activities that are under way (`force_scan`) and knows no repeated request."""
    config = frontend.config
    check_enabled("CreateWorkflowRule", config)
    if not request.HasField("spec"):
        raise InvalidArgument("Rule Specification is not set.")
    check_rule_id(request.spec.id)
    if too_long(request.spec.id, config.id_limit):
        raise InvalidArgument("Workflow Rule Id length exceeds limit.")
    now = frontend.clock.now()
    rule = WorkflowRule(
        create_time=timestamp(now),
        spec=request.spec,
        created_by_identity=request.identity,
        description=request.description,
    )
    await frontend.namespaces.update(
        request.namespace, lambda record: with_rule(record, rule, limit=config.workflow_rules_limit, now=now)
    )
    return CreateWorkflowRuleResponse(rule=rule)
