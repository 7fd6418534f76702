"""Namespaces and search attributes through the API."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import IndexedValueType, NamespaceState
from temporalio.api.operatorservice import v1 as op
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice import v1 as ws

from common.archetypes import ACTIVITY, DIVISIONS
from common.contracts.visibility import ListPage
from common.errors import NotFound, Unavailable
from frontend.config import FrontendConfig
from tests.behaviours.harness import Refusal

from .conftest import Setup, passing_time, serving

INVALID = grpc.StatusCode.INVALID_ARGUMENT
DAY = Duration(seconds=86_400)
RETENTION = "A valid retention period is not set on request."
NOT_FOUND = Refusal(grpc.StatusCode.NOT_FOUND, "Namespace n is not found.", "NamespaceNotFoundFailure")


def register(name: str = "n", **fields: Any) -> ws.RegisterNamespaceRequest:
    fields.setdefault("workflow_execution_retention_period", DAY)
    return ws.RegisterNamespaceRequest(namespace=name, **fields)


async def described(setup: Setup, name: str = "n") -> ws.DescribeNamespaceResponse:
    answer: ws.DescribeNamespaceResponse = await setup.call(ws.DescribeNamespaceRequest(namespace=name))
    return answer


@pytest.mark.parametrize(
    "request_, message",
    [
        (register(""), "Namespace not set on request."),
        (register("n" * 1001), "Namespace length exceeds limit."),
        (register(is_global_namespace=True), "Cannot register global namespace when not enabled"),
        (register(workflow_execution_retention_period=None), RETENTION),
        (register(workflow_execution_retention_period=Duration(seconds=3599)), RETENTION),
        (register(workflow_execution_retention_period=Duration(seconds=-3600)), RETENTION),
        (register(active_cluster_name="other"), "Invalid cluster name: other"),
    ],
)
async def test_a_registration_with_one_fault(setup: Setup, request_: Any, message: str) -> None:
    assert await setup.refused(request_) == Refusal(INVALID, message)


async def test_a_registered_namespace_works_at_once_and_shows_everything(setup: Setup) -> None:
    await setup.call(register(description="d", owner_email="e", data={"team": "blue"}))
    await setup.call(ws.ListWorkflowExecutionsRequest(namespace="n"))
    shown = await described(setup)
    info = shown.namespace_info
    assert (info.name, info.description, info.owner_email, dict(info.data)) == ("n", "d", "e", {"team": "blue"})
    assert info.state == NamespaceState.NAMESPACE_STATE_REGISTERED
    assert info.limits.blob_size_limit_error == 2 * 1024 * 1024
    assert info.capabilities.sync_update
    assert info.supports_schedules
    assert shown.config.workflow_execution_retention_ttl == DAY
    assert shown.config.HasField("bad_binaries")
    assert shown.replication_config.active_cluster_name == "active"
    assert [cluster.cluster_name for cluster in shown.replication_config.clusters] == ["active"]
    by_id = await setup.call(ws.DescribeNamespaceRequest(id=info.id))
    assert by_id == shown


async def test_a_name_is_given_once(setup: Setup) -> None:
    await setup.call(register())
    assert await setup.refused(register()) == Refusal(
        grpc.StatusCode.ALREADY_EXISTS, 'Namespace "n" already exists', "NamespaceAlreadyExistsFailure"
    )


async def test_describing_needs_a_name_or_an_id(setup: Setup) -> None:
    assert await setup.refused(ws.DescribeNamespaceRequest()) == Refusal(INVALID, "Namespace not set on request.")
    both = ws.DescribeNamespaceRequest(namespace="default", id="x")
    assert (await setup.refused(both)).code is INVALID
    unknown = "00000000-0000-0000-0000-000000000000"
    assert await setup.refused(ws.DescribeNamespaceRequest(id=unknown)) == Refusal(
        grpc.StatusCode.NOT_FOUND, f"Namespace {unknown} is not found.", "NamespaceNotFoundFailure"
    )


async def test_listing_pages_through_all_namespaces(setup: Setup) -> None:
    for name in ("a", "b", "c"):
        await setup.call(register(name))
    names, token = [], b""
    while True:
        page = await setup.call(ws.ListNamespacesRequest(page_size=2, next_page_token=token))
        assert len(page.namespaces) <= 2
        names += [namespace.namespace_info.name for namespace in page.namespaces]
        token = page.next_page_token
        if not token:
            break
    assert names == ["a", "b", "c", "default", "temporal-system"]
    broken = ws.ListNamespacesRequest(next_page_token=b"\xff")
    assert await setup.refused(broken) == Refusal(INVALID, "Invalid NextPageToken.")


async def test_updating_changes_what_is_named(setup: Setup) -> None:
    await setup.call(register(description="d", owner_email="e", data={"a": "1"}))
    answer = await setup.call(
        ws.UpdateNamespaceRequest(
            namespace="n",
            update_info={"description": "new", "data": {"b": "2"}},
            config={"workflow_execution_retention_ttl": Duration(seconds=129_600)},
        )
    )
    shown = await described(setup)
    assert (answer.namespace_info, answer.config) == (shown.namespace_info, shown.config)
    assert (shown.namespace_info.description, shown.namespace_info.owner_email) == ("new", "e")
    assert dict(shown.namespace_info.data) == {"a": "1", "b": "2"}
    assert shown.config.workflow_execution_retention_ttl.seconds == 129_600


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"config": {"workflow_execution_retention_ttl": Duration(seconds=60)}}, RETENTION),
        (
            {"promote_namespace": True},
            "global namespace is not enabled on this cluster, cannot update global namespace or promote local "
            "namespace: default",
        ),
        ({"delete_bad_binary": "x"}, "Bad binary checksum x doesn't exists."),
        ({"replication_config": {"active_cluster_name": "other"}}, "Invalid cluster name: other"),
        ({"update_info": {"state": 7}}, "Invalid namespace state update."),
    ],
)
async def test_an_update_with_one_fault_changes_nothing(setup: Setup, fields: Any, message: str) -> None:
    before = await described(setup, "default")
    request = ws.UpdateNamespaceRequest(namespace="default", **fields)
    assert await setup.refused(request) == Refusal(INVALID, message)
    assert await described(setup, "default") == before


async def test_a_deprecated_namespace_does_not_come_back(setup: Setup) -> None:
    await setup.call(ws.DeprecateNamespaceRequest(namespace="default"))
    shown = await described(setup, "default")
    assert shown.namespace_info.state == NamespaceState.NAMESPACE_STATE_DEPRECATED
    back = ws.UpdateNamespaceRequest(namespace="default", update_info={"state": 1})
    assert await setup.refused(back) == Refusal(INVALID, "Invalid namespace state update.")


@pytest.mark.parametrize("kind", [ws.UpdateNamespaceRequest, ws.DeprecateNamespaceRequest, op.DeleteNamespaceRequest])
async def test_an_unknown_namespace_is_not_changed(setup: Setup, kind: Any) -> None:
    assert await setup.refused(kind(namespace="n")) == NOT_FOUND
    assert await setup.refused(kind()) == Refusal(INVALID, "Namespace not set on request.")
    assert await setup.refused(kind(namespace="n" * 1001)) == Refusal(INVALID, "Namespace length exceeds limit.")


async def test_a_deleted_namespace_is_gone_and_its_name_is_free(setup: Setup) -> None:
    await setup.call(register())
    old = (await described(setup)).namespace_info.id
    answer = await passing_time(setup, setup.call(op.DeleteNamespaceRequest(namespace="n")))
    assert answer.deleted_namespace == f"n-deleted-{old[:5]}"
    listed = await setup.call(ws.ListNamespacesRequest())
    assert "n" not in [namespace.namespace_info.name for namespace in listed.namespaces]
    assert await setup.refused(ws.DescribeNamespaceRequest(namespace="n")) == NOT_FOUND
    assert await setup.refused(ws.ListWorkflowExecutionsRequest(namespace="n")) == NOT_FOUND
    assert await setup.refused(op.DeleteNamespaceRequest(namespace="n")) == NOT_FOUND
    await setup.call(register())
    assert (await described(setup)).namespace_info.id != old


async def test_deleting_by_id(setup: Setup) -> None:
    await setup.call(register())
    namespace_id = (await described(setup)).namespace_info.id
    both = op.DeleteNamespaceRequest(namespace="n", namespace_id=namespace_id)
    assert await setup.refused(both) == Refusal(INVALID, "Only one of namespace name or Id should be set on request.")
    await passing_time(setup, setup.call(op.DeleteNamespaceRequest(namespace_id=namespace_id)))
    assert await setup.refused(ws.DescribeNamespaceRequest(namespace="n")) == NOT_FOUND


async def test_the_executions_of_a_deleted_namespace_go_with_it(setup: Setup) -> None:
    await setup.call(register())
    infos = [WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id=f"w{i}", run_id=f"r{i}")) for i in range(5)]
    setup.visibility.pages = [
        ListPage(executions=infos[:3], next_page_token=b"t"),
        ListPage(executions=infos[3:], next_page_token=b""),
    ]

    def delete(request: Any) -> ws.DeleteWorkflowExecutionResponse:
        if request.workflow_execution.run_id == "r1":
            raise NotFound("gone already")
        return ws.DeleteWorkflowExecutionResponse()

    setup.history.answer("delete_workflow_execution", delete)
    await passing_time(setup, setup.call(op.DeleteNamespaceRequest(namespace="n")))
    deleted = {r.workflow_execution.run_id for r in setup.history.asked("delete_workflow_execution")}
    assert deleted == {f"r{i}" for i in range(5)}
    assert {asked["namespace"] for asked in setup.visibility.lists} == {"n"}
    assert setup.matching.forgotten == ["n"]


async def test_activities_without_a_workflow_go_with_it_too(setup: Setup) -> None:
    await setup.call(register())
    info = WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id="a", run_id="r"))
    info.search_attributes.indexed_fields["TemporalNamespaceDivision"].data = f'"{DIVISIONS[ACTIVITY]}"'.encode()
    setup.visibility.pages = [ListPage(executions=[info], next_page_token=b"")]
    await passing_time(setup, setup.call(op.DeleteNamespaceRequest(namespace="n")))
    (asked,) = setup.history.asked("delete_activity_execution")
    assert (asked.activity_id, asked.run_id) == ("a", "r")


async def test_registering_a_name_ends_a_deletion_that_was_cut_short(setup: Setup) -> None:
    await setup.call(register())
    await setup.namespaces.mark_deleted("n")
    info = WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id="w", run_id="r"))
    empty = ListPage(executions=[], next_page_token=b"")
    setup.visibility.pages = [empty, ListPage(executions=[info], next_page_token=b"")]
    await passing_time(setup, setup.call(register()))
    assert [r.namespace for r in setup.history.asked("delete_workflow_execution")] == ["n"]


async def test_a_start_ends_deletions_that_were_cut_short(setup: Setup) -> None:
    await setup.call(register())
    await setup.namespaces.mark_deleted("n")
    again = Setup(store=setup.store)
    info = WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id="w", run_id="r"))
    again.visibility.pages = [ListPage(executions=[info], next_page_token=b"")]
    async with serving(again):
        assert again.server._removals is not None
        await passing_time(again, again.server._removals)
    assert [r.namespace for r in again.history.asked("delete_workflow_execution")] == ["n"]
    assert list(setup.store.records) == ["default", "temporal-system"]


async def test_a_deletion_that_fails_at_the_start_leaves_the_server_serving(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    await setup.call(register())
    await setup.namespaces.mark_deleted("n")
    again = Setup(store=setup.store)
    info = WorkflowExecutionInfo(execution=WorkflowExecution(workflow_id="w", run_id="r"))
    again.visibility.pages = [ListPage(executions=[info], next_page_token=b"")]
    again.history.answer("delete_workflow_execution", Unavailable("away"))
    async with serving(again):
        assert again.server._removals is not None
        await again.server._removals
        assert "namespace n could not be removed" in caplog.text
        await again.call(ws.ListWorkflowExecutionsRequest(namespace="default"))


async def test_the_system_namespace_stays(setup: Setup) -> None:
    assert await setup.refused(op.DeleteNamespaceRequest(namespace="temporal-system")) == Refusal(
        grpc.StatusCode.FAILED_PRECONDITION, "unable to delete system namespace"
    )


KEYWORD = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
KEYWORD_LIST = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST
INT = IndexedValueType.INDEXED_VALUE_TYPE_INT


def add(namespace: str = "default", **attributes: Any) -> op.AddSearchAttributesRequest:
    return op.AddSearchAttributesRequest(namespace=namespace, search_attributes=attributes)


async def custom(setup: Setup, namespace: str = "default") -> dict[str, int]:
    answer = await setup.call(op.ListSearchAttributesRequest(namespace=namespace))
    return dict(answer.custom_attributes)


async def test_custom_search_attributes_belong_to_one_namespace(setup: Setup) -> None:
    await setup.call(register())
    await setup.call(add(A=KEYWORD, B=INT))
    await setup.call(add(A=INT, C=KEYWORD_LIST))
    assert await custom(setup) == {"A": KEYWORD, "B": INT, "C": KEYWORD_LIST}
    assert await custom(setup, "n") == {}
    shown = await described(setup, "default")
    assert dict(shown.config.custom_search_attribute_aliases) == {"Keyword01": "A", "Int01": "B", "KeywordList01": "C"}
    keys = (await setup.call(ws.GetSearchAttributesRequest())).keys
    assert (keys["A"], keys["WorkflowId"], keys["BuildIds"]) == (KEYWORD, KEYWORD, KEYWORD_LIST)
    await setup.call(op.RemoveSearchAttributesRequest(namespace="default", search_attributes=["A", "Never"]))
    assert await custom(setup) == {"B": INT, "C": KEYWORD_LIST}


async def test_system_search_attributes_are_listed(setup: Setup) -> None:
    answer = await setup.call(op.ListSearchAttributesRequest(namespace="default"))
    assert len(answer.system_attributes) == 33
    assert answer.system_attributes["StartTime"] == IndexedValueType.INDEXED_VALUE_TYPE_DATETIME


@pytest.mark.parametrize(
    "request_, message",
    [
        (add(), "SearchAttributes are not set on request."),
        (add(WorkflowId=KEYWORD), "Search attribute WorkflowId is reserved by system."),
        (add(TemporalAnything=KEYWORD), "Search attribute TemporalAnything is reserved by system."),
        (add(A=77), "Unknown search attribute type: 77."),
        (add("", A=KEYWORD), "Namespace is not set on request."),
        (op.RemoveSearchAttributesRequest(namespace="default"), "SearchAttributes are not set on request."),
        (op.RemoveSearchAttributesRequest(search_attributes=["A"]), "Namespace is not set on request."),
        (
            op.RemoveSearchAttributesRequest(namespace="default", search_attributes=["WorkflowId"]),
            "Unable to remove non-custom search attributes: WorkflowId.",
        ),
        (op.ListSearchAttributesRequest(), "Namespace is not set on request."),
    ],
)
async def test_a_change_of_search_attributes_with_one_fault(setup: Setup, request_: Any, message: str) -> None:
    assert await setup.refused(request_) == Refusal(INVALID, message)
    assert await custom(setup) == {}


async def test_search_attributes_of_one_type_have_no_ceiling(setup: Setup) -> None:
    await setup.call(add(**{f"A{i}": KEYWORD for i in range(100)}))
    await setup.call(add(One=KEYWORD))
    assert len(await custom(setup)) == 101


async def test_no_remote_cluster_can_be_added(setup: Setup) -> None:
    nowhere = op.AddOrUpdateRemoteClusterRequest(frontend_address="127.0.0.1:1")
    far = await passing_time(setup, setup.refused(nowhere))
    assert far.code == grpc.StatusCode.UNAVAILABLE
    assert far.message.startswith("Unable connect to remote cluster 127.0.0.1:1 with error: ")
    own = await setup.refused(op.AddOrUpdateRemoteClusterRequest(frontend_address=setup.address))
    words = (
        "Unable connect to remote cluster with invalid config: Cannot update current cluster metadata from rpc calls."
    )
    assert own == Refusal(INVALID, words)
    async with serving(Setup(config=FrontendConfig(cluster_name="other"))) as other:
        refused = await setup.refused(op.AddOrUpdateRemoteClusterRequest(frontend_address=other.address))
    assert refused == Refusal(
        INVALID,
        "Unable connect to remote cluster with invalid config: Cannot add remote cluster as global namespace is not supported.",
    )
