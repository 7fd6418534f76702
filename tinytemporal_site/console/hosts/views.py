"""Shards and hosts: who is in the cluster, what each has in memory, and which shard is where."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from msgspec import Struct

from common.contracts.inspect import CacheInspection, HistoryInspection, MatchingInspection
from history.models import Shard
from tinytemporal_site.console import live, look
from tinytemporal_site.console.hosts.placement import ShardLine, draw, shard_lines
from tinytemporal_site.console.store import history_aliases
from tinytemporal_site.models import ClusterMember

PAGE = 100
MOST_DRAWN = 2_000


class HistoryLine(Struct, kw_only=True):
    """A History host that answered, or its Away."""

    host: str
    found: HistoryInspection | None
    away: str

    @property
    def transfer(self) -> int:
        return sum(shard.transfer.waiting for shard in self.found.shards) if self.found else 0

    @property
    def timers(self) -> int:
        return sum(shard.timers.waiting for shard in self.found.shards) if self.found else 0

    @property
    def visibility(self) -> int:
        return sum(shard.visibility.waiting for shard in self.found.shards) if self.found else 0

    @property
    def hit_rate(self) -> str:
        return hit_rate(self.found.cache) if self.found else "-"

    @property
    def operations_per_commit(self) -> str:
        if self.found is None:
            return "-"
        commits = sum(committer.commits for committer in self.found.committers)
        operations = sum(committer.operations for committer in self.found.committers)
        return f"{operations / commits:.1f}" if commits else "-"


class MatchingLine(Struct, kw_only=True):
    host: str
    found: MatchingInspection | None
    away: str

    @property
    def awaiting(self) -> int:
        return sum(queue.awaiting_dispatch for queue in self.found.queues) if self.found else 0

    @property
    def polls(self) -> int:
        return sum(queue.waiting_polls for queue in self.found.queues) if self.found else 0


def hosts(request: HttpRequest) -> HttpResponseBase:
    """`after`: the shards above that number."""
    history, matching = live.all_hosts()
    rows = [row for alias in history_aliases() for row in Shard.objects.using(alias).defer("data")]
    lines = shard_lines(rows, shards=settings.NUM_HISTORY_SHARDS, hosts=history)
    after = request.GET.get("after", "")
    above = int(after) if after.isdecimal() and len(after) < 9 else 0
    shown = [line for line in lines if line.shard_id > above]
    return look.page(
        request,
        "console/hosts/page.html",
        title="Shards and hosts",
        members=list(ClusterMember.objects.order_by("member")[:PAGE]),
        is_bound=live.services() is not None,
        history=[_history(host, answer) for host, answer in history.items()],
        matching=[_matching(host, answer) for host, answer in matching.items()],
        picture=draw(lines[:MOST_DRAWN]),
        shards=shown[:PAGE],
        following=shown[PAGE - 1].shard_id if len(shown) > PAGE else 0,
        after=above,
        **_counts(lines),
    )


def hit_rate(cache: CacheInspection) -> str:
    asked = cache.hits + cache.misses
    return f"{100 * cache.hits / asked:.1f} %" if asked else "-"


def _history(host: str, answer: HistoryInspection | live.Away) -> HistoryLine:
    if isinstance(answer, live.Away):
        return HistoryLine(host=host, found=None, away=answer.reason)
    return HistoryLine(host=host, found=answer, away="")


def _matching(host: str, answer: MatchingInspection | live.Away) -> MatchingLine:
    if isinstance(answer, live.Away):
        return MatchingLine(host=host, found=None, away=answer.reason)
    return MatchingLine(host=host, found=answer, away="")


def _counts(lines: list[ShardLine]) -> dict[str, int]:
    return {
        "total": len(lines),
        "held": sum(1 for line in lines if line.state == "ok"),
        "moving": sum(1 for line in lines if line.state == "moving"),
        "without": sum(1 for line in lines if line.state == "away"),
    }
