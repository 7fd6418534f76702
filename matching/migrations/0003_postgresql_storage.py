"""How PostgreSQL lays out the tables: room on each page, so that an update of a queue stays on it and touches no index
(a heap-only tuple), and vacuuming of the tasks by rows rather than by a share of what is mostly empty."""

from django.db import migrations

STORAGE = {
    "task_queues": "fillfactor = 20",
    "tasks": "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000",
}


def lay_out(apps, schema_editor):  # noqa: ARG001  Django's signature
    if schema_editor.connection.vendor == "postgresql":
        for table, parameters in STORAGE.items():
            schema_editor.execute(f"ALTER TABLE {table} SET ({parameters})", params=None)


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0002_views"),
    ]

    operations = [
        migrations.RunPython(lay_out, migrations.RunPython.noop),
    ]
