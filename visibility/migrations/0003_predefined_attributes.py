"""Indexes on the server's own search attributes; those on custom ones are made when they are added.

As `visibility.store.indexes` makes them, under the same names. Only rows that have the attribute are in its index.
"""

from hashlib import sha256

from django.db import migrations

ATTRIBUTES = {
    "BuildIds": "KeywordList",
    "TemporalChangeVersion": "KeywordList",
    "TemporalPauseInfo": "KeywordList",
    "TemporalReportedProblems": "KeywordList",
    "TemporalScheduledById": "Keyword",
    "TemporalUsedWorkerDeploymentVersions": "KeywordList",
    "TemporalWorkerDeployment": "Keyword",
    "TemporalWorkerDeploymentVersion": "Keyword",
    "TemporalWorkflowVersioningBehavior": "Keyword",
}
NEVER = "9999-12-31 23:59:59.999999"


def statements(vendor, version):
    for name, type_name in ATTRIBUTES.items():
        index = "visibility_by_" + sha256(f"{type_name}:{name}".encode()).hexdigest()[:16]
        is_list = type_name == "KeywordList"
        if vendor == "sqlite":
            value = f"json_extract(\"search_attributes\", '$.\"{name}\"')"
            order = f"COALESCE(close_time, '{NEVER}') DESC, start_time DESC, run_id"
            columns = order if is_list else f"{value}, {order}"
            yield f"CREATE INDEX IF NOT EXISTS {index} ON visibility (namespace, {columns}) WHERE {value} IS NOT NULL"
            continue
        if is_list:
            value = f"(search_attributes -> '{name}')"
            content = f"USING gin ({value} jsonb_path_ops)"
        else:
            value = f"((search_attributes ->> '{name}') COLLATE \"C\")"
            order = f"COALESCE(close_time, '{NEVER}+00'::timestamptz) DESC, start_time DESC, run_id"
            content = f"(namespace, {value}, {order})"
        yield f"CREATE INDEX IF NOT EXISTS {index} ON visibility {content} WHERE {value} IS NOT NULL"
        if version >= 140_000:
            yield f"CREATE STATISTICS IF NOT EXISTS {index} ON ({value}) FROM visibility"


def make(_apps, schema_editor):
    connection = schema_editor.connection
    version = connection.pg_version if connection.vendor == "postgresql" else 0
    for statement in statements(connection.vendor, version):
        schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("visibility", "0002_no_like_index")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
