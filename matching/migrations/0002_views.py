"""Views for the admin, which wants a key of one column: `id` joins the parts of a table's key with slashes (in a part
that is not the last, "/" is written %2F and "%" is written %25). The key itself is not stored anywhere.

A later migration that alters a table drops its view first and makes it again afterwards."""

from django.db import migrations, models

import common.fields

VIEWS = {
    "admin_tasks": "SELECT task_id || '/' || physical_queue AS id, * FROM tasks",
    "admin_task_queue_user_data": "SELECT replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || task_queue AS id, * FROM task_queue_user_data",
}


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0001_tables"),
    ]

    operations = [
        migrations.CreateModel(
            name="TaskQueueUserDataView",
            fields=[
                ("namespace", common.fields.KeyField()),
                ("task_queue", common.fields.KeyField()),
                ("version", models.BigIntegerField()),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "task queue user data",
                "verbose_name_plural": "task queue user data",
                "db_table": "admin_task_queue_user_data",
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="TaskView",
            fields=[
                ("physical_queue", common.fields.KeyField()),
                ("task_id", models.BigIntegerField()),
                ("priority", models.IntegerField()),
                ("fairness_pass", models.BigIntegerField(db_column="pass")),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
                ("data", common.fields.DataField()),
                ("id", models.TextField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "task",
                "db_table": "admin_tasks",
                "managed": False,
            },
        ),
        migrations.RunSQL(
            sql=[f"CREATE VIEW {name} AS {select}" for name, select in VIEWS.items()],
            reverse_sql=[f"DROP VIEW {name}" for name in VIEWS],
        ),
    ]
