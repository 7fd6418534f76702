from django.db import migrations, models

import common.fields

VIEW = "SELECT replace(replace(namespace, '%', '%25'), '/', '%2F') || '/' || schedule_id AS id, * FROM schedules"


class Migration(migrations.Migration):
    """The table of schedules, and the view of it for the admin, as 0002 has one of batches."""

    dependencies = [
        ("worker", "0002_view"),
    ]

    operations = [
        migrations.CreateModel(
            name="Schedule",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "namespace", "schedule_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("namespace", common.fields.KeyField()),
                ("schedule_id", common.fields.KeyField()),
                ("incarnation", common.fields.KeyField()),
                ("version", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                ("search_attributes", common.fields.DataField(null=True)),
                ("text_words", common.fields.DataField(null=True)),
                ("data", common.fields.DataField()),
            ],
            options={
                "db_table": "schedules",
                "indexes": [
                    models.Index(
                        condition=models.Q(("next_at__isnull", False)),
                        fields=["next_at", "namespace", "schedule_id"],
                        name="schedules_due",
                    ),
                    models.Index(
                        models.F("namespace"),
                        models.OrderBy(models.F("created_at"), descending=True),
                        models.F("schedule_id"),
                        name="schedules_listed",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ScheduleView",
            fields=[
                ("id", models.TextField(primary_key=True, serialize=False)),
                ("namespace", common.fields.KeyField()),
                ("schedule_id", common.fields.KeyField()),
                ("incarnation", common.fields.KeyField()),
                ("version", models.BigIntegerField()),
                ("created_at", models.DateTimeField()),
                ("next_at", models.DateTimeField(null=True)),
                ("search_attributes", common.fields.DataField(null=True)),
                ("text_words", common.fields.DataField(null=True)),
                ("data", common.fields.DataField()),
            ],
            options={"verbose_name": "schedule", "db_table": "admin_schedules", "managed": False},
        ),
        migrations.RunSQL(sql=f"CREATE VIEW admin_schedules AS {VIEW}", reverse_sql="DROP VIEW admin_schedules"),
    ]
