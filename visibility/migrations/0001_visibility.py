from datetime import UTC, datetime

from django.db import migrations, models
from django.db.models import F, OrderBy, Q
from django.db.models.functions import Coalesce

from common.fields import DataField, KeyField

NEVER = models.Value(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), output_field=models.DateTimeField())
ORDER = (
    OrderBy(Coalesce("close_time", NEVER), descending=True),
    OrderBy(F("start_time"), descending=True),
    OrderBy(F("run_id")),
)
NOT_OWN_ROOT = ~Q(root_run_id=F("run_id"))


def ordered(column: str, condition: Q | None = None) -> models.Index:
    return models.Index(F("namespace"), F(column), *ORDER, name=f"visibility_{column}", condition=condition)


def given(column: str) -> Q:
    return Q((f"{column}__isnull", False))


def plain(column: str, condition: Q | None = None) -> models.Index:
    return models.Index(F("namespace"), F(column), name=f"visibility_{column[:19]}", condition=condition)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Visibility",
            fields=[
                ("run_id", KeyField(primary_key=True, serialize=False)),
                ("namespace", KeyField()),
                ("task_id", models.BigIntegerField()),
                ("workflow_id", KeyField()),
                ("workflow_type", KeyField()),
                ("status", KeyField()),
                ("start_time", models.DateTimeField()),
                ("execution_time", models.DateTimeField()),
                ("close_time", models.DateTimeField(null=True)),
                ("task_queue", KeyField()),
                ("history_length", models.BigIntegerField(null=True)),
                ("history_size", models.BigIntegerField(null=True)),
                ("state_transition_count", models.BigIntegerField(null=True)),
                ("execution_duration", models.BigIntegerField(null=True)),
                ("parent_workflow_id", KeyField(null=True)),
                ("parent_run_id", KeyField(null=True)),
                ("root_workflow_id", KeyField()),
                ("root_run_id", KeyField()),
                ("division", KeyField(null=True)),
                ("search_attributes", DataField(null=True)),
                ("text_words", DataField(null=True)),
                ("memo", DataField(null=True)),
            ],
            options={
                "db_table": "visibility",
                "verbose_name_plural": "visibility",
                "indexes": [
                    models.Index(F("namespace"), *ORDER, F("division"), F("status"), name="visibility_order"),
                    ordered("workflow_id"),
                    ordered("workflow_type"),
                    ordered("task_queue"),
                    plain("start_time"),
                    plain("execution_time"),
                    plain("execution_duration", given("execution_duration")),
                    plain("history_length", given("history_length")),
                    plain("history_size", given("history_size")),
                    plain("state_transition_count", given("state_transition_count")),
                    ordered("status", ~Q(status__in=("Running", "Completed"))),
                    ordered("division", given("division")),
                    ordered("parent_workflow_id", given("parent_workflow_id")),
                    ordered("parent_run_id", given("parent_run_id")),
                    ordered("root_workflow_id", NOT_OWN_ROOT),
                    ordered("root_run_id", NOT_OWN_ROOT),
                ],
            },
        ),
    ]
