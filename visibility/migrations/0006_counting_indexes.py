"""Indexes that most counts go by get what counts look at beside, so that they need not read the rows.

On PostgreSQL each is made CONCURRENTLY beside the old one, which then goes: lists and writes go on. What an interruption leaves
is made again.
"""

from datetime import UTC, datetime

from django.db import migrations, models
from django.db.models import F, OrderBy
from django.db.models.functions import Coalesce

NEVER = models.Value(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), output_field=models.DateTimeField())
ORDER = (
    OrderBy(Coalesce("close_time", NEVER), descending=True),
    OrderBy(F("start_time"), descending=True),
    OrderBy(F("run_id")),
)
COLUMNS = {"workflow_type": ORDER, "task_queue": ORDER, "start_time": (), "execution_time": ()}
NEW = "_new"
EXPECTED = {
    "workflow_type": "1000000 500000 20000 2 1 1 1 1",
    "task_queue": "1000000 500000 20000 2 1 1 1 1",
    "start_time": "1000000 500000 2 2 2",
    "execution_time": "1000000 500000 2 2 2",
}
"""For SQLite's planner, see the migration on its statistics."""


def index(column, suffix=""):
    name = f"visibility_{column}{suffix}"
    return models.Index(F("namespace"), F(column), *COLUMNS[column], F("division"), F("status"), name=name)


def make(apps, schema_editor):
    model = apps.get_model("visibility", "Visibility")
    for column, expected in EXPECTED.items():
        name = f"visibility_{column}"
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}{NEW}", params=None)
            schema_editor.add_index(model, index(column, NEW), concurrently=True)
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", params=None)
            schema_editor.execute(f"ALTER INDEX {name}{NEW} RENAME TO {name}", params=None)
        else:
            schema_editor.execute(f"DROP INDEX IF EXISTS {name}", params=None)
            schema_editor.add_index(model, index(column))
            line = "INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('visibility', %s, %s)"
            schema_editor.execute(line, (name, expected))


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("visibility", "0005_counts")]

    operations = [
        migrations.RunPython(make, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                operation
                for column in COLUMNS
                for operation in (
                    migrations.RemoveIndex("visibility", f"visibility_{column}"),
                    migrations.AddIndex("visibility", index(column)),
                )
            ]
        ),
    ]
