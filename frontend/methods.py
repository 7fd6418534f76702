"""Every method of the public services: its messages, its entry function, and what it asks of a namespace.

A method that does more than pass through has a module in `frontend.api`, named as the method, with one entry function
`async (frontend, request) -> response`. The others are rows of `frontend.api.passing`, and what upstream refuses on
principle is in `frontend.api.refusals`. A method found nowhere answers UNIMPLEMENTED with its name.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct
from temporalio.api.operatorservice.v1 import service_pb2 as operator_service
from temporalio.api.workflowservice.v1 import service_pb2 as workflow_service

from common.errors import Unimplemented
from frontend.api import passing, refusals
from frontend.services import Frontend
from history.namespaces import DEPRECATED, REGISTERED

Entry = Callable[[Frontend, Any], Awaitable[Message]]

WORKFLOW_SERVICE: ServiceDescriptor = workflow_service.DESCRIPTOR.services_by_name["WorkflowService"]
OPERATOR_SERVICE: ServiceDescriptor = operator_service.DESCRIPTOR.services_by_name["OperatorService"]
SERVICES = (WORKFLOW_SERVICE, OPERATOR_SERVICE)


class NamespaceRule(Enum):
    """How a request tells its namespace, and so which check comes before its entry function."""

    NONE = "the request has none"
    NAMED = "by name"
    OF_TASK = "by its task token, and by name if it likes"
    OF_QUERY = "by its query task token, and by name if it likes"
    OF_NEXUS = "by its Nexus task token, and by name if it likes"
    OWN = "the method checks it itself"


_OWN = frozenset(
    (
        "RegisterNamespace",
        "DescribeNamespace",
        "UpdateNamespace",
        "DeprecateNamespace",
        "DeleteNamespace",
        "AddSearchAttributes",
        "RemoveSearchAttributes",
        "ListSearchAttributes",
    )
)
_OF_OTHER_TASKS = {
    "RespondQueryTaskCompleted": NamespaceRule.OF_QUERY,
    "RespondNexusTaskCompleted": NamespaceRule.OF_NEXUS,
    "RespondNexusTaskFailed": NamespaceRule.OF_NEXUS,
}
# Starting anything new is for registered namespaces only.
# Source: allowedNamespaceStatesPerAPI in upstream's common/rpc/interceptor/namespace_validator.go.
_REGISTERED_ONLY = frozenset(("StartActivityExecution", "StartWorkflowExecution", "SignalWithStartWorkflowExecution"))


class Method(Struct, frozen=True):
    path: str
    """As gRPC names it: /package.Service/Method."""
    request_type: type[Message]
    entry: Entry
    rule: NamespaceRule
    states: tuple[int, ...]
    """The namespace states in which it may be called."""


@cache
def all_methods() -> tuple[Method, ...]:
    return tuple(_method(service, method) for service in SERVICES for method in service.methods)


def unknown_method(service: str, method: str) -> Unimplemented:
    return Unimplemented(f"unknown method {method} for service {service}")


def _method(service: ServiceDescriptor, method: MethodDescriptor) -> Method:
    return Method(
        path=f"/{service.full_name}/{method.name}",
        request_type=GetMessageClass(method.input_type),
        entry=_entry(service, method),
        rule=_rule(method),
        states=(REGISTERED,) if method.name in _REGISTERED_ONLY else (REGISTERED, DEPRECATED),
    )


def _entry(service: ServiceDescriptor, method: MethodDescriptor) -> Entry:
    name = snake_case(method.name)
    if find_spec(f"frontend.api.{name}") is not None:
        entry: Entry = getattr(import_module(f"frontend.api.{name}"), name)
        return entry
    if method.name in passing.METHODS:
        return passing.entry(method.name, absent=unknown_method(service.full_name, method.name))
    refusal = refusals.REFUSALS.get(method.name) or unknown_method(service.full_name, method.name)
    return refusals.refuse(refusal)


def _rule(method: MethodDescriptor) -> NamespaceRule:
    fields = method.input_type.fields_by_name
    if method.name in _OWN:
        return NamespaceRule.OWN
    if "task_token" in fields:
        return _OF_OTHER_TASKS.get(method.name, NamespaceRule.OF_TASK)
    return NamespaceRule.NAMED if "namespace" in fields else NamespaceRule.NONE


def snake_case(name: str) -> str:
    """`RespondActivityTaskCompletedById` → `respond_activity_task_completed_by_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
