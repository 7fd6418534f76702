"""The seam between History and its tables; see `history.store.base` for what a store promises."""

from __future__ import annotations

from collections.abc import Mapping

from common.database import Database
from history.config import HistoryConfig
from history.store.execution_store import SqlExecutionStore
from history.store.namespace_store import SqlNamespaceStore
from history.store.nexus_endpoint_store import SqlNexusEndpointStore


def open_execution_store(databases: Mapping[int, Database] | Database, config: HistoryConfig) -> SqlExecutionStore:
    """A store over databases that their owner starts and stops: one for all shards, or one for each shard."""
    if isinstance(databases, Database):
        return SqlExecutionStore(databases=dict.fromkeys(range(1, config.shards + 1), databases))
    return SqlExecutionStore(databases=databases)


def open_namespace_store(database: Database) -> SqlNamespaceStore:
    """Namespaces live in one database."""
    return SqlNamespaceStore(database=database)


def open_nexus_endpoint_store(database: Database) -> SqlNexusEndpointStore:
    """Nexus endpoints live beside the namespaces."""
    return SqlNexusEndpointStore(database=database)


__all__ = [
    "SqlExecutionStore",
    "SqlNamespaceStore",
    "SqlNexusEndpointStore",
    "open_execution_store",
    "open_namespace_store",
    "open_nexus_endpoint_store",
]
