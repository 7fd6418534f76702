"""Every table in the admin, on each database: its list, its search, its page; all of it in orders that an index has."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape
from temporalio.api.rules.v1 import WorkflowRule

import history.models
import matching.models
from common.contracts.visibility import VisibilityIntent
from common.database import Database
from common.database.opening import database_of
from common.keyed_admin import link_to_row
from history.config import HistoryConfig
from history.records import NamespaceRecord
from history.store import open_execution_store, open_namespace_store
from matching.deployments.records import DeploymentRecord
from matching.records import QueueKey, UserData
from matching.store import open_deployment_store, open_task_store, open_user_data_store
from tests.contract import samples
from tests.contract.samples import NOW
from tests.contract.test_task_store import append, task
from tests.databases import django_entry
from tests.django_default import default_database, reader_client

RUN = "0195a0b0-0000-7000-8000-000000000001"
OLDER = "0195a0a0-0000-7000-8000-000000000002"
WORKFLOW = "order/5 %25"
NAMESPACE = "a/b%2F"
QUEUE = QueueKey(namespace=NAMESPACE, task_queue="q/1", kind="activity")

HISTORY = "/admin/history"
MATCHING = "/admin/matching"
LISTS = {
    f"{HISTORY}/namespace/": NAMESPACE,
    f"{HISTORY}/shard/": "here",
    f"{HISTORY}/executionview/": WORKFLOW,
    f"{HISTORY}/executionview/?q=order": WORKFLOW,
    f"{HISTORY}/executionview/?q={RUN[:10]}": WORKFLOW,
    f"{HISTORY}/executionview/?status=Running": WORKFLOW,
    f"{HISTORY}/currentrunview/": WORKFLOW,
    f"{HISTORY}/currentrunview/?q=order/5+%2525": WORKFLOW,
    f"{HISTORY}/historyeventview/": "1 WorkflowExecutionSignaled",
    f"{HISTORY}/historyeventview/?q={RUN}": "2 WorkflowExecutionSignaled",
    f"{HISTORY}/historyeventview/?shard_id__exact=1&run_id__exact={RUN}": "2 WorkflowExecutionSignaled",
    f"{HISTORY}/pendingitemview/": "activity 5",
    f"{HISTORY}/pendingitemview/?q={RUN}": "activity 5",
    f"{HISTORY}/transfertaskview/": "workflowTask",
    f"{HISTORY}/timertaskview/": "userTimer",
    f"{HISTORY}/visibilitytaskview/": "1/9",
    f"{MATCHING}/taskqueue/": QUEUE.physical_queue,
    f"{MATCHING}/taskqueue/?q=a%25": QUEUE.physical_queue,
    f"{MATCHING}/taskview/": "2",
    f"{MATCHING}/taskview/?physical_queue__exact={QUEUE.physical_queue.replace('%', '%25')}": "2",
    f"{MATCHING}/taskqueueuserdataview/": "q/1",
    f"{MATCHING}/componentview/": "userData",
}
NOTHING_FOUND = [
    f"{HISTORY}/executionview/?q=nothing",
    f"{HISTORY}/executionview/?status=Failed",
    f"{HISTORY}/currentrunview/?q=nothing",
    f"{HISTORY}/historyeventview/?q=nothing",
    f"{MATCHING}/taskqueue/?q=nothing",
]
PAGES: list[tuple[Any, str, str]] = [
    (history.models.Namespace, NAMESPACE, "id of it"),
    (history.models.Namespace, NAMESPACE, "pauses what is broken"),
    (history.models.Shard, "1", "here"),
    (history.models.Shard, "1", "that the read model may lack"),
    (history.models.ExecutionView, RUN, "workflowType"),
    (history.models.CurrentRunView, f"1/a%2Fb%252F/{WORKFLOW}", RUN),
    (history.models.HistoryEventView, f"1/{RUN}/2", "signalName"),
    (history.models.PendingItemView, f"1/{RUN}/activity/5", "activityType"),
    (history.models.TransferTaskView, "1/136", "availableAt"),
    (history.models.TimerTaskView, "1/8", "dueAt"),
    (history.models.VisibilityTaskView, "1/9", "taskId"),
    (matching.models.TaskQueue, QUEUE.physical_queue, "lastTaskId"),
    (matching.models.TaskView, f"2/{QUEUE.physical_queue}", "scheduledEventId"),
    (matching.models.TaskQueueUserDataView, "a%2Fb%252F/q/1", "version"),
    (matching.models.WorkerDeploymentView, "a%2Fb%252F/d", "__unversioned__"),
    (matching.models.ComponentView, "taskQueueFamily/a%2Fb%252F/q%2F1/userData", "version"),
    (matching.models.ComponentView, "taskQueueFamily/a%2Fb%252F/q%2F1/", "transitionCount"),
]
MISSING: list[tuple[Any, str]] = [
    (history.models.ExecutionView, "none"),
    (history.models.HistoryEventView, "1"),
    (history.models.HistoryEventView, "x/y/z"),
    (history.models.TransferTaskView, "1/999"),
]


async def fill(database: Database) -> None:
    await database.start()
    store = open_execution_store(database, HistoryConfig())
    range_id = (await store.acquire_shard(shard_id=1, owner="here", now=NOW)).range_id
    for run_id in (OLDER, RUN):
        workflow_id = WORKFLOW if run_id == RUN else "older"
        write = samples.start(run_id, range_id=range_id, namespace=NAMESPACE, workflow_id=workflow_id)
        current = write.current_runs[0].run
        assert current is not None
        current.namespace = NAMESPACE
        if run_id == RUN:
            write.timer_tasks = [samples.timer_task(8)]
            write.visibility_tasks = [
                VisibilityIntent(task_id=9, namespace=NAMESPACE, workflow_id=WORKFLOW, run_id=RUN, start_time=NOW)
            ]
        else:
            write.transfer_tasks = []
        await store.commit([write])
    await open_namespace_store(database).create(
        NamespaceRecord(
            name=NAMESPACE,
            namespace_id="id of it",
            created_at=NOW,
            workflow_rules={"rule": WorkflowRule(description="pauses what is broken")},
        )
    )
    tasks = open_task_store(database)
    queue = await tasks.acquire_queue(key=QUEUE, normal_name="", owner="here", now=NOW)
    await tasks.commit([append(queue, task(1), task(2))])
    user_data = UserData(namespace=NAMESPACE, task_queue="q/1", version=1, updated_at=NOW)
    await open_user_data_store(database).save_user_data(user_data, expected_version=0)
    await open_user_data_store(database, home="chasm").save_user_data(user_data, expected_version=0)
    deployment = DeploymentRecord(namespace=NAMESPACE, name="d", version=1, created_at=NOW)
    await open_deployment_store(database).save(deployment, look_at=None, expected_version=0)
    await database.stop()


@pytest.fixture(scope="module")
def django_connection(module_database_url: str, django_db_blocker: Any) -> Iterator[Any]:
    """Django's default database is the filled one."""
    entry = django_entry(module_database_url)
    asyncio.run(fill(database_of(entry)))
    with default_database(entry, blocker=django_db_blocker) as connection:
        yield connection


@pytest.fixture
def reader(django_connection: Any) -> Client:
    return reader_client()


def plans(connection: Any, queries: CaptureQueriesContext) -> list[str]:
    """How the database does each query on a table of ours, as if the tables were big."""
    found = []
    explain = "EXPLAIN" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET enable_seqscan = off")
            cursor.execute("SET enable_sort = off")
        for query in queries.captured_queries:
            sql = query["sql"]
            if sql.startswith("SELECT") and not any(f'"{name}_' in sql for name in ("auth", "django")):
                cursor.execute(f"{explain} {sql}", None)
                found.append("\n".join([sql, *(str(row[-1]) for row in cursor.fetchall())]))
    return found


def assert_served_by_indexes(connection: Any, queries: CaptureQueriesContext) -> None:
    for plan in plans(connection, queries):
        for sign in ("Seq Scan", "Sort", "TEMP B-TREE"):
            assert sign not in plan, plan
        scans = [line for line in plan.splitlines() if line.startswith("SCAN ")]
        # Without an order to keep, as in the bounded count, any rows will do; shards are in the order of their ids.
        assert all("USING" in scan or "COUNT(*)" in plan or scan == "SCAN shards" for scan in scans), plan


@pytest.mark.parametrize("path", LISTS)
def test_list(reader: Client, django_connection: Any, path: str) -> None:
    with CaptureQueriesContext(django_connection) as queries:
        answer = reader.get(path)
    assert answer.status_code == 200
    page = answer.content.decode()
    assert escape(LISTS[path]) in page
    assert "0 results" not in page
    assert_served_by_indexes(django_connection, queries)


@pytest.mark.parametrize("path", NOTHING_FOUND)
def test_nothing_is_found(reader: Client, path: str) -> None:
    page = reader.get(path).content.decode()
    assert WORKFLOW not in page
    assert QUEUE.physical_queue not in page


@pytest.mark.parametrize("model, key, shown", PAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_page(reader: Client, django_connection: Any, model: Any, key: str, shown: str) -> None:
    with CaptureQueriesContext(django_connection) as queries:
        answer = reader.get(url_of(model, key))
    assert answer.status_code == 200, answer
    assert shown in answer.content.decode()
    assert_served_by_indexes(django_connection, queries)


@pytest.mark.parametrize("model, key", MISSING)
def test_page_of_nothing_leads_back(reader: Client, model: Any, key: str) -> None:
    assert reader.get(url_of(model, key)).status_code == 302


def url_of(model: Any, key: str) -> str:
    return str(link_to_row(model, key, "")).split('"')[1]


def test_newest_run_is_first(reader: Client) -> None:
    page = reader.get(f"{HISTORY}/executionview/").content.decode()
    assert page.index(RUN) < page.index(OLDER)


def test_links_lead_somewhere(reader: Client) -> None:
    """Every link of a run's page and of a queue's page, and the keys that lists link to."""
    for start in (url_of(history.models.ExecutionView, RUN), url_of(matching.models.TaskQueue, QUEUE.physical_queue)):
        found = links(reader.get(start).content.decode())
        assert found
        for path in found:
            answer = reader.get(path)
            assert answer.status_code == 200, path
    for path in LISTS:
        for row in links(reader.get(path).content.decode()):
            # The samples' tasks are of a run that is not stored.
            assert reader.get(row).status_code == (302 if "/executionview/r/" in row else 200), row


def links(page: str) -> list[str]:
    """Links within the content to pages of ours."""
    content = page.split('id="content-main"')[1]
    found = [part.split('"')[0].replace("&amp;", "&") for part in content.split('href="')[1:]]
    return [path for path in found if path.startswith((HISTORY, MATCHING)) and "/history/" not in path[8:]]
