"""The page of shards and hosts: leases, holders, what each process tells, and what is missing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from common.clock import RealClock
from common.errors import Unavailable
from history.models import Shard
from tests.admin.live_side import history_told, hosts, matching_told
from tinytemporal_site.console import live
from tinytemporal_site.console.hosts.placement import draw, shard_lines
from tinytemporal_site.models import ClusterMember
from tinytemporal_site.routing.keys import shard_key

NOW = RealClock().now()
PAGE = "/admin/hosts/"
SHARDS = settings.NUM_HISTORY_SHARDS


@pytest.fixture(autouse=True)
def rows(django_connection: Any) -> None:
    if Shard.objects.exists():
        return
    for shard_id in range(1, SHARDS + 1):
        Shard.objects.create(shard_id=shard_id, range_id=5, owner="<old>", updated_at=NOW, data={})
    ClusterMember.objects.create(
        member="history/<old>", role="history", host="<old>", address="10.0.0.1:7234", started_at=NOW, heartbeat_at=NOW
    )


def states(page: Any) -> list[str]:
    return [line.state for line in page.context["shards"]]


def test_all_is_well(reader: Client, django_connection: Any) -> None:
    told = history_told(*range(1, SHARDS + 1), range_id=5, now=NOW)
    with (
        hosts(history={"here": told}, matching={"here": matching_told(now=NOW)}),
        CaptureQueriesContext(django_connection) as queries,
    ):
        answer = reader.get(PAGE)
    page = answer.content.decode()
    assert len(queries) == 4
    assert states(answer) == ["ok"] * SHARDS
    for shown in ("75.0 %", "2.5", "3 of 10", "11", "12", "13", escape("<old>"), "10.0.0.1:7234"):
        assert shown in page
    assert "<old>" not in page


def test_a_host_that_is_away_says_so_and_its_shards_are_nobodys(reader: Client) -> None:
    with hosts(history={"there": Unavailable("connection <b>refused")}):
        answer = reader.get(PAGE)
    page = answer.content.decode()
    assert escape("connection <b>refused") in page
    assert states(answer) == ["away"] * SHARDS
    assert f"shard 1: without a live owner" in page  # noqa: F541  as the picture words it


def test_without_services_nothing_is_claimed(reader: Client) -> None:
    answer = reader.get(PAGE)
    assert states(answer) == ["unknown"] * SHARDS
    assert "This process runs no services" in answer.content.decode()


def test_shards_go_on_page_by_page(reader: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinytemporal_site.console.hosts.views.PAGE", 3)
    first = reader.get(PAGE)
    assert [line.shard_id for line in first.context["shards"]] == [1, 2, 3]
    assert first.context["following"] == 3
    assert [line.shard_id for line in reader.get(PAGE, {"after": "3"}).context["shards"]] == [4]


def lines(**told: Any) -> dict[int, Any]:
    with hosts(history=told, shards=2) as services:
        rows = [Shard(shard_id=n, range_id=5, owner="a", updated_at=NOW, data={}) for n in (1, 2)]
        found = shard_lines(rows, shards=2, hosts=live.history_hosts())
        owners = {n: services.membership.ring("history").owner(shard_key(n)) for n in (1, 2)}
    return {
        line.shard_id: (line, owner.host if owner else "") for line, owner in zip(found, owners.values(), strict=True)
    }


def test_a_shard_that_another_should_have_is_moving() -> None:
    both = history_told(1, 2, host="here", range_id=5, now=NOW)
    found = lines(here=both, there=history_told(host="there", now=NOW))
    for line, owner in found.values():
        assert line.state == ("ok" if owner == "here" else "moving")
        assert (line.held_by, line.expected) == ("here", owner)


def test_a_holder_with_an_old_range_holds_nothing() -> None:
    found = lines(here=history_told(1, 2, range_id=4, now=NOW))
    assert [line.state for line, _ in found.values()] == ["away", "away"]


def test_the_newest_range_holds() -> None:
    found = lines(
        here=history_told(1, 2, range_id=5, now=NOW),
        there=history_told(1, 2, host="there", range_id=6, now=NOW + timedelta(seconds=1)),
    )
    assert {line.held_by for line, _ in found.values()} == {"there"}


def test_host_names_are_escaped_in_the_picture() -> None:
    found = lines(here=history_told(1, 2, range_id=5, now=NOW))
    for line, _ in found.values():
        line.held_by = "</svg><script>"
    assert "<script>" not in draw([line for line, _ in found.values()])
