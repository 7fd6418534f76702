"""Which version's physical queue a task is stored in, and which one a poll is served from.

Automatic tasks stay in the default (unversioned) queue; pinned ones have a queue of their version. A poller of a versioned
deployment polls its version's queue.
"""

from __future__ import annotations

from typing import Any

from temporalio.api.enums.v1 import WorkerVersioningMode

from common.contracts.matching import AddTask

_PINNED = "pinned:"


def task_version(request: AddTask) -> str:
    """ "<deployment>:<build id>" of a pinned task, empty for any other. Sticky queues are of one worker, so of no version."""
    if request.normal_name or not request.version_directive.startswith(_PINNED):
        return ""
    return request.version_directive.removeprefix(_PINNED)


def poll_version(request: Any) -> str:
    options = request.deployment_options
    if options.worker_versioning_mode != WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED:
        return ""
    if request.task_queue.normal_name:
        return ""
    return f"{options.deployment_name}:{options.build_id}"
