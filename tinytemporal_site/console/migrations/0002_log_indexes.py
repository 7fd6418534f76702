"""Indexes on Django's log of the admin: by what was acted on, for its page, and by who did it, for the first page.

Without them each of these pages reads all that was ever logged. On PostgreSQL they are made while the server goes on.
"""

from django.db import migrations

INDEXES = {
    "admin_log_of_object": "content_type_id, object_id, action_time",
    "admin_log_of_user": "user_id, action_time",
}


def make(_apps, schema_editor):
    is_postgresql = schema_editor.connection.vendor == "postgresql"
    for name, columns in INDEXES.items():
        if is_postgresql:
            # What a migration that was broken off left is no good.
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        how = "INDEX CONCURRENTLY" if is_postgresql else "INDEX IF NOT EXISTS"
        schema_editor.execute(f"CREATE {how} {name} ON django_admin_log ({columns})")


def drop(_apps, schema_editor):
    for name in INDEXES:
        schema_editor.execute(f"DROP INDEX IF EXISTS {name}")


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0001_actions"),
        ("admin", "0003_logentry_add_action_flag_choices"),
    ]

    operations = [
        migrations.RunPython(make, drop),
    ]
