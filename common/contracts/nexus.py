"""Names that callers and handlers of Nexus operations agree on. Source: upstream's common/nexus."""

from __future__ import annotations

SYSTEM_ENDPOINT = "__temporal_system"
"""The server's own endpoint: what its operations do is in `history.nexus.system`."""
SYSTEM_CALLBACK_URL = "temporal://system"
"""A completion callback that stays inside the server."""
CALLBACK_TOKEN_HEADER = "temporal-callback-token"  # noqa: S105  a header's name
OPERATION_TOKEN_HEADER = "nexus-operation-token"  # noqa: S105  a header's name
EVENT_LINK = "temporal.api.common.v1.Link.WorkflowEvent"
