from django.db import migrations


class Migration(migrations.Migration):
    """Django adds an index to a text key for LIKE in the database's locale; this key has the order of its bytes. It does
    so at the end of the migration that makes the table, hence a second one."""

    dependencies = [("visibility", "0001_visibility")]

    operations = [migrations.RunSQL("DROP INDEX IF EXISTS visibility_run_id_d5dc9c38_like", migrations.RunSQL.noop)]
