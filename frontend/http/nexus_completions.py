"""Completions of asynchronous Nexus operations, as their handlers send them to the callback address.

    POST /nexus/callback
    POST /namespaces/{namespace}/nexus/callback

The header `temporal-callback-token` says whose operation it is (`NexusCompletionToken`).
Source: upstream's service/frontend/nexus_completion_http_handler.go and common/nexus/nexusrpc/completion.go.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.api.nexus.v1 import Failure as NexusFailure
from temporalio.api.nexus.v1 import Link as NexusLink

from common.codec import CodecError, from_dict
from common.contracts.history import NexusCompletion
from common.contracts.nexus import CALLBACK_TOKEN_HEADER, OPERATION_TOKEN_HEADER
from common.contracts.tokens import NexusCompletionToken, decode_token
from common.errors import InvalidArgument, NamespaceNotFound, NotFound, TemporalError
from common.nexus_failures import failure_of
from common.nexus_links import links_of
from common.nexus_reading import header_links, is_json, nexus_failure_of, payload_of, unwrapped
from frontend.http.answers import Answer, Request
from frontend.http.nexus_answers import Refused, refusal, refused_by
from frontend.services import Frontend
from history.namespaces import DEPRECATED, REGISTERED

log = logging.getLogger(__name__)

PATH = re.compile(r"(/namespaces/(?P<namespace>[^/]+))?/nexus/callback")
BODY_LIMIT = 4 * 1024 * 1024


class NexusCompletions:
    def __init__(self, frontend: Frontend) -> None:
        self._frontend = frontend

    async def answer(self, request: Request) -> Answer:
        try:
            await self._complete(request)
            return Answer(200)
        except Refused as error:
            return refusal(request, error)
        except NotFound as error:
            return refusal(request, refused_by(error, tell=True))
        except TemporalError as error:
            return refusal(request, refused_by(error))
        except Exception:
            log.exception("the completion of a Nexus operation failed")
            return refusal(request, Refused("INTERNAL", "internal error"))

    async def _complete(self, request: Request) -> None:
        """The order of the refusals is upstream's."""
        started_at = _started_at(request)
        _check_closed_at(request)
        links = _links(request)
        state = request.headers.get("nexus-operation-state", "")
        failure = None
        if state in ("failed", "canceled"):
            failure = _failure(request)
        elif state != "succeeded":
            raise Refused("BAD_REQUEST", f"invalid request operation state: {json.dumps(state)}")
        token = _token(request)
        await self._check_namespace(request, token)
        operation_token = request.headers.get(OPERATION_TOKEN_HEADER, "")
        limit = self._frontend.config.operation_token_limit
        if len(operation_token.encode()) > limit:
            raise Refused(
                "BAD_REQUEST",
                f"operation token length exceeds allowed limit ({len(operation_token.encode())}/{limit})",
            )
        completion = NexusCompletion(
            namespace=token.namespace,
            workflow_id=token.workflow_id,
            run_id=token.run_id,
            scheduled_event_id=token.scheduled_event_id,
            request_id=token.request_id,
            state="completed" if failure is None else "canceled" if state == "canceled" else "failed",
            operation_token=operation_token,
            started_at=started_at,
            links=links_of(links),
        )
        if failure is None:
            completion.payload = self._payload(request)
        else:
            completion.failure = failure_of(unwrapped(failure))
        await self._frontend.history.complete_nexus_operation(completion)

    async def _check_namespace(self, request: Request, token: NexusCompletionToken) -> None:
        try:
            record = await self._frontend.namespaces.get(token.namespace)
        except NamespaceNotFound:
            raise Refused("NOT_FOUND", f"namespace {json.dumps(token.namespace)} not found") from None
        match = PATH.fullmatch(request.raw_path)
        named = None if match is None else match["namespace"]
        if named is not None and unquote(named) != token.namespace:
            raise Refused("BAD_REQUEST", "invalid callback token")
        if record.state not in (REGISTERED, DEPRECATED):
            raise Refused("BAD_REQUEST", "bad request")

    def _payload(self, request: Request) -> Payload:
        headers = {
            name.removeprefix("content-"): value
            for name, value in request.headers.items()
            if name.startswith("content-")
        }
        try:
            if request.is_too_large:
                raise ValueError("the body is too large")
            payload = payload_of(request.body, headers)
        except ValueError:
            raise Refused("BAD_REQUEST", "invalid result content") from None
        if payload.ByteSize() > self._frontend.config.blob_limit:
            raise Refused("BAD_REQUEST", "result exceeds size limit")
        return payload


def _token(request: Request) -> NexusCompletionToken:
    try:
        return decode_token(NexusCompletionToken, request.headers.get(CALLBACK_TOKEN_HEADER, "").encode("latin-1"))
    except InvalidArgument:
        raise Refused("BAD_REQUEST", "invalid callback token") from None


def _started_at(request: Request) -> datetime | None:
    text = request.headers.get("nexus-operation-start-time", "")
    if not text:
        return None
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        raise Refused("BAD_REQUEST", "failed to parse operation start time header") from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _check_closed_at(request: Request) -> None:
    """Workflows have no use for it."""
    text = request.headers.get("nexus-operation-close-time", "")
    if not text:
        return
    try:
        from_dict(Timestamp, text)
    except CodecError:
        raise Refused("BAD_REQUEST", "failed to parse operation close time header") from None


def _links(request: Request) -> list[NexusLink]:
    try:
        return header_links(request.links)
    except ValueError:
        raise Refused("BAD_REQUEST", "failed to decode links from request headers") from None


def _failure(request: Request) -> NexusFailure:
    content_type = request.headers.get("content-type", "")
    if not is_json(content_type):
        raise Refused("BAD_REQUEST", f"invalid request content type: {json.dumps(content_type)}")
    if request.is_too_large:
        raise Refused("BAD_REQUEST", "failed to read Failure from request body")
    try:
        return nexus_failure_of(json.loads(request.body))
    except (ValueError, RecursionError):
        raise Refused("BAD_REQUEST", "failed to decode Failure from request body") from None
