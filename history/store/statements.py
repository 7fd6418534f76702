"""The SQL of History's tables. Writes take many rows at once; every read is served by an index."""

from __future__ import annotations

from common.database import ColumnType, Query, RowsQuery, delete, insert

EXECUTION: dict[str, ColumnType] = {
    "shard_id": "int",
    "run_id": "text",
    "namespace": "text",
    "workflow_id": "text",
    "workflow_type": "text",
    "task_queue": "text",
    "status": "text",
    "next_event_id": "int",
    "started_at": "time",
    "closed_at": "time",
    "deadline_at": "time",
    "data": "json",
}
CURRENT_RUN: dict[str, ColumnType] = {
    "shard_id": "int",
    "namespace": "text",
    "workflow_id": "text",
    "run_id": "text",
    "status": "text",
    "data": "json",
}
EVENT: dict[str, ColumnType] = {
    "shard_id": "int",
    "run_id": "text",
    "event_id": "int",
    "event_type": "text",
    "event_time": "time",
    "data": "json",
}
ITEM_KEY: dict[str, ColumnType] = {"shard_id": "int", "run_id": "text", "kind": "text", "key": "text"}
ITEM: dict[str, ColumnType] = ITEM_KEY | {"data": "json"}
RUN_KEY: dict[str, ColumnType] = {"shard_id": "int", "run_id": "text"}
TASK_KEY: dict[str, ColumnType] = {"shard_id": "int", "task_id": "int"}

# --- Writes ---------------------------------------------------------------------------------------------------------

# Do these shards still have these ranges? Holds the rows, in one order for everybody, until the transaction ends.
FENCE = RowsQuery(
    "fence_shards",
    "WITH f(shard_id, range_id) AS ({rows}) SELECT s.shard_id FROM f CROSS JOIN shards s "
    "WHERE s.shard_id = f.shard_id AND s.range_id = f.range_id",
    postgresql=(
        "SELECT s.shard_id FROM shards s JOIN ({rows}) f ON s.shard_id = f.shard_id AND s.range_id = f.range_id "
        "ORDER BY s.shard_id FOR UPDATE OF s"
    ),
    columns={"shard_id": "int", "range_id": "int"},
)

INSERT_CURRENT = insert("insert_current_runs", "current_runs", CURRENT_RUN)
# Point workflow ids to their next run, if they still point to the expected one.
_MOVE_CURRENT = (
    "SET run_id = r.run_id, status = r.status, data = r.data FROM {source} WHERE c.shard_id = r.shard_id AND "
    "c.namespace = r.namespace AND c.workflow_id = r.workflow_id AND c.run_id = r.expected_run_id"
)
_EXPECTED: dict[str, ColumnType] = {"expected_run_id": "text"}
MOVE_CURRENT = RowsQuery(
    "move_current_runs",
    f"WITH r({', '.join(CURRENT_RUN | _EXPECTED)}) AS ({{rows}}) "
    f"UPDATE current_runs AS c {_MOVE_CURRENT.replace('{source}', 'r')}",
    postgresql=f"UPDATE current_runs AS c {_MOVE_CURRENT.replace('{source}', '({rows}) AS r')}",
    columns=CURRENT_RUN | _EXPECTED,
)
DELETE_CURRENT = delete(
    "delete_current_runs",
    "current_runs",
    {"shard_id": "int", "namespace": "text", "workflow_id": "text", "run_id": "text"},
)

INSERT_EXECUTIONS = insert("insert_executions", "executions", EXECUTION)
UPDATE_EXECUTIONS = insert(
    "update_executions",
    "executions",
    EXECUTION,
    key=["shard_id", "run_id"],
    fixed=["namespace", "workflow_id", "workflow_type", "started_at"],
)
INSERT_EVENTS = insert("insert_events", "history_events", EVENT)
PUT_ITEMS = insert("put_items", "pending_items", ITEM, key=list(ITEM_KEY))
DELETE_ITEMS = delete("delete_items", "pending_items", ITEM_KEY)

# A deleted run.
DELETE_EXECUTIONS = delete("delete_executions", "executions", RUN_KEY)
DELETE_EVENTS = delete("delete_events", "history_events", RUN_KEY)
DELETE_RUN_ITEMS = delete("delete_run_items", "pending_items", RUN_KEY)

INSERT_TRANSFER = insert(
    "insert_transfer_tasks",
    "transfer_tasks",
    TASK_KEY | {"task_queue": "text", "available_at": "time", "data": "json"},
)
INSERT_TIMERS = insert(
    "insert_timer_tasks",
    "timer_tasks",
    TASK_KEY | {"run_id": "text", "command_sequence": "int", "due_at": "time", "data": "json"},
)
INSERT_VISIBILITY = insert("insert_visibility_tasks", "visibility_tasks", TASK_KEY | {"run_id": "text", "data": "json"})
DELETE_TRANSFER = delete("delete_transfer_tasks", "transfer_tasks", TASK_KEY)
DELETE_TIMERS = delete("delete_timer_tasks", "timer_tasks", TASK_KEY)
DELETE_VISIBILITY = delete("delete_visibility_tasks", "visibility_tasks", TASK_KEY)

# Take a shard: the next range, a new owner. A shard that nobody had begins at range 1.
ACQUIRE_SHARD = Query(
    "acquire_shard",
    "INSERT INTO shards (shard_id, range_id, owner, updated_at, data) VALUES (?, 1, ?, ?, '{}') "
    "ON CONFLICT (shard_id) DO UPDATE SET range_id = shards.range_id + 1, owner = excluded.owner, "
    "updated_at = excluded.updated_at RETURNING range_id",
)

# --- Reads ----------------------------------------------------------------------------------------------------------

READ_SHARD = Query("read_shard", "SELECT range_id, owner, updated_at FROM shards WHERE shard_id = ?", times=(2,))
LOAD_CURRENT = Query(
    "load_current_run", "SELECT data FROM current_runs WHERE shard_id = ? AND namespace = ? AND workflow_id = ?"
)
LOAD_EXECUTION = Query("load_execution", "SELECT data FROM executions WHERE shard_id = ? AND run_id = ?")
LOAD_ITEMS = Query("load_items", "SELECT kind, key, data FROM pending_items WHERE shard_id = ? AND run_id = ?")
_EVENTS = (
    "SELECT event_id, data FROM history_events WHERE shard_id = ? AND run_id = ? AND event_id >= ? AND event_id < ?"
)
LOAD_EVENTS = Query("load_events", f"{_EVENTS} ORDER BY event_id")
LOAD_EVENTS_REVERSE = Query("load_events_reverse", f"{_EVENTS} ORDER BY event_id DESC")
LOAD_TRANSFER = Query(
    "load_transfer_tasks",
    "SELECT task_id, data FROM transfer_tasks WHERE shard_id = ? AND task_id > ? ORDER BY task_id LIMIT ?",
)
LOAD_VISIBILITY = Query(
    "load_visibility_tasks",
    "SELECT task_id, data FROM visibility_tasks WHERE shard_id = ? AND task_id > ? ORDER BY task_id LIMIT ?",
)
LOAD_TIMERS = Query(
    "load_timer_tasks",
    "SELECT task_id, data FROM timer_tasks WHERE shard_id = ? AND due_at <= ? AND (due_at, task_id) > (?, ?) "
    "ORDER BY due_at, task_id LIMIT ?",
)
LOAD_DEADLINES = Query(
    "load_deadlines",
    "SELECT namespace, workflow_id, run_id, deadline_at FROM executions WHERE shard_id = ? AND deadline_at <= ? "
    "AND (deadline_at, run_id) > (?, ?) ORDER BY deadline_at, run_id LIMIT ?",
    times=(3,),
)
NEXT_TIMER = Query(
    "next_timer",
    "SELECT due_at FROM timer_tasks WHERE shard_id = ? AND due_at > ? ORDER BY due_at LIMIT 1",
    times=(0,),
)
NEXT_DEADLINE = Query(
    "next_deadline",
    "SELECT deadline_at FROM executions WHERE shard_id = ? AND deadline_at > ? ORDER BY deadline_at LIMIT 1",
    times=(0,),
)
LIST_CLOSED_RUNS = Query(
    "list_closed_runs",
    "SELECT workflow_id, run_id, closed_at FROM executions WHERE shard_id = ? AND namespace = ? AND closed_at <= ? "
    "AND (closed_at, run_id) > (?, ?) ORDER BY closed_at, run_id LIMIT ?",
    times=(2,),
)
LIST_RUNS = Query(
    "list_runs", "SELECT run_id FROM executions WHERE shard_id = ? AND run_id > ? ORDER BY run_id LIMIT ?"
)

# --- Namespaces -----------------------------------------------------------------------------------------------------

NAMESPACE: dict[str, ColumnType] = {
    "name": "text",
    "namespace_id": "text",
    "state": "text",
    "retention": "int",
    "notification_version": "int",
    "data": "json",
}
INSERT_NAMESPACE = insert("insert_namespace", "namespaces", NAMESPACE)
# Compare-and-set on the version that the change was made from.
_SET_NAMESPACE = (
    "SET namespace_id = r.namespace_id, state = r.state, retention = r.retention, "
    "notification_version = r.notification_version, data = r.data FROM {source} "
    "WHERE n.name = r.name AND n.notification_version = r.expected_version"
)
_EXPECTED_VERSION: dict[str, ColumnType] = {"expected_version": "int"}
UPDATE_NAMESPACE = RowsQuery(
    "update_namespace",
    f"WITH r({', '.join(NAMESPACE | _EXPECTED_VERSION)}) AS ({{rows}}) "
    f"UPDATE namespaces AS n {_SET_NAMESPACE.replace('{source}', 'r')}",
    postgresql=f"UPDATE namespaces AS n {_SET_NAMESPACE.replace('{source}', '({rows}) AS r')}",
    columns=NAMESPACE | _EXPECTED_VERSION,
)
DELETE_NAMESPACE = delete("delete_namespace", "namespaces", {"name": "text"})
GET_NAMESPACE = Query("get_namespace", "SELECT name, data FROM namespaces WHERE name = ?")
GET_NAMESPACE_BY_ID = Query("get_namespace_by_id", "SELECT name, data FROM namespaces WHERE namespace_id = ?")
LIST_NAMESPACES = Query("list_namespaces", "SELECT name, data FROM namespaces WHERE name > ? ORDER BY name LIMIT ?")

# --- Nexus endpoints ------------------------------------------------------------------------------------------------

NEXUS_ENDPOINT: dict[str, ColumnType] = {"endpoint_id": "text", "name": "text", "version": "int", "data": "json"}
INSERT_NEXUS_ENDPOINT = insert("insert_nexus_endpoint", "nexus_endpoints", NEXUS_ENDPOINT)
# Compare-and-set on the version that the change was made from.
_SET_NEXUS_ENDPOINT = (
    "SET name = r.name, version = r.version, data = r.data FROM {source} "
    "WHERE e.endpoint_id = r.endpoint_id AND e.version = r.expected_version"
)
UPDATE_NEXUS_ENDPOINT = RowsQuery(
    "update_nexus_endpoint",
    f"WITH r({', '.join(NEXUS_ENDPOINT | _EXPECTED_VERSION)}) AS ({{rows}}) "
    f"UPDATE nexus_endpoints AS e {_SET_NEXUS_ENDPOINT.replace('{source}', 'r')}",
    postgresql=f"UPDATE nexus_endpoints AS e {_SET_NEXUS_ENDPOINT.replace('{source}', '({rows}) AS r')}",
    columns=NEXUS_ENDPOINT | _EXPECTED_VERSION,
)
DELETE_NEXUS_ENDPOINT = delete("delete_nexus_endpoint", "nexus_endpoints", {"endpoint_id": "text"})
GET_NEXUS_ENDPOINT = Query("get_nexus_endpoint", "SELECT endpoint_id, data FROM nexus_endpoints WHERE endpoint_id = ?")
GET_NEXUS_ENDPOINT_BY_NAME = Query(
    "get_nexus_endpoint_by_name", "SELECT endpoint_id, data FROM nexus_endpoints WHERE name = ?"
)
LIST_NEXUS_ENDPOINTS = Query(
    "list_nexus_endpoints",
    "SELECT endpoint_id, data FROM nexus_endpoints WHERE endpoint_id >= ? ORDER BY endpoint_id LIMIT ?",
)
