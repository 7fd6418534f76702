"""DeleteWorkflowRule: the rule pauses nothing more; what it has paused stays so."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import DeleteWorkflowRuleRequest, DeleteWorkflowRuleResponse

from frontend.services import Frontend
from frontend.workflow_rules import check_enabled, check_rule_id, without_rule


async def delete_workflow_rule(frontend: Frontend, request: DeleteWorkflowRuleRequest) -> DeleteWorkflowRuleResponse:
    """INVALID_ARGUMENT for an unknown rule."""
    check_enabled("DeleteWorkflowRule", frontend.config)
    check_rule_id(request.rule_id)
    await frontend.namespaces.update(request.namespace, lambda record: without_rule(record, request.rule_id))
    return DeleteWorkflowRuleResponse()
