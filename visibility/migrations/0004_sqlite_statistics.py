"""Tells SQLite's planner what a big table looks like: it knows nothing by itself, takes a namespace for as selective as a
workflow id, and then reads lists in their order, row by row. An ANALYZE of real rows may replace this at any time.

A line is the number of rows in the index, then how many of them are alike in its first column, its first two, and so on.
"""

from hashlib import sha256

from django.db import migrations

INDEXES = {
    "sqlite_autoindex_visibility_1": "1000000 1",
    "visibility_order": "1000000 500000 2 1 1 1 1",
    "visibility_workflow_id": "1000000 500000 3 2 1 1",
    "visibility_workflow_type": "1000000 500000 20000 2 1 1",
    "visibility_task_queue": "1000000 500000 20000 2 1 1",
    "visibility_start_time": "1000000 500000 2",
    "visibility_execution_time": "1000000 500000 2",
    "visibility_execution_duration": "1000000 500000 2",
    "visibility_history_length": "1000000 500000 10000",
    "visibility_history_size": "1000000 500000 1000",
    "visibility_state_transition_co": "1000000 500000 10000",
    "visibility_status": "50000 25000 10000 1 1 1",
    "visibility_division": "10000 5000 5000 1 1 1",
    "visibility_parent_workflow_id": "100000 50000 10 1 1 1",
    "visibility_parent_run_id": "100000 50000 10 1 1 1",
    "visibility_root_workflow_id": "100000 50000 10 1 1 1",
    "visibility_root_run_id": "100000 50000 10 1 1 1",
}
VALUES = "1000000 500000 100 1 1 1"
ATTRIBUTES = (
    "Keyword:TemporalScheduledById",
    "Keyword:TemporalWorkerDeployment",
    "Keyword:TemporalWorkerDeploymentVersion",
    "Keyword:TemporalWorkflowVersioningBehavior",
)


def describe(_apps, schema_editor):
    if schema_editor.connection.vendor != "sqlite":
        return
    lines = dict(INDEXES)
    for name in ATTRIBUTES:
        lines["visibility_by_" + sha256(name.encode()).hexdigest()[:16]] = VALUES
    schema_editor.execute("ANALYZE visibility")
    schema_editor.execute("DELETE FROM sqlite_stat1 WHERE tbl = 'visibility'")
    for name, line in lines.items():
        schema_editor.execute("INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('visibility', %s, %s)", (name, line))


class Migration(migrations.Migration):
    dependencies = [("visibility", "0003_predefined_attributes")]

    operations = [migrations.RunPython(describe, migrations.RunPython.noop)]
