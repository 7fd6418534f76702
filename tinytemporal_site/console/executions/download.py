"""A run's history as a file: the JSON that stock SDK replayers read, `{"events": […]}` in proto3 JSON, piece by piece."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header

from history import models
from tinytemporal_site.console.executions.rows import Run

_PIECE = 100
"""Events that are in memory at a time."""


def pieces(run: Run) -> Iterator[bytes]:
    """As far as the history goes now."""
    last = run.last_event_id
    rows = models.HistoryEvent.objects.using(run.alias).filter(shard_id=run.row.shard_id, run_id=run.row.run_id)
    yield b'{"events":['
    for first in range(1, last + 1, _PIECE):
        few = rows.filter(event_id__gte=first, event_id__lt=min(first + _PIECE, last + 1)).order_by("event_id")
        texts = [json.dumps(data, separators=(",", ":")) for data in few.values_list("data", flat=True)]
        yield (("," if first > 1 else "") + ",\n".join(texts)).encode()
    yield b"]}\n"


def response(request: HttpRequest, run: Run) -> StreamingHttpResponse:
    # Each kind of server takes the kind of iterator that it can wait for.
    found = pieces(run)
    body = _awaited(found) if isinstance(request, ASGIRequest) else found
    answer = StreamingHttpResponse(body, content_type="application/json")
    name = f"{run.row.workflow_id}_{run.row.run_id}.json".replace("/", "_")
    answer["Content-Disposition"] = content_disposition_header(True, _printable(name))
    return answer


def _printable(name: str) -> str:
    """A workflow id is any text; a header is not."""
    return "".join(sign if sign.isprintable() else "_" for sign in name)[:200]


async def _awaited(found: Iterator[bytes]) -> AsyncIterator[bytes]:
    done = object()
    following = sync_to_async(lambda: next(found, done))
    while isinstance(piece := await following(), bytes):
        yield piece
