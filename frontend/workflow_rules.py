"""The workflow rules of a namespace: what may be asked for, and how its record changes.

Source: upstream's service/frontend/{workflow_handler,namespace_handler}.go. The conditions of a rule are not looked at when it
is made; one that makes no sense holds for nothing.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from temporalio.api.rules.v1 import WorkflowRule

from common.errors import InvalidArgument, Unimplemented
from common.protos import from_timestamp
from frontend.config import FrontendConfig
from history.records import NamespaceRecord

NO_ID = "Workflow Rule ID is not set."
UNKNOWN = "Workflow Rule with this ID not Found."


def check_enabled(method: str, config: FrontendConfig) -> None:
    """Raises UNIMPLEMENTED unless the setting WORKFLOW_RULES is on; upstream's is off by default."""
    if not config.workflow_rules:
        raise Unimplemented(f"method {method} not supported")


def check_rule_id(rule_id: str) -> None:
    if not rule_id:
        raise InvalidArgument(NO_ID)


def with_rule(record: NamespaceRecord, rule: WorkflowRule, *, limit: int, now: datetime) -> NamespaceRecord:
    """The record with the new rule. At the limit, the rule that expired first makes room. Raises INVALID_ARGUMENT.

    Upstream gives up the rule that will expire first even while it is in force.
    """
    rules = dict(record.workflow_rules)
    if len(rules) >= limit:
        _drop_expired(rules, now=now)
    if len(rules) >= limit:
        raise InvalidArgument(f"Workflow Rule limit exceeded. Max: {limit}")
    if rule.spec.id in rules:
        raise InvalidArgument("Workflow Rule with this ID already exists.")
    rules[rule.spec.id] = rule
    return msgspec.structs.replace(record, workflow_rules=rules)


def _drop_expired(rules: dict[str, WorkflowRule], *, now: datetime) -> None:
    expired = {
        rule_id: end
        for rule_id, rule in rules.items()
        if rule.spec.HasField("expiration_time") and (end := from_timestamp(rule.spec.expiration_time)) < now
    }
    if expired:
        del rules[min(expired, key=expired.__getitem__)]


def without_rule(record: NamespaceRecord, rule_id: str) -> NamespaceRecord:
    """Raises INVALID_ARGUMENT for an unknown rule."""
    rule_of(record, rule_id)
    return msgspec.structs.replace(
        record, workflow_rules={key: rule for key, rule in record.workflow_rules.items() if key != rule_id}
    )


def rule_of(record: NamespaceRecord, rule_id: str) -> WorkflowRule:
    """Raises INVALID_ARGUMENT for an unknown rule."""
    rule = record.workflow_rules.get(rule_id)
    if rule is None:
        raise InvalidArgument(UNKNOWN)
    return rule
