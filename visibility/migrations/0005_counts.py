"""How many runs there are of each type in each status, kept by the database itself with every write of the read model, so
that such counts need not look at the runs (see `visibility.store.counting`). Runs of a division are few and not in it.

On PostgreSQL each statement adds rows that say what it changed, since processes that write at the same time would wait
for each other on one row; `visibility.store.statements.FOLD_COUNTS` sums them up now and then. SQLite has one writer, and one row.
Writes of the read model wait while this counts the runs there are (about a second for a million); executions go on.
"""

# ruff: noqa: S608  nothing here comes from a request

from django.db import migrations

GROUP = "namespace, workflow_type, status"
COUNTED = "division IS NULL AND namespace <> ''"
EXISTING = f"INSERT INTO visibility_counts ({GROUP}, number) SELECT {GROUP}, count(*) FROM visibility WHERE {COUNTED} GROUP BY {GROUP}"

SQLITE_TABLE = f"""CREATE TABLE visibility_counts (
    namespace text NOT NULL, workflow_type text NOT NULL, status text NOT NULL, number integer NOT NULL, PRIMARY KEY ({GROUP})
) WITHOUT ROWID"""


def of(row):
    return ", ".join(f"{row}.{name}" for name in GROUP.split(", "))


def is_counted(row):
    return f"{row}.division IS NULL AND {row}.namespace <> ''"


def add(row):
    return (
        f"INSERT INTO visibility_counts ({GROUP}, number) SELECT {of(row)}, 1 WHERE {is_counted(row)} "
        f"ON CONFLICT ({GROUP}) DO UPDATE SET number = number + 1;"
    )


def remove(row):
    same = " AND ".join(f"{name} = {row}.{name}" for name in GROUP.split(", "))
    return f"UPDATE visibility_counts SET number = number - 1 WHERE {same} AND {is_counted(row)};"


def sqlite():
    yield SQLITE_TABLE
    changes = " OR ".join(
        f"OLD.{name} IS NOT NEW.{name}" for name in ("namespace", "workflow_type", "status", "division")
    )
    for name, event, condition, done in (
        ("insert", "INSERT", is_counted("NEW"), add("NEW")),
        ("update", f"UPDATE OF {GROUP}, division", changes, remove("OLD") + add("NEW")),
        ("delete", "DELETE", is_counted("OLD"), remove("OLD")),
    ):
        yield f"CREATE TRIGGER visibility_counts_{name} AFTER {event} ON visibility WHEN {condition} BEGIN {done} END"
    yield EXISTING


POSTGRESQL_TABLE = """CREATE TABLE visibility_counts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text COLLATE "C" NOT NULL,
    workflow_type text COLLATE "C" NOT NULL, status text COLLATE "C" NOT NULL, number bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000)"""


def summed(source):
    return (
        f"INSERT INTO visibility_counts ({GROUP}, number) SELECT {GROUP}, sum(change) FROM ({source}) AS changes "
        f"GROUP BY {GROUP} HAVING sum(change) <> 0;"
    )


def changes(rows, sign):
    return f"SELECT {GROUP}, {sign}1 AS change FROM {rows} WHERE {COUNTED}"


def postgresql():
    yield POSTGRESQL_TABLE
    yield f"CREATE INDEX visibility_counts_group ON visibility_counts ({GROUP})"
    added, removed = changes("added", "+"), changes("removed", "-")
    for name, event, referenced, body in (
        ("insert", "INSERT", "REFERENCING NEW TABLE AS added", summed(added)),
        (
            "update",
            "UPDATE",
            "REFERENCING OLD TABLE AS removed NEW TABLE AS added",
            summed(f"{added} UNION ALL {removed}"),
        ),
        ("delete", "DELETE", "REFERENCING OLD TABLE AS removed", summed(removed)),
        ("truncate", "TRUNCATE", "", "DELETE FROM visibility_counts;"),
    ):
        function = f"visibility_counts_{name}"
        yield f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} RETURN NULL; END $$"
        yield (
            f"CREATE TRIGGER visibility_counts_{name} AFTER {event} ON visibility {referenced} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()"
        )
    yield EXISTING


EVENTS = {"sqlite": ("insert", "update", "delete"), "postgresql": ("insert", "update", "delete", "truncate")}


def unmade(vendor):
    for event in EVENTS[vendor]:
        yield f"DROP TRIGGER visibility_counts_{event}" + (" ON visibility" if vendor == "postgresql" else "")
        if vendor == "postgresql":
            yield f"DROP FUNCTION visibility_counts_{event}"
    yield "DROP TABLE visibility_counts"


def made(vendor):
    yield from {"sqlite": sqlite, "postgresql": postgresql}[vendor]()


def make(_apps, schema_editor):
    for statement in made(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


def unmake(_apps, schema_editor):
    for statement in unmade(schema_editor.connection.vendor):
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("visibility", "0004_sqlite_statistics")]

    operations = [migrations.RunPython(make, unmake)]
