"""Actions: who may, by which call, what the log keeps, what a refusal says; and that nothing is done by GET, or unsigned."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import ResetReapplyType
from temporalio.api.history.v1 import WorkflowTaskCompletedEventAttributes
from temporalio.api.workflowservice import v1 as ws

from common.clock import RealClock
from common.contracts.batches import BatchFailure
from common.errors import NotFound, OutcomeUnknown
from common.membership import Membership
from frontend.config import FrontendConfig
from frontend.services import Frontend
from history.namespaces import NamespaceRegistry
from history.nexus_endpoints import NexusEndpoints
from history.records import ActivityItem, NamespaceRecord
from matching.models import TaskQueue
from tests.admin.executions.runs import START, event, run, run_id, started, store, write
from tests.frontend.fakes import (
    FakeBatches,
    FakeRole,
    FakeSchedules,
    FakeVisibility,
    MemoryNamespaceStore,
    MemoryNexusEndpointStore,
)
from tinytemporal_site.console import live
from tinytemporal_site.console.actions.bulk import BULK
from tinytemporal_site.console.actions.catalog import ACTIONS
from tinytemporal_site.console.groups import ensure_groups
from tinytemporal_site.console.models import PERMISSIONS
from worker.batches.store import _row as batch_row
from worker.models import BatchOperation

EVIL = "<script>alert('x')</script>\"&%{{ 7 }}"
OPEN, PAUSED, OTHER = (run_id(number) for number in range(1, 4))
QUEUE = "default/workflow/0//orders"
MOST_QUERIES = 12
ACT = f"/admin/executions/{OPEN}/do"


@pytest.fixture(scope="session")
def database_kind() -> str:
    """One kind will do: what actions change, they change by calls."""
    return "sqlite"


class World:
    """What the console calls: a frontend before fakes."""

    def __init__(self) -> None:
        self.history, self.matching, self.batches = FakeRole(), Queues(), FakeBatches()
        self.names = MemoryNamespaceStore()
        self.names.records["default"] = NamespaceRecord(name="default", namespace_id="id", created_at=START)

    def services(self) -> live.Services:
        clock = RealClock()
        namespaces = NamespaceRegistry(store=self.names, clock=clock)
        frontend = Frontend(
            history=self.history,  # type: ignore[arg-type]
            matching=self.matching,  # type: ignore[arg-type]
            visibility=FakeVisibility(),  # type: ignore[arg-type]
            batches=self.batches,
            schedules=FakeSchedules(),  # type: ignore[arg-type]
            namespaces=namespaces,
            endpoints=NexusEndpoints(store=MemoryNexusEndpointStore(), clock=clock),
            clock=clock,
            config=FrontendConfig(),
        )
        nothing: Any = None
        return live.Services(
            history=self.history,  # type: ignore[arg-type]
            matching=self.matching,  # type: ignore[arg-type]
            frontend=frontend,
            membership=Membership(host="here", fixed={}),
            channels=nothing,
            clock=clock,
            shards=4,
        )


class Queues:
    """Of Matching, what the console's actions call."""

    def __init__(self) -> None:
        self.unloaded: list[str] = []

    async def unload_task_queue(self, *, physical_queue: str, normal_name: str = "") -> bool:
        self.unloaded.append(physical_queue)
        return True


@pytest.fixture(scope="module", autouse=True)
def rows(module_database_url: str, django_connection: Any) -> None:
    paused = run(2, workflow_id="paused")
    made = run(1, workflow_id=EVIL)
    task = event(4, WorkflowTaskCompletedEventAttributes(scheduled_event_id=2, started_event_id=3))
    activity = ActivityItem(
        scheduled_event_id=5,
        activity_id="pay",
        activity_type="Pay",
        task_queue="orders",
        scheduled_at=START,
        first_scheduled_at=START,
    )
    items = [("activity", "5", activity)]
    store(module_database_url, [write(made, [started(), task], items=items), write(paused, []), write(run(3), [])])
    TaskQueue.objects.create(
        physical_queue=QUEUE,
        namespace="default",
        task_queue="orders",
        kind="workflow",
        partition=0,
        version="",
        range_id=1,
        ack_level=0,
        last_task_id=0,
        updated_at=START,
        data={},
    )
    ensure_groups()
    for name in ("viewer", "operator"):
        User.objects.create_user(name, is_staff=True).groups.add(Group.objects.get(name=name))
    User.objects.create_user("guest", is_staff=False)


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    with live.bound(made.services):
        yield made


def signed_in(name: str) -> Client:
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


@pytest.fixture
def operator() -> Client:
    return signed_in("operator")


def given(**more: Any) -> dict[str, Any]:
    return {"request_id": str(uuid.uuid4()), **more}


FORMS: dict[str, dict[str, Any]] = {
    "signal": {"signal_name": "ship", "input": '{"a": [1, "ü"]}'},
    "cancel": {"reason": "why"},
    "terminate": {"reason": "why"},
    "pause": {"reason": "why"},
    "unpause": {"reason": "why"},
    "retry": {"activity_id": "pay", "reset_heartbeat": "on"},
    "reset": {"event_id": "4", "reapply": "2", "reason": "why"},
    "delete": {"reason": "why"},
}
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "signal": (
        "signal_workflow_execution",
        {"signal_name": "ship", "workflow_execution": WorkflowExecution(workflow_id=EVIL, run_id=OPEN)},
    ),
    "cancel": ("request_cancel_workflow_execution", {"reason": "why"}),
    "terminate": ("terminate_workflow_execution", {"reason": "why"}),
    "pause": ("pause_workflow_execution", {"reason": "why", "workflow_id": EVIL, "run_id": OPEN}),
    "unpause": ("unpause_workflow_execution", {"reason": "why", "workflow_id": EVIL}),
    "retry": ("reset_activity", {"id": "pay", "reset_heartbeat": True}),
    "reset": (
        "reset_workflow_execution",
        {"workflow_task_finish_event_id": 4, "reset_reapply_type": ResetReapplyType.RESET_REAPPLY_TYPE_NONE},
    ),
    "delete": (
        "delete_workflow_execution",
        {"workflow_execution": WorkflowExecution(workflow_id=EVIL, run_id=OPEN), "namespace": "default"},
    ),
}


def test_all_actions_are_tested() -> None:
    assert ACTIONS.keys() == FORMS.keys() == CALLS.keys()


@pytest.mark.parametrize("action", FORMS)
def test_an_action_is_its_api_call_and_is_logged(world: World, operator: Client, action: str) -> None:
    asked = operator.get(f"{ACT}/{action}/")
    assert asked.status_code == 200
    assert EVIL not in asked.content.decode()
    assert world.history.requests == []
    form = given(**FORMS[action])
    answer = operator.post(f"{ACT}/{action}/", form)
    assert answer.status_code == 302, answer.content.decode()
    method, fields = CALLS[action]
    [request] = world.history.asked(method)
    assert {name: getattr(request, name) for name in fields} == fields
    assert getattr(request, "identity", "admin:operator") == "admin:operator"
    assert getattr(request, "request_id", form["request_id"]) == form["request_id"]
    entry = LogEntry.objects.order_by("-id")[0]
    assert (entry.user.get_username(), entry.object_id, entry.object_repr) == ("operator", OPEN, EVIL)
    assert entry.change_message.startswith(ACTIONS[action].title)
    assert entry.change_message.endswith(": done")


def test_a_signals_input_is_json(world: World, operator: Client) -> None:
    operator.post(f"{ACT}/signal/", given(**FORMS["signal"]))
    [request] = world.history.asked("signal_workflow_execution")
    assert list(request.input.payloads) == [
        Payload(metadata={"encoding": b"json/plain"}, data='{"a":[1,"ü"]}'.encode())
    ]
    refused = operator.post(f"{ACT}/signal/", given(signal_name="ship", input="{'a'"))
    assert "This is no JSON" in refused.content.decode()
    assert len(world.history.requests) == 1


@pytest.mark.parametrize(
    "error, status, said, logged",
    [
        (
            NotFound("workflow execution already completed"),
            409,
            "Refused: workflow execution already completed",
            "Refused",
        ),
        (OutcomeUnknown("broken"), 503, "It may have been done all the same", "No answer"),
    ],
)
def test_what_is_refused_is_said_and_logged(
    world: World, operator: Client, error: Exception, status: int, said: str, logged: str
) -> None:
    world.history.answer("terminate_workflow_execution", error)
    answer = operator.post(f"{ACT}/terminate/", given(reason="why"))
    assert answer.status_code == status
    assert said in answer.content.decode()
    assert logged in LogEntry.objects.order_by("-id")[0].change_message


def test_without_services_nothing_is_done(operator: Client) -> None:
    answer = operator.post(f"{ACT}/terminate/", given(reason="why"))
    assert answer.status_code == 503
    assert "Nothing was done." in answer.content.decode()


@pytest.mark.parametrize("form", [{}, {"reason": ""}, {"reason": "x", "request_id": "no id"}])
def test_a_form_with_a_fault_does_nothing(world: World, operator: Client, form: dict[str, str]) -> None:
    before = LogEntry.objects.count()
    assert operator.post(f"{ACT}/terminate/", form).status_code == 200
    assert world.history.requests == []
    assert LogEntry.objects.count() == before


def test_only_what_is_offered_can_be_chosen(world: World, operator: Client) -> None:
    for action, form in (("reset", {"event_id": "7", "reapply": "2", "reason": "x"}), ("retry", {"activity_id": "no"})):
        assert "Select a valid choice" in operator.post(f"{ACT}/{action}/", given(**form)).content.decode()
    assert world.history.requests == []


@pytest.mark.parametrize("path", [f"/admin/executions/{run_id(99)}/do/terminate/", f"{ACT}/nonsense/"])
def test_what_is_not_there(world: World, operator: Client, path: str) -> None:
    assert operator.get(path).status_code == 404


def test_a_queue_is_unloaded(world: World, operator: Client) -> None:
    path = reverse("admin:console_unload", args=[QUEUE])
    assert operator.get(path).status_code == 200
    assert world.matching.unloaded == []
    assert operator.post(path, given(reason="why")).status_code == 302
    assert world.matching.unloaded == [QUEUE]
    assert LogEntry.objects.order_by("-id")[0].object_id == QUEUE


# --- who may


def action_paths() -> list[str]:
    batch = reverse("admin:console_batch_stop", args=["default", "job"])
    new = [f"{reverse('admin:console_batch_new')}?operation={name}&run={OPEN}" for name in BULK]
    return [*(f"{ACT}/{name}/" for name in ACTIONS), reverse("admin:console_unload", args=[QUEUE]), batch, *new]


def test_who_may_only_look_is_refused_everywhere(world: World) -> None:
    viewer = signed_in("viewer")
    assert viewer.get(f"/admin/executions/{OPEN}/").status_code == 200
    for path in action_paths():
        for answer in (viewer.get(path), viewer.post(path, given(reason="x"))):
            assert answer.status_code == 403, path
    assert world.history.requests == []


@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_has_its_permission(world: World, action: str) -> None:
    """Whoever has all but that one is refused."""
    user, _ = User.objects.get_or_create(username="almost", is_staff=True)
    permission = ACTIONS[action].permission
    codename = permission.removeprefix("console.")
    assert codename in PERMISSIONS
    user.user_permissions.set(Group.objects.get(name="operator").permissions.exclude(codename=codename))
    client = signed_in("almost")
    assert client.post(f"{ACT}/{action}/", given(**FORMS[action])).status_code == 403
    assert f'id="a-{action}"' not in client.get(f"/admin/executions/{OPEN}/").content.decode()
    assert world.history.asked(CALLS[action][0]) == []


def test_groups_have_what_their_names_say() -> None:
    viewer, operator = (
        {f"{p.content_type.app_label}.{p.codename}" for p in Group.objects.get(name=name).permissions.all()}
        for name in ("viewer", "operator")
    )
    assert all(name.partition(".")[2].startswith("view_") for name in viewer)
    assert {"history.view_executionview", "matching.view_taskqueue", "worker.view_batchoperation"} <= viewer
    assert operator - viewer == {f"console.{codename}" for codename in PERMISSIONS}


def test_asking_costs_few_queries(world: World, operator: Client, django_connection: Any) -> None:
    """Those for the session, the account and its permissions are among them."""
    for path in action_paths():
        with CaptureQueriesContext(django_connection) as queries:
            operator.get(path)
        assert len(queries) <= MOST_QUERIES, path
    assert world.history.requests == []


def test_forged_requests_are_refused(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="operator"))
    for path in action_paths():
        assert client.post(path, given(reason="x")).status_code == 403, path
    assert world.history.requests == []


# --- every page of the admin


def all_paths() -> Iterator[str]:
    """Every address of the admin, with something in the place of each parameter."""
    resolver = next(p for p in get_resolver().url_patterns if isinstance(p, URLResolver) and p.namespace == "admin")
    for pattern in walk(resolver.url_patterns):
        text = pattern.replace("<str:run_id>", OPEN).replace("<path:physical_queue>", QUEUE)
        for name, value in {"action": "terminate", "namespace": "default", "job_id": "job"}.items():
            text = text.replace(f"<str:{name}>", value)
        yield "/admin/" + text.replace("<path:object_id>", "1").replace("<int:content_type_id>", "1").replace(
            "<path:object_id>", "1"
        )


def walk(patterns: list[Any], prefix: str = "") -> Iterator[str]:
    for one in patterns:
        route = prefix + str(one.pattern)
        if isinstance(one, URLPattern):
            yield route
        else:
            yield from walk(one.url_patterns, route)


OPEN_TO_ALL = ("/admin/login/", "/admin/jsi18n/")


@pytest.mark.parametrize("who", ["nobody", "guest"])
def test_every_page_asks_to_sign_in(who: str) -> None:
    client = Client() if who == "nobody" else signed_in("guest")
    paths = [path for path in all_paths() if "(?P" not in path and path not in OPEN_TO_ALL]
    assert len(paths) > 60
    for path in paths:
        for answer in (client.get(path), client.post(path)):
            leads_to = answer.headers.get("Location", "")
            # Without a session there is nothing to log out of.
            allowed = ("/admin/login/", "/admin/") if "logout" in path else ("/admin/login/",)
            assert answer.status_code in (301, 302), (path, answer.status_code)
            assert leads_to.startswith(allowed), (path, leads_to)


def test_no_page_does_anything_by_get(world: World, reader: Client) -> None:
    before = LogEntry.objects.count()
    for path in [*all_paths(), *action_paths()]:
        if "logout" not in path and "/live/" not in path:
            reader.get(path)
    changing = [name for name, _ in world.history.requests if not name.startswith(("describe", "get_", "inspect"))]
    assert (changing, world.matching.unloaded, world.batches.records) == ([], [], {})
    assert LogEntry.objects.count() == before


# --- batches

BULK_FORMS: dict[str, dict[str, Any]] = {
    "signal": {"signal_name": "ship", "input": "5", "reason": "why"},
    "cancel": {"reason": "why"},
    "terminate": {"reason": "why"},
    "retry": {"reason": "why", "reset_heartbeat": "on"},
    "reset": {"target": "last_workflow_task", "reapply": "3", "reason": "why"},
    "delete": {"reason": "why"},
}
BULK_OPERATIONS = {
    "signal": "signal_operation",
    "cancel": "cancellation_operation",
    "terminate": "termination_operation",
    "retry": "reset_activities_operation",
    "reset": "reset_operation",
    "delete": "deletion_operation",
}
NEW = "/admin/batches/new/"


@pytest.mark.parametrize("operation", BULK_FORMS)
def test_a_batch_of_those_marked(world: World, operator: Client, operation: str) -> None:
    asked = operator.get(NEW, {"operation": operation, "run": [OPEN, OTHER]})
    assert "to 2 executions" in asked.content.decode()
    assert EVIL not in asked.content.decode()
    form = given(**BULK_FORMS[operation], operation=operation, run=[OPEN, OTHER])
    assert operator.post(NEW, form).status_code == 302
    [record] = world.batches.records.values()
    assert (record.job_id, record.operation) == (form["request_id"], BULK_OPERATIONS[operation])
    assert {e.run_id for e in record.request.executions} == {OPEN, OTHER}
    assert LogEntry.objects.order_by("-id")[0].object_repr == f"default/{record.job_id}"


def test_a_batch_of_what_a_filter_finds(world: World, operator: Client) -> None:
    query = "WorkflowType = 'Order'"
    operator.post(NEW, given(operation="terminate", namespace="default", query=query, reason="why"))
    [record] = world.batches.records.values()
    assert (record.request.visibility_query, list(record.request.executions)) == (query, [])
    refused = operator.post(NEW, given(operation="terminate", namespace="default", query=query, reason="why"))
    assert refused.status_code == 409
    assert "Max concurrent batch operations is reached" in refused.content.decode()


def test_the_list_of_batches_shows_each_once_though_all_began_together(world: World, operator: Client) -> None:
    operator.post(NEW, given(operation="terminate", run=[OPEN], reason="why"))
    [record] = world.batches.records.values()
    names = ("namespace", "job_id", "operation", "state", "started_at", "closed_at", "generation")
    for number in range(120):
        record.job_id = f"job-{number:03}"
        values = dict(zip(names, batch_row(record), strict=False))
        BatchOperation.objects.create(**values, data=json.loads(batch_row(record)[-1]))
    shown, address = [], "/admin/batches/"
    while address:
        page = operator.get(address)
        shown += [row.job_id for row, *_ in page.context["lines"]]
        address = page.context["following"] and "/admin/batches/" + page.context["following"]
    assert shown == [f"job-{number:03}" for number in reversed(range(120))]


@pytest.mark.parametrize(
    "chosen, said",
    [
        ({}, "Nothing is chosen"),
        ({"run": [OPEN, run_id(99)]}, "Only 1 of the 2 chosen executions are there"),
        ({"run": [run_id(number) for number in range(300)]}, "At most 200 executions"),
    ],
)
def test_a_batch_of_nothing(world: World, operator: Client, chosen: dict[str, Any], said: str) -> None:
    answer = operator.post(NEW, given(operation="terminate", reason="why", **chosen))
    assert said in answer.content.decode()
    assert world.batches.records == {}


def test_a_batchs_page_shows_its_progress_and_failures(world: World, operator: Client) -> None:
    operator.post(NEW, given(operation="terminate", run=[OPEN], reason=EVIL))
    [record] = world.batches.records.values()
    record.total, record.completed, record.failed = 7, 3, 1
    record.failures = [BatchFailure(workflow_id=EVIL, message=EVIL)]
    names = ("namespace", "job_id", "operation", "state", "started_at", "closed_at", "generation")
    values = dict(zip(names, batch_row(record), strict=False))
    BatchOperation.objects.create(**values, data=json.loads(batch_row(record)[-1]))
    path = reverse("admin:console_batch", args=["default", record.job_id])
    page = operator.get(path).content.decode()
    assert "3 done, 1 failed of 7" in page
    assert EVIL not in page
    assert "<html" not in operator.get(path, {"part": "progress"}).content.decode()
    assert record.job_id in operator.get("/admin/batches/").content.decode()
    stop = reverse("admin:console_batch_stop", args=["default", record.job_id])
    assert operator.get(stop).status_code == 200
    assert operator.post(stop, given(reason="enough")).status_code == 302
    assert record.problem == "stopped (admin:operator): enough"


def test_who_may_see_batches(world: World) -> None:
    assert signed_in("viewer").get("/admin/batches/").status_code == 200
    user, _ = User.objects.get_or_create(username="newcomer", is_staff=True)
    user.user_permissions.clear()
    assert signed_in("newcomer").get("/admin/batches/").status_code == 403


def test_the_api_calls_are_messages_of_the_api() -> None:
    for action in ACTIONS.values():
        assert hasattr(ws, f"{action.method}Request")
