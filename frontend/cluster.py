"""What the frontend says of its cluster."""

from __future__ import annotations

from uuid import NAMESPACE_OID, uuid5

from common.errors import NamespaceNotFound
from frontend.services import Frontend
from history.namespaces import DEFAULT_NAMESPACE

INITIAL_FAILOVER_VERSION = 1
FAILOVER_VERSION_INCREMENT = 10

# Source: SupportedClients in upstream's common/headers/version_checker.go.
SUPPORTED_CLIENTS = {
    "temporal-go": "<2.0.0",
    "temporal-java": "<2.0.0",
    "temporal-php": "<2.0.0",
    "temporal-typescript": "<2.0.0",
    "temporal-cli": "<2.0.0",
    "temporal-server": "<2.0.0",
    "temporal-ui": "<3.0.0",
    "Nexus-go-sdk": "<2.0.0",
}


async def cluster_id(frontend: Frontend) -> str:
    """The same for every process that shares the database, and for as long as that exists."""
    if frontend.config.cluster_id:
        return frontend.config.cluster_id
    try:
        seed = (await frontend.namespaces.get(DEFAULT_NAMESPACE)).namespace_id
    except NamespaceNotFound:
        seed = ""
    return str(uuid5(NAMESPACE_OID, f"tinytemporal cluster {seed}"))
