"""Calls of services elsewhere, with upstream's words for what goes wrong."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from common.clock import Clock
from history.http_posts import Answer, HttpPosts, PostFailed, PostTimedOut


class NexusHttp(HttpPosts):
    def __init__(self, *, clock: Clock, body_limit: int) -> None:
        super().__init__(name="nexus over HTTP", clock=clock, body_limit=body_limit)

    async def post(self, url: str, *, headers: Mapping[str, str], body: bytes, within: timedelta) -> Answer:
        """Raises PostFailed, also for an answer that is too long."""
        try:
            answer = await super().post(url, headers=headers, body=body, within=within)
        except PostTimedOut as error:
            raise PostFailed("request timed out") from error
        if answer.is_cut:
            raise PostFailed(f'Post "{url}": http: response body too large')
        return answer
