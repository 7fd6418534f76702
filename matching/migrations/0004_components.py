"""Entities made of components: the other home of user data."""

from django.db import migrations, models

import common.fields

VIEW = (
    "SELECT archetype || '/' || replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || "
    "replace(replace(entity_id, '%', '%25'), '/', '%2F') || '/' || path AS id, * FROM components"
)
COLUMNS = [
    ("archetype", common.fields.KeyField()),
    ("namespace", common.fields.KeyField()),
    ("entity_id", common.fields.KeyField()),
    ("path", common.fields.KeyField()),
    ("version", models.BigIntegerField()),
    ("data", common.fields.DataField()),
]


class Migration(migrations.Migration):
    dependencies = [
        ("matching", "0003_postgresql_storage"),
    ]

    operations = [
        migrations.CreateModel(
            name="Component",
            fields=[
                *COLUMNS,
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "archetype",
                        "namespace",
                        "entity_id",
                        "path",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
            options={"db_table": "components"},
        ),
        migrations.CreateModel(
            name="ComponentView",
            fields=[*COLUMNS, ("id", models.TextField(primary_key=True, serialize=False))],
            options={"verbose_name": "component", "db_table": "admin_components", "managed": False},
        ),
        migrations.RunSQL(sql=f"CREATE VIEW admin_components AS {VIEW}", reverse_sql="DROP VIEW admin_components"),
    ]
