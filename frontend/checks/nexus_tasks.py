"""What answers to Nexus tasks have in common. Source: upstream's RespondNexusTaskCompleted and RespondNexusTaskFailed."""

from __future__ import annotations

import json

from temporalio.api.nexus.v1 import Failure

from common.contracts.tokens import NexusTaskToken, decode_token
from common.errors import InvalidArgument


def check_token(data: bytes) -> None:
    token = decode_token(NexusTaskToken, data)
    if not token.task_queue or not token.nexus_task_id:
        raise InvalidArgument("Invalid TaskToken.")


def check_details(failure: Failure) -> None:
    if not failure.details:
        return
    try:
        json.loads(failure.details)
    except ValueError:
        raise InvalidArgument("failure details must be JSON serializable") from None
