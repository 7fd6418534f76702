"""The index by which the admin finds activities that are tried again and again: timer tasks of attempts from the tenth.

Few rows are in it, so that the others cost no more than a look at their data. On PostgreSQL it is made while the server
goes on. `tinytemporal_site.console.store` reads it, in these very words.
"""

from django.db import migrations

INDEX = "timer_tasks_retries"
SQL = {
    "sqlite": (
        f"CREATE INDEX {INDEX} ON timer_tasks (CASE WHEN json_valid(data) THEN json_extract(data, '$.attempt') END) "
        "WHERE CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END = 'activityRetry' "
        "AND CASE WHEN json_valid(data) THEN json_extract(data, '$.attempt') END >= 10"
    ),
    "postgresql": (
        f"CREATE INDEX CONCURRENTLY {INDEX} ON timer_tasks (((data ->> 'attempt')::bigint)) "
        "WHERE (data ->> 'kind') = 'activityRetry' AND (data ->> 'attempt')::bigint >= 10"
    ),
}


def make(_apps, schema_editor):
    vendor = schema_editor.connection.vendor
    if vendor == "postgresql":
        # What a migration that was broken off left is no good.
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
    schema_editor.execute(SQL[vendor], params=None)


def drop(_apps, schema_editor):
    schema_editor.execute(f"DROP INDEX IF EXISTS {INDEX}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("history", "0004_closed_index"),
    ]

    operations = [
        migrations.RunPython(make, drop),
    ]
