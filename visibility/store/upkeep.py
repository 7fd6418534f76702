"""Statements that look at a whole table: summing up the counts, of which there are few, and looking whether they are right.

They are not among those that an index must serve (`visibility.store.statements`).
"""

# ruff: noqa: S608  nothing here comes from a request

from __future__ import annotations

from common.database import Query

# Sum up what is counted of each group: on PostgreSQL of those that have several rows, by one process at a time; on SQLite each
# has one, and goes when it says nothing.
FOLD_COUNTS = Query(
    "fold_visibility_counts",
    "DELETE FROM visibility_counts WHERE number = 0",
    postgresql=(
        "WITH folded AS (DELETE FROM visibility_counts c USING (SELECT namespace, workflow_type, status FROM visibility_counts "
        "WHERE (SELECT pg_try_advisory_xact_lock(hashtext('visibility_counts'))) "
        "GROUP BY namespace, workflow_type, status HAVING count(*) > 1) g "
        "WHERE (c.namespace, c.workflow_type, c.status) = (g.namespace, g.workflow_type, g.status) RETURNING c.*) "
        "INSERT INTO visibility_counts (namespace, workflow_type, status, number) "
        "SELECT namespace, workflow_type, status, sum(number) FROM folded GROUP BY 1, 2, 3 HAVING sum(number) <> 0"
    ),
)

_OF_GROUP = "namespace, workflow_type, status"
_DIFFERENT = (
    f"SELECT {_OF_GROUP}, CAST(sum(number) AS bigint) AS number FROM ("
    f"SELECT {_OF_GROUP}, count(*) AS number FROM visibility WHERE division IS NULL AND namespace <> '' GROUP BY {_OF_GROUP} "
    f"UNION ALL SELECT {_OF_GROUP}, -number FROM visibility_counts) AS found GROUP BY {_OF_GROUP} HAVING sum(number) <> 0"
)

# By how much the rows are more than what is counted of their group, where that is not nothing.
MISCOUNTED = Query("miscounted_visibility", _DIFFERENT)

# Add what the counts lack. What others write meanwhile is seen by both of its halves or by none.
RECOUNT = Query(
    "recount_visibility",
    f"INSERT INTO visibility_counts ({_OF_GROUP}, number) SELECT * FROM ({_DIFFERENT}) WHERE true "
    f"ON CONFLICT ({_OF_GROUP}) DO UPDATE SET number = number + excluded.number",
    postgresql=f"INSERT INTO visibility_counts ({_OF_GROUP}, number) {_DIFFERENT}",
)
