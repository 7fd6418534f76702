"""A namespace as the API shows it. Every message that upstream fills is filled: the CLI panics on a missing `config`."""

from __future__ import annotations

from collections.abc import Mapping

from temporalio.api.enums.v1 import ArchivalState, NamespaceState, ReplicationState
from temporalio.api.namespace.v1 import BadBinaries, NamespaceConfig, NamespaceInfo
from temporalio.api.replication.v1 import ClusterReplicationConfig, NamespaceReplicationConfig
from temporalio.api.workflowservice.v1 import DescribeNamespaceResponse

from common.protos import duration
from frontend.config import FrontendConfig
from history.namespaces import DEFAULT_NAMESPACE, SYSTEM_NAMESPACE
from history.records import NamespaceRecord

ARCHIVAL_DISABLED = ArchivalState.ARCHIVAL_STATE_DISABLED
# Upstream gives a replication state to registered namespaces only, not to those it makes itself.
_BUILT_IN = (DEFAULT_NAMESPACE, SYSTEM_NAMESPACE)


def describe(record: NamespaceRecord, *, config: FrontendConfig) -> DescribeNamespaceResponse:
    return DescribeNamespaceResponse(
        namespace_info=_info(record, config),
        config=_config(record),
        replication_config=_replication(record, config),
        is_global_namespace=record.is_global,
    )


def _info(record: NamespaceRecord, config: FrontendConfig) -> NamespaceInfo:
    return NamespaceInfo(
        name=record.name,
        state=NamespaceState.ValueType(record.state),
        description=record.description,
        owner_email=record.owner_email,
        data=record.custom_data,
        id=record.namespace_id,
        capabilities=NamespaceInfo.Capabilities(**dict.fromkeys(config.capabilities, True)),
        limits=NamespaceInfo.Limits(
            blob_size_limit_error=config.blob_limit,
            memo_size_limit_error=config.memo_limit,
            workflow_task_completion_size_limit_error=config.task_completion_limit,
        ),
        supports_schedules=True,
    )


def _config(record: NamespaceRecord) -> NamespaceConfig:
    return NamespaceConfig(
        workflow_execution_retention_ttl=duration(record.retention),
        bad_binaries=BadBinaries(),
        history_archival_state=ARCHIVAL_DISABLED,
        visibility_archival_state=ARCHIVAL_DISABLED,
        custom_search_attribute_aliases=aliases(record.search_attributes),
    )


def _replication(record: NamespaceRecord, config: FrontendConfig) -> NamespaceReplicationConfig:
    built_in = record.name in _BUILT_IN
    return NamespaceReplicationConfig(
        active_cluster_name=config.cluster_name,
        clusters=[ClusterReplicationConfig(cluster_name=config.cluster_name)],
        state=(
            ReplicationState.REPLICATION_STATE_UNSPECIFIED if built_in else ReplicationState.REPLICATION_STATE_NORMAL
        ),
    )


def aliases(search_attributes: Mapping[str, str]) -> dict[str, str]:
    """Upstream's view of custom search attributes: numbered fields of each type (`Keyword01`) and the names given to
    them."""
    counts: dict[str, int] = {}
    fields: dict[str, str] = {}
    for name, type_name in search_attributes.items():
        counts[type_name] = counts.get(type_name, 0) + 1
        fields[f"{type_name}{counts[type_name]:02}"] = name
    return fields
