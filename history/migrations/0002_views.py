"""Views for the admin, which wants a key of one column: `id` joins the parts of a table's key with slashes (in a part
that is not the last, "/" is written %2F and "%" is written %25). The key itself is not stored anywhere.

A later migration that alters a table drops its view first and makes it again afterwards."""

from django.db import migrations, models

import common.fields

VIEWS = {
    "admin_executions": "SELECT * FROM executions",
    "admin_current_runs": "SELECT shard_id || '/' || replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || workflow_id AS id, * FROM current_runs",
    "admin_history_events": "SELECT shard_id || '/' || run_id || '/' || event_id AS id, * FROM history_events",
    "admin_pending_items": "SELECT shard_id || '/' || run_id || '/' || kind || '/' || key AS id, * FROM pending_items",
    "admin_transfer_tasks": "SELECT shard_id || '/' || task_id AS id, * FROM transfer_tasks",
    "admin_timer_tasks": "SELECT shard_id || '/' || task_id AS id, * FROM timer_tasks",
    "admin_visibility_tasks": "SELECT shard_id || '/' || task_id AS id, * FROM visibility_tasks",
}


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="CurrentRunView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("namespace", common.fields.KeyField()),
                ("workflow_id", common.fields.KeyField()),
                ("run_id", common.fields.KeyField()),
                ("status", models.TextField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "current run",
                "db_table": "admin_current_runs",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="ExecutionView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("namespace", models.TextField()),
                ("workflow_id", common.fields.KeyField()),
                ("workflow_type", models.TextField()),
                ("task_queue", models.TextField()),
                ("status", common.fields.KeyField()),
                ("next_event_id", models.BigIntegerField()),
                ("started_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("data", common.fields.DataField()),
                ("run_id", common.fields.KeyField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "execution",
                "db_table": "admin_executions",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="HistoryEventView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("run_id", common.fields.KeyField()),
                ("event_id", models.BigIntegerField()),
                ("event_type", models.TextField()),
                ("event_time", models.DateTimeField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "history event",
                "db_table": "admin_history_events",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="PendingItemView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("run_id", common.fields.KeyField()),
                ("kind", common.fields.KeyField()),
                ("key", common.fields.KeyField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "pending item",
                "db_table": "admin_pending_items",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="TimerTaskView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("task_id", models.BigIntegerField()),
                ("run_id", common.fields.KeyField()),
                ("command_sequence", models.BigIntegerField()),
                ("due_at", models.DateTimeField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "timer task",
                "db_table": "admin_timer_tasks",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="TransferTaskView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("task_id", models.BigIntegerField()),
                ("task_queue", models.TextField()),
                ("available_at", models.DateTimeField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "transfer task",
                "db_table": "admin_transfer_tasks",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="VisibilityTaskView",
            fields=[
                ("shard_id", models.IntegerField()),
                ("task_id", models.BigIntegerField()),
                ("run_id", common.fields.KeyField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "visibility task",
                "db_table": "admin_visibility_tasks",
                "managed": False,
            },
        ),
        migrations.RunSQL(
            sql=[f"CREATE VIEW {name} AS {select}" for name, select in VIEWS.items()],
            reverse_sql=[f"DROP VIEW {name}" for name in VIEWS],
        ),
    ]
