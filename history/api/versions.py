"""What Matching knows of worker deployment versions, before a run is sent to one."""

from __future__ import annotations

from temporalio.api.workflow.v1 import VersioningOverride

from common.errors import FailedPrecondition
from history.engine.engine import Engine
from history.versioning import version_text
from history.versioning_override import check_structure, named_version


async def check_override(engine: Engine, override: VersioningOverride, *, namespace: str, task_queue: str) -> None:
    """Raises INVALID_ARGUMENT for what means nothing, FAILED_PRECONDITION for a version that the queue does not have. One that
    is drained drains again from now on."""
    check_structure(override)
    version = named_version(override)
    if version is None:
        return
    text = version_text(version)
    if not await engine.matching.has_version(namespace=namespace, task_queue=task_queue, version=text, reactivate=True):
        raise FailedPrecondition(
            f"Pinned version '{text}' is not present in task queue '{task_queue}' of type 'Workflow'"
        )
