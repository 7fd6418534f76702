"""The table of Nexus endpoints."""

from django.db import migrations, models

import common.fields


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0005_retries_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="NexusEndpoint",
            fields=[
                ("endpoint_id", common.fields.KeyField(primary_key=True, serialize=False)),
                ("name", common.fields.KeyField(unique=True)),
                ("version", models.BigIntegerField()),
                ("data", common.fields.DataField()),
            ],
            options={
                "verbose_name": "Nexus endpoint",
                "db_table": "nexus_endpoints",
            },
        ),
    ]
