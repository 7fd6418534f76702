"""The asynchronous seam over both databases; see `base` for what a store declares and `Database` for what it calls."""

from common.database.base import ColumnType, Database, Dialect, Query, Row, RowsQuery, Statement, delete, insert
from common.database.opening import open_database

__all__ = [
    "ColumnType",
    "Database",
    "Dialect",
    "Query",
    "Row",
    "RowsQuery",
    "Statement",
    "delete",
    "insert",
    "open_database",
]
