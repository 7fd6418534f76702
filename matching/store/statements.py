"""The SQL of Matching's tables. Writes take many rows at once; every read is served by an index."""

from __future__ import annotations

from common.database import ColumnType, Query, RowsQuery, insert
from common.database.base import numbered

_NUMBERS: dict[str, ColumnType] = {
    "range_id": "int",
    "ack_level": "int",
    "last_task_id": "int",
    "updated_at": "time",
    "data": "json",
}

# Take ownership: the next range and a new owner, the rest kept. A queue without a row begins at range 1.
_ACQUIRE = (
    "INSERT INTO task_queues AS q (physical_queue, namespace, task_queue, kind, partition, version, range_id, "
    "ack_level, last_task_id, updated_at, data) VALUES (?, ?, ?, ?, ?, ?, 1, 0, 0, ?, ?) "
    "ON CONFLICT (physical_queue) DO UPDATE SET range_id = q.range_id + 1, updated_at = excluded.updated_at, "
    "data = {data} RETURNING range_id, data"
)
ACQUIRE_QUEUE = Query(
    "acquire_queue",
    _ACQUIRE.format(
        data="CASE WHEN json_valid(q.data) THEN json_set(q.data, '$.rangeId', q.range_id + 1, '$.owner', ?, "
        "'$.updatedAt', ?) ELSE q.data END"
    ),
    postgresql=numbered(
        _ACQUIRE.format(
            data="q.data || jsonb_build_object('rangeId', q.range_id + 1, 'owner', ?::text, 'updatedAt', ?::text)"
        )
    ),
)

# The fence and the new progress in one: a queue whose range is no longer current is not touched, and so not counted.
_SET_QUEUE = (
    "SET ack_level = r.ack_level, last_task_id = r.last_task_id, updated_at = r.updated_at, data = r.data FROM {source} "
    "WHERE q.physical_queue = r.physical_queue AND q.range_id = r.range_id"
)
_QUEUE: dict[str, ColumnType] = {"physical_queue": "text", **_NUMBERS}
UPDATE_QUEUES = RowsQuery(
    "update_task_queues",
    f"WITH r({', '.join(_QUEUE)}) AS ({{rows}}) UPDATE task_queues AS q {_SET_QUEUE.replace('{source}', 'r')}",
    postgresql=f"UPDATE task_queues AS q {_SET_QUEUE.replace('{source}', '({rows}) AS r')}",
    columns=_QUEUE,
)

INSERT_TASKS = insert(
    "insert_tasks",
    "tasks",
    {
        "physical_queue": "text",
        "task_id": "int",
        "priority": "int",
        "pass": "int",
        "created_at": "time",
        "expires_at": "time",
        "data": "json",
    },
)

# The handled prefix of a priority.
_PREFIX: dict[str, ColumnType] = {"physical_queue": "text", "priority": "int", "pass": "int", "task_id": "int"}
_IN_PREFIX = (
    "t.physical_queue = k.physical_queue AND t.priority = k.priority AND (t.pass, t.task_id) <= (k.pass, k.task_id)"
)
_FOUND = f"SELECT t.rowid FROM k CROSS JOIN tasks t WHERE {_IN_PREFIX}"  # noqa: S608  no request's text
DELETE_PREFIXES = RowsQuery(
    "delete_task_prefixes",
    f"WITH k({', '.join(_PREFIX)}) AS ({{rows}}) DELETE FROM tasks WHERE rowid IN ({_FOUND})",  # noqa: S608
    postgresql=f"DELETE FROM tasks t USING ({{rows}}) k WHERE {_IN_PREFIX}",  # noqa: S608  no request's text
    columns=_PREFIX,
)

READ_QUEUE = Query("read_queue", "SELECT data FROM task_queues WHERE physical_queue = ?")
READ_RANGE = Query("read_range", "SELECT range_id FROM task_queues WHERE physical_queue = ?")
LIST_QUEUES = Query(
    "list_queues",
    "SELECT physical_queue, data FROM task_queues WHERE physical_queue > ? ORDER BY physical_queue LIMIT ?",
)
_TASK = "SELECT task_id, priority, pass, created_at, expires_at, data FROM tasks WHERE physical_queue = ?"
LOAD_TASKS = Query(
    "load_tasks",
    f"{_TASK} AND priority = ? AND (pass, task_id) > (?, ?) ORDER BY pass, task_id LIMIT ?",
    times=(3, 4),
)
LIST_TASKS = Query("list_tasks", f"{_TASK} AND task_id > ? ORDER BY task_id LIMIT ?", times=(3, 4))

# A deleted namespace: its tasks in batches, then its queues.
_OF_NAMESPACE = "physical_queue >= ? AND physical_queue < ?"
DELETE_TASKS_OF_NAMESPACE = Query(
    "delete_tasks_of_namespace",
    f"DELETE FROM tasks WHERE rowid IN (SELECT rowid FROM tasks WHERE {_OF_NAMESPACE} LIMIT 1000) RETURNING 1",  # noqa: S608
    postgresql=numbered(
        f"DELETE FROM tasks WHERE ctid = ANY(ARRAY(SELECT ctid FROM tasks WHERE {_OF_NAMESPACE} LIMIT 1000)) RETURNING 1"  # noqa: S608
    ),
)
DELETE_QUEUES_OF_NAMESPACE = Query(
    "delete_queues_of_namespace",
    f"DELETE FROM task_queues WHERE {_OF_NAMESPACE} RETURNING 1",  # noqa: S608  no request's text
)

# --- User data ------------------------------------------------------------------------------------------------------

_USER_DATA: dict[str, ColumnType] = {"namespace": "text", "task_queue": "text", "version": "int", "data": "json"}
INSERT_USER_DATA = insert("insert_user_data", "task_queue_user_data", _USER_DATA)
# Compare-and-set on the version that the change was made from.
_SET_USER_DATA = (
    "SET version = r.version, data = r.data FROM {source} "
    "WHERE u.namespace = r.namespace AND u.task_queue = r.task_queue AND u.version = r.expected_version"
)
_CHANGED_USER_DATA: dict[str, ColumnType] = {**_USER_DATA, "expected_version": "int"}
UPDATE_USER_DATA = RowsQuery(
    "update_user_data",
    f"WITH r({', '.join(_CHANGED_USER_DATA)}) AS ({{rows}}) "
    f"UPDATE task_queue_user_data AS u {_SET_USER_DATA.replace('{source}', 'r')}",
    postgresql=f"UPDATE task_queue_user_data AS u {_SET_USER_DATA.replace('{source}', '({rows}) AS r')}",
    columns=_CHANGED_USER_DATA,
)
LOAD_USER_DATA = Query("load_user_data", "SELECT data FROM task_queue_user_data WHERE namespace = ? AND task_queue = ?")
LIST_USER_DATA = Query(
    "list_user_data",
    "SELECT namespace, task_queue, data FROM task_queue_user_data WHERE (namespace, task_queue) > (?, ?) "
    "ORDER BY namespace, task_queue LIMIT ?",
)
DELETE_USER_DATA = Query("delete_user_data", "DELETE FROM task_queue_user_data WHERE namespace = ? RETURNING 1")

# --- Components -----------------------------------------------------------------------------------------------------

_NODE_KEY: dict[str, ColumnType] = {"archetype": "text", "namespace": "text", "entity_id": "text", "path": "text"}
_NODE: dict[str, ColumnType] = {**_NODE_KEY, "version": "int", "data": "json"}
INSERT_COMPONENTS = insert("insert_components", "components", _NODE)
# The nodes of one transition, each if it is at the version that the transition was made from.
_SET_NODE = (
    "SET version = r.version, data = r.data FROM {source} "
    f"WHERE {' AND '.join(f'c.{column} = r.{column}' for column in _NODE_KEY)} AND c.version = r.expected_version"
)
_CHANGED_NODE: dict[str, ColumnType] = {**_NODE, "expected_version": "int"}
UPDATE_COMPONENTS = RowsQuery(
    "update_components",
    f"WITH r({', '.join(_CHANGED_NODE)}) AS ({{rows}}) UPDATE components AS c {_SET_NODE.replace('{source}', 'r')}",
    postgresql=f"UPDATE components AS c {_SET_NODE.replace('{source}', '({rows}) AS r')}",
    columns=_CHANGED_NODE,
)
LOAD_COMPONENT = Query(
    "load_component",
    "SELECT version, data FROM components WHERE archetype = ? AND namespace = ? AND entity_id = ? AND path = ?",
)
LIST_COMPONENTS = Query(
    "list_components",
    "SELECT namespace, entity_id, data FROM components WHERE archetype = ? AND (namespace, entity_id) > (?, ?) "
    "AND path = ? ORDER BY namespace, entity_id LIMIT ?",
)
DELETE_COMPONENTS = Query(
    "delete_components", "DELETE FROM components WHERE archetype = ? AND namespace = ? RETURNING 1"
)
