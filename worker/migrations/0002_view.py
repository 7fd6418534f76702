"""The view for the admin, which wants a key of one column: `id` joins the parts of the table's key with a slash (in the
namespace "/" is written %2F and "%" is written %25). A later migration that alters the table drops it first."""

from django.db import migrations, models

import common.fields

VIEW = "SELECT replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || job_id AS id, * FROM batch_operations"


class Migration(migrations.Migration):
    dependencies = [
        ("worker", "0001_batches"),
    ]

    operations = [
        migrations.CreateModel(
            name="BatchOperationView",
            fields=[
                ("id", models.TextField(primary_key=True, serialize=False)),
                ("namespace", common.fields.KeyField()),
                ("job_id", common.fields.KeyField()),
                ("operation", models.TextField()),
                ("state", models.TextField()),
                ("started_at", models.DateTimeField()),
                ("closed_at", models.DateTimeField(null=True)),
                ("generation", models.BigIntegerField()),
                ("data", common.fields.DataField()),
            ],
            options={"verbose_name": "batch operation", "db_table": "admin_batch_operations", "managed": False},
        ),
        migrations.RunSQL(
            sql=f"CREATE VIEW admin_batch_operations AS {VIEW}", reverse_sql="DROP VIEW admin_batch_operations"
        ),
    ]
