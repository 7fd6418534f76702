"""The end of a namespace, and a new one by the same name."""

import grpc
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.operatorservice.v1 import DeleteNamespaceRequest

from .harness import Server, detail_of, error_of, payloads, seconds, unique


async def test_b44_a_deleted_namespace_is_gone_and_its_name_can_be_used_again(
    server: Server, *, reference_server: bool
) -> None:
    name = unique("short-lived")
    day = seconds(86_400)
    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=day, description="old")
    inside = server.within(name)
    await inside.start(workflow_id="left-behind")
    division = {"indexed_fields": {"TemporalNamespaceDivision": payloads("apart").payloads[0]}}
    await inside.start(workflow_id="left-behind, too", search_attributes=division)
    deletion = DeleteNamespaceRequest(namespace=name)
    deleted = await server.operator_service.DeleteNamespace(deletion, timeout=15)
    assert deleted.deleted_namespace.startswith(f"{name}-deleted-")
    assert name not in await names(server)

    error = await error_of(server.operator_service.DeleteNamespace(deletion, timeout=15))
    if reference_server:  # it has looked the name up in a workflow, and forgets what kind of failure that was
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    else:
        assert error.code() == grpc.StatusCode.NOT_FOUND
        assert detail_of(error, NamespaceNotFoundFailure).namespace == name

    await server.call("RegisterNamespace", namespace=name, workflow_execution_retention_period=day, description="new")
    assert name in await names(server)
    described = await server.call("DescribeNamespace", namespace=name)
    assert described.namespace_info.description == "new"
    if not reference_server:  # it lists the old one's runs for some seconds more
        for query in ("", "TemporalNamespaceDivision = 'apart'"):
            assert (await inside.call("CountWorkflowExecutions", query=query)).count == 0


async def names(server: Server) -> list[str]:
    found: list[str] = []
    token = b""
    while True:
        page = await server.call("ListNamespaces", page_size=100, next_page_token=token)
        found += [item.namespace_info.name for item in page.namespaces]
        token = page.next_page_token
        if not token:
            return found
