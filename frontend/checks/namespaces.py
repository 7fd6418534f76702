"""What is asked of a namespace's settings.

Source: upstream's service/frontend/namespace_handler.go and common/namespace/nsmanager/attr_validator.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from common.errors import InvalidArgument
from frontend.config import FrontendConfig
from history.validation import capped, duration_fault


def check_retention(retention: Duration, *, config: FrontendConfig) -> timedelta:
    """The retention, at most a hundred years; raises when it is invalid, unset or too short."""
    if duration_fault(retention) or capped(retention) < config.min_retention:
        raise InvalidArgument("A valid retention period is not set on request.")
    return capped(retention)


def check_local_clusters(*, active: str, clusters: Sequence[str], config: FrontendConfig) -> None:
    """There is one cluster; a request may name it or leave it out."""
    own = config.cluster_name
    for name in (active or own, *clusters):
        if name != own:
            raise InvalidArgument(f"Invalid cluster name: {name}")
    if len(clusters) > 1:
        raise InvalidArgument("Invalid local namespace clusters")
