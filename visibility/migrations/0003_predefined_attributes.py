"""Indexes on the server's own search attributes; those on custom ones are made when they are added.

As `visibility.store.indexes` makes them, under the same names. Only rows that have the attribute are in its index.
SQLite has no index on what is in a list: there, triggers keep the items of KeywordLists and the words of Texts in a table.
"""

# ruff: noqa: S608  nothing here comes from a request

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


ITEMS = """CREATE TABLE visibility_items (
    attribute text NOT NULL, item text NOT NULL, run_id text NOT NULL, PRIMARY KEY (attribute, item, run_id)
) WITHOUT ROWID"""
LISTS = ("search_attributes", "text_words")


def items_of(row):
    """The items of a row's lists, as a row of the table each."""
    return " UNION ALL ".join(
        f"SELECT a.key, i.value, {row}.run_id FROM json_each({row}.{column}) a, json_each(a.value) i WHERE a.type = 'array'"
        for column in LISTS
    )


def add(row):
    return f"INSERT OR IGNORE INTO visibility_items {items_of(row)};"


def remove(row):
    return f"DELETE FROM visibility_items WHERE (attribute, item, run_id) IN ({items_of(row)});"


def any_list(row):
    return " OR ".join(f"{row}.{column} IS NOT NULL" for column in LISTS)


def triggers():
    differs = " OR ".join(f"OLD.{column} IS NOT NEW.{column}" for column in LISTS)
    columns = ", ".join(LISTS)
    for name, event, condition, done in (
        ("insert", "INSERT", any_list("NEW"), add("NEW")),
        ("update", f"UPDATE OF {columns}", differs, remove("OLD") + add("NEW")),
        ("delete", "DELETE", any_list("OLD"), remove("OLD")),
    ):
        yield f"CREATE TRIGGER visibility_items_{name} AFTER {event} ON visibility WHEN {condition} BEGIN {done} END"


def statements(vendor, version):
    for name, type_name in ATTRIBUTES.items():
        index = "visibility_by_" + sha256(f"{type_name}:{name}".encode()).hexdigest()[:16]
        is_list = type_name == "KeywordList"
        if vendor == "sqlite":
            if is_list:
                continue
            value = f'json_extract("search_attributes", \'$."{name}"\')'
            order = f"COALESCE(close_time, '{NEVER}') DESC, start_time DESC, run_id"
            yield f"CREATE INDEX IF NOT EXISTS {index} ON visibility (namespace, {value}, {order}) WHERE {value} IS NOT NULL"
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
    if connection.vendor == "sqlite":
        for statement in (ITEMS, *triggers()):
            schema_editor.execute(statement)


class Migration(migrations.Migration):
    dependencies = [("visibility", "0002_no_like_index")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
