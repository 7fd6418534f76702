"""A deployment's record in the API's words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.deployment.v1 import (
    RoutingConfig,
    VersionDrainageInfo,
    VersionMetadata,
    WorkerDeploymentInfo,
    WorkerDeploymentVersion,
    WorkerDeploymentVersionInfo,
)
from temporalio.api.enums.v1 import RoutingConfigUpdateState, TaskQueueType
from temporalio.api.workflowservice import v1 as ws

from common.protos import timestamp
from matching.deployments.records import NOT_DRAINING, DeploymentRecord, VersionRecord, older_text
from matching.records import Family

Summary = WorkerDeploymentInfo.WorkerDeploymentVersionSummary

KIND_TYPES: dict[Family, TaskQueueType.ValueType] = {
    "workflow": TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
    "activity": TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    "nexus": TaskQueueType.TASK_QUEUE_TYPE_NEXUS,
}


def deployment_info(record: DeploymentRecord) -> WorkerDeploymentInfo:
    """Its versions are listed newest first."""
    states = RoutingConfigUpdateState
    synced = record.synced_version >= record.version
    return WorkerDeploymentInfo(
        name=record.name,
        version_summaries=[version_summary(record, build_id) for build_id in _newest_first(record)],
        create_time=timestamp(record.created_at),
        routing_config=record.routing,
        last_modifier_identity=record.last_modifier,
        manager_identity=record.manager,
        routing_config_update_state=states.ROUTING_CONFIG_UPDATE_STATE_COMPLETED
        if synced
        else states.ROUTING_CONFIG_UPDATE_STATE_IN_PROGRESS,
    )


def deployment_summary(record: DeploymentRecord) -> ws.ListWorkerDeploymentsResponse.WorkerDeploymentSummary:
    routing = record.routing
    latest = next(iter(_newest_first(record)), None)
    current = routing.current_deployment_version.build_id
    ramping = routing.ramping_deployment_version.build_id
    return ws.ListWorkerDeploymentsResponse.WorkerDeploymentSummary(
        name=record.name,
        create_time=timestamp(record.created_at),
        routing_config=routing,
        latest_version_summary=_summary_if_there(record, latest),
        current_version_summary=_summary_if_there(record, current),
        ramping_version_summary=_summary_if_there(record, ramping),
    )


def _newest_first(record: DeploymentRecord) -> list[str]:
    return sorted(record.versions, key=lambda build_id: record.versions[build_id].created_at, reverse=True)


def _summary_if_there(record: DeploymentRecord, build_id: str | None) -> Summary | None:
    return version_summary(record, build_id) if build_id and build_id in record.versions else None


def version_summary(record: DeploymentRecord, build_id: str) -> Summary:
    version = record.versions[build_id]
    return Summary(
        version=older_text(record.name, build_id),
        status=version.status,
        deployment_version=_named(record, build_id),
        create_time=timestamp(version.created_at),
        drainage_status=version.drainage,
        drainage_info=drainage_info(version),
        current_since_time=_time(version.current_since),
        ramping_since_time=_time(version.ramping_since),
        routing_update_time=_time(version.routing_changed_at),
        first_activation_time=_time(version.first_activated_at),
        last_current_time=_time(version.last_current_at),
        last_deactivation_time=_time(version.deactivated_at),
    )


def version_info(record: DeploymentRecord, build_id: str) -> WorkerDeploymentVersionInfo:
    version = record.versions[build_id]
    return WorkerDeploymentVersionInfo(
        version=older_text(record.name, build_id),
        status=version.status,
        deployment_version=_named(record, build_id),
        create_time=timestamp(version.created_at),
        routing_changed_time=_time(version.routing_changed_at),
        current_since_time=_time(version.current_since),
        ramping_since_time=_time(version.ramping_since),
        ramp_percentage=version.ramp_percentage,
        task_queue_infos=[
            WorkerDeploymentVersionInfo.VersionTaskQueueInfo(name=queue, type=KIND_TYPES[kind])
            for queue, kind in queues_of(version)
        ],
        drainage_info=drainage_info(version),
        metadata=VersionMetadata(entries=version.metadata) if version.metadata else None,
        last_modifier_identity=version.last_modifier,
    )


def queues_of(version: VersionRecord) -> Iterator[tuple[str, Family]]:
    for queue, kinds in sorted(version.task_queues.items()):
        for kind in sorted(kinds, key=KIND_TYPES.__getitem__):
            yield queue, kind


def drainage_info(version: VersionRecord) -> VersionDrainageInfo | None:
    if version.drainage == NOT_DRAINING:
        return None
    return VersionDrainageInfo(
        status=version.drainage,
        last_changed_time=_time(version.drainage_changed_at),
        last_checked_time=_time(version.drainage_checked_at),
    )


def current_of(routing: RoutingConfig) -> WorkerDeploymentVersion | None:
    return routing.current_deployment_version if routing.HasField("current_deployment_version") else None


def ramping_of(routing: RoutingConfig) -> WorkerDeploymentVersion | None:
    return routing.ramping_deployment_version if routing.HasField("ramping_deployment_version") else None


def _named(record: DeploymentRecord, build_id: str) -> WorkerDeploymentVersion:
    return WorkerDeploymentVersion(deployment_name=record.name, build_id=build_id)


def _time(when: datetime | None) -> Timestamp | None:
    return timestamp(when) if when is not None else None
