"""Worker deployments, with the view that the admin reads."""

from django.db import migrations, models

import common.fields

VIEW = "SELECT replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || name AS id, * FROM worker_deployments"
COLUMNS = [
    ("namespace", common.fields.KeyField()),
    ("name", common.fields.KeyField()),
    ("version", models.BigIntegerField()),
    ("created_at", models.DateTimeField()),
    ("look_at", models.DateTimeField(null=True)),
    ("data", common.fields.DataField()),
]


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0004_components"),
    ]

    operations = [
        migrations.CreateModel(
            name="WorkerDeployment",
            fields=[
                *COLUMNS,
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "namespace", "name", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
            ],
            options={
                "db_table": "worker_deployments",
                "indexes": [
                    models.Index(fields=["namespace", "created_at", "name"], name="worker_deployments_created"),
                    models.Index(
                        condition=models.Q(("look_at__isnull", False)),
                        fields=["look_at"],
                        name="worker_deployments_due",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="WorkerDeploymentView",
            fields=[*COLUMNS, ("id", models.TextField(primary_key=True, serialize=False))],
            options={"verbose_name": "worker deployment", "db_table": "admin_worker_deployments", "managed": False},
        ),
        migrations.RunSQL(
            sql=f"CREATE VIEW admin_worker_deployments AS {VIEW}", reverse_sql="DROP VIEW admin_worker_deployments"
        ),
    ]
