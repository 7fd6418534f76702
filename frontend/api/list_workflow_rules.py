"""ListWorkflowRules: all rules of the namespace, expired ones too."""

from __future__ import annotations

from temporalio.api.workflowservice.v1 import ListWorkflowRulesRequest, ListWorkflowRulesResponse

from frontend.services import Frontend
from frontend.workflow_rules import check_enabled


async def list_workflow_rules(frontend: Frontend, request: ListWorkflowRulesRequest) -> ListWorkflowRulesResponse:
    """In one page, in order of their creation."""
    check_enabled("ListWorkflowRules", frontend.config)
    record = await frontend.namespaces.read(request.namespace)
    return ListWorkflowRulesResponse(rules=record.workflow_rules.values())
