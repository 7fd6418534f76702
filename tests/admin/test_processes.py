"""The admin in a process of its own: it finds the engine's process, and does without it when that is frozen or dead."""

from __future__ import annotations

import asyncio
import http.cookiejar
import os
import signal
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import DatabaseFactory, manage
from tests.e2e.cluster import Processes, processes, until

ENGINE, WEB = "history-1", "web-1"
ROLES = ("history", "matching", "frontend", "worker")
# A page waits a second for the live side; a hang would be minutes, and the machine may be slow.
SOON_S = 15


class Browser:
    """Signed in at a web process."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))

    def sign_in(self, user: str, password: str) -> None:
        self.get("/admin/login/")
        token = next(cookie.value for cookie in self._cookies if cookie.name == "csrftoken")
        form = {"username": user, "password": password, "csrfmiddlewaretoken": token or "", "next": "/admin/"}
        with self._opener.open(f"{self._url}/admin/login/", urllib.parse.urlencode(form).encode(), timeout=60):
            pass

    def get(self, path: str) -> str:
        with self._opener.open(f"{self._url}{path}", timeout=60) as answer:
            body: bytes = answer.read()
        return body.decode()


@pytest.fixture
def cluster(database_factory: DatabaseFactory, tmp_path: Path) -> Iterator[Processes]:
    url = database_factory.create("postgresql")
    with processes(database_url=url, folder=tmp_path) as found:
        yield found
    database_factory.drop(url)


async def test_the_web_process_finds_the_engine_and_does_without_it(cluster: Processes) -> None:
    manage(
        "createsuperuser",
        "--noinput",
        "--username=reader",
        "--email=",
        database_url=cluster.database_url,
        DJANGO_SUPERUSER_PASSWORD="a long one 17",
    )
    cluster.make(ENGINE, *ROLES)
    cluster.make(WEB)
    await cluster.start(ENGINE, WEB)
    browser = Browser(cluster[WEB].web_url)
    await asyncio.to_thread(browser.sign_in, "reader", "a long one 17")

    def all_held() -> bool:
        page = browser.get("/admin/hosts/")
        return page.count(">held</span>") == 4 and "no live owner" not in page

    await until(all_held, within_s=60)
    assert "?" not in numbers(await asyncio.to_thread(browser.get, "/admin/"))
    assert not any(host == WEB for _, host in cluster.members()), "it plays no role, so nothing may be placed on it"

    os.kill(cluster[ENGINE].pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        page = await asyncio.to_thread(browser.get, "/admin/hosts/")
        assert time.monotonic() - began < SOON_S
        assert "No answer within 1 s" in page
        assert ENGINE in page
    finally:
        os.kill(cluster[ENGINE].pid, signal.SIGCONT)

    await cluster.kill(ENGINE)
    await until(lambda: browser.get("/admin/hosts/").count(">no live owner</span>") == 4, within_s=60)
    page = await asyncio.to_thread(browser.get, "/admin/")
    assert "shards without a live owner" in page
    await cluster.stop(WEB)


def numbers(page: str) -> list[str]:
    return [part.split("<")[0] for part in page.split('class="c-number">')[1:]]
