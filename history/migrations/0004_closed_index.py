"""The index by which retention finds closed runs. On PostgreSQL it is made while the server goes on."""

from django.db import migrations, models


class AddIndexOnline(migrations.AddIndex):
    """AddIndex that lets writers go on where the database can do that."""

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return  # a database without these tables
        # What a migration that was broken off left is no good.
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {self.index.name}")
        schema_editor.execute(self.index.create_sql(model, schema_editor, concurrently=True), params=None)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("history", "0003_postgresql_storage"),
    ]

    operations = [
        AddIndexOnline(
            model_name="execution",
            index=models.Index(
                condition=models.Q(("closed_at__isnull", False)),
                fields=["shard_id", "namespace", "closed_at", "run_id"],
                name="executions_closed",
            ),
        ),
    ]
