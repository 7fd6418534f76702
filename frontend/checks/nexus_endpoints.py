"""Nexus endpoints: what a request of one must be like, and how one is shown.

All that is wrong is said at once, joined by commas. Source: upstream's service/frontend/nexus_endpoint_client.go.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit
from uuid import UUID

from temporalio.api.nexus.v1 import Endpoint, EndpointSpec, EndpointTarget

from common.errors import FailedPrecondition, InvalidArgument, NamespaceNotFound
from common.protos import optional_timestamp, timestamp
from frontend.checks.ids import too_long
from frontend.checks.task_queues import check_name
from frontend.services import Frontend
from history.records import NexusEndpointRecord

NAME = r"^[a-zA-Z][a-zA-Z0-9\-]*[a-zA-Z0-9]$"


def endpoint_message(record: NexusEndpointRecord) -> Endpoint:
    """Either when it was made or, once it was changed, when that was: as upstream."""
    return Endpoint(
        version=record.version,
        id=record.endpoint_id,
        spec=record.spec,
        created_time=timestamp(record.created_at) if record.modified_at is None else None,
        last_modified_time=optional_timestamp(record.modified_at),
        url_prefix=f"/nexus/endpoints/{record.endpoint_id}/services",
    )


async def check_spec(frontend: Frontend, spec: EndpointSpec) -> None:
    """Raises INVALID_ARGUMENT; FAILED_PRECONDITION for a target namespace that is not there."""
    config = frontend.config
    issues = _name_issues(spec.name, limit=config.endpoint_name_limit)
    target = spec.target.WhichOneof("variant")
    if target is None:
        issues.append("empty target variant")
        raise InvalidArgument(", ".join(issues))
    if target == "worker":
        issues += await _worker_issues(frontend, spec.target.worker)
    else:
        issues += _url_issues(spec.target.external.url, limit=config.endpoint_url_limit)
    if spec.description.ByteSize() > config.endpoint_description_limit:
        issues.append(f"description size exceeds limit of {config.endpoint_description_limit}")
    _raise(issues)


def check_endpoint_id(endpoint_id: str, *, version: int | None = None) -> None:
    issues = []
    if not endpoint_id:
        issues.append("endpoint ID not set")
    elif fault := _uuid_fault(endpoint_id):
        issues.append(f'malformed endpoint ID: "{fault}"')
    if version is not None and version <= 0:
        issues.append("endpoint version is non-positive")
    _raise(issues)


def _raise(issues: list[str]) -> None:
    if issues:
        raise InvalidArgument(", ".join(issues))


def _uuid_fault(text: str) -> str:
    """As Go's UUID package words it."""
    if len(text) not in (32, 36, 38, 45):
        return f"invalid UUID length: {len(text)}"
    try:
        UUID(text)
    except ValueError:
        return "invalid UUID format"
    return ""


def _name_issues(name: str, *, limit: int) -> list[str]:
    if not name:
        return ["endpoint name not set"]
    issues = []
    if too_long(name, limit):
        issues.append(f"endpoint name exceeds length limit of {limit}")
    if not re.fullmatch(NAME, name):
        pattern = NAME.replace("\\", "\\\\")
        issues.append(f'endpoint name must match the regex: "{pattern}"')
    return issues


async def _worker_issues(frontend: Frontend, worker: EndpointTarget.Worker) -> list[str]:
    issues = []
    if not worker.namespace:
        issues.append("target namespace not set")
    else:
        try:
            await frontend.namespaces.get(worker.namespace)
        except NamespaceNotFound as error:
            raise FailedPrecondition(
                f"could not verify namespace referenced by target exists: {error.message}"
            ) from None
    try:
        if not worker.task_queue:
            raise InvalidArgument("taskQueue is not set")
        check_name(worker.task_queue, limit=frontend.config.id_limit)
    except InvalidArgument as error:
        issues.append(f'invalid target task queue: "{error.message}"')
    return issues


def _url_issues(url: str, *, limit: int) -> list[str]:
    if not url:
        return ["empty target URL"]
    if too_long(url, limit):
        return [f"target URL length exceeds limit of {limit}"]
    try:
        scheme = urlsplit(url).scheme
    except ValueError as error:
        return [f"invalid target URL: {error}"]
    if scheme not in ("http", "https"):
        return [f'invalid target URL scheme: "{scheme}", expected http or https']
    return []
