"""What the user data of a queue holds of the worker deployments whose workers poll it.

    queue_change(record, queue) -> Change       brings one queue's user data up to a deployment's row

Source: upstream's SyncDeploymentUserData.
"""

from __future__ import annotations

import msgspec

from matching.deployments.records import DeploymentRecord
from matching.records import Family, QueueDeployment, QueueVersion, UserData
from matching.user_data import Change

KINDS: tuple[Family, ...] = ("workflow", "activity", "nexus")


def queue_change(record: DeploymentRecord, queue: str) -> Change:
    """One that is older than what the queue knows changes nothing."""

    def change(present: UserData) -> UserData:
        deployments = dict(present.deployments)
        for kind in KINDS:
            known = deployments.get(kind, {})
            others = {name: known[name] for name in known if name != record.name}
            mine = known.get(record.name)
            if mine is not None and mine.version >= record.version:
                continue
            versions = versions_in(record, queue, kind)
            if versions:
                others[record.name] = QueueDeployment(version=record.version, routing=record.routing, versions=versions)
            if others:
                deployments[kind] = others
            else:
                deployments.pop(kind, None)
        return msgspec.structs.replace(present, deployments=deployments)

    return change


def versions_in(record: DeploymentRecord, queue: str, kind: Family) -> dict[str, QueueVersion]:
    return {
        build_id: QueueVersion(status=version.status)
        for build_id, version in record.versions.items()
        if kind in version.task_queues.get(queue, ())
    }
