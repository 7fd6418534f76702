"""A run's page beside a running server and a stock worker: it follows the run, asks its worker, and gives its history."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from html import unescape

import aiohttp
import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from tests.databases import manage
from tests.e2e.conftest import make_worker
from tests.e2e.workflows import Conversation
from tests.server_process import LiveServer
from tinytemporal_site import web_streams
from tinytemporal_site.console.executions import following
from tinytemporal_site.console.executions.following import State, stream

WITHIN_S = 60
PASSWORD = "only-for-tests"


class Browser:
    """A signed-in reader without JavaScript."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def sign_in(self, name: str) -> None:
        await self.get("/admin/login/")
        page = await self.post("/admin/login/?next=/admin/executions/", username=name, password=PASSWORD)
        assert "Executions" in page

    async def get(self, path: str) -> str:
        async with self._session.get(path) as answer:
            assert answer.status == 200, (path, answer.status)
            return await answer.text()

    async def post(self, path: str, **fields: str) -> str:
        [token] = [cookie.value for cookie in self._session.cookie_jar if cookie.key == "csrftoken"]
        async with self._session.post(path, data={**fields, "csrfmiddlewaretoken": token}) as answer:
            assert answer.status == 200, (path, answer.status)
            return unescape(await answer.text())

    async def ask(self, address: str, **fields: str) -> str:
        """The page with the answer of the run's worker. A page gives up after some seconds; here it is asked again."""
        async with asyncio.timeout(WITHIN_S):
            while "No answer:" in (page := await self.post(f"{address}query/", **fields)):
                pass
        return page.partition('id="x-answer"')[2]

    async def events(self, path: str) -> AsyncIterator[tuple[str, dict[str, object]]]:
        """(kind, data) of each server-sent event."""
        async with self._session.get(path) as answer:
            assert answer.content_type == "text/event-stream"
            kind = ""
            async for line in answer.content:
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)


@pytest.fixture(scope="module")
def account(live_server: LiveServer) -> str:
    name = "follower"
    manage(
        "createsuperuser",
        "--noinput",
        database_url=live_server.database_url,
        DJANGO_SUPERUSER_USERNAME=name,
        DJANGO_SUPERUSER_PASSWORD=PASSWORD,
        DJANGO_SUPERUSER_EMAIL="follower@example.com",
    )
    return name


@pytest.fixture
async def browser(live_server: LiveServer, account: str) -> AsyncIterator[Browser]:
    jar = aiohttp.CookieJar(unsafe=True)
    timeout = aiohttp.ClientTimeout(total=WITHIN_S)
    async with aiohttp.ClientSession(live_server.web_url, cookie_jar=jar, timeout=timeout) as session:
        browser = Browser(session)
        await browser.sign_in(account)
        yield browser


@pytest.fixture
async def talk(live_server: LiveServer) -> AsyncIterator[tuple[WorkflowHandle, str]]:
    """A run that has heard "hello", with its worker; and the address of its page."""
    client = await Client.connect(live_server.address)
    name = f"followed-{uuid.uuid4().hex[:8]}"
    async with make_worker(client, name):
        handle = await client.start_workflow(Conversation.run, id=name, task_queue=name)
        await handle.signal(Conversation.say, "hello")
        assert await handle.query(Conversation.words) == ["hello"]
        yield handle, f"/admin/executions/{handle.first_execution_run_id}/"


def attribute(page: str, name: str) -> str:
    [value] = re.findall(rf'{name}="([^"]*)"', page)
    return unescape(value)


async def test_a_page_follows_its_run(browser: Browser, talk: tuple[WorkflowHandle, str]) -> None:
    handle, address = talk
    page = await browser.get(address)
    assert attribute(page, "data-status") == "Running"
    assert 'id="x-memory"' in page
    live, part = attribute(page, "data-live"), attribute(page, "data-part")
    stories = browser.events(f"{live}?seen={attribute(page, 'data-seen')}")
    async with asyncio.timeout(WITHIN_S):
        waiting = asyncio.ensure_future(anext(stories))
        await handle.signal(Conversation.say, "a <b>word</b>")
        kind, data = await waiting
        assert (kind, data["status"]) == ("changed", "Running")
        while "&lt;b&gt;word" not in (part_now := await browser.get(part)):
            assert (await anext(stories))[0] == "changed"
        assert "<html" not in part_now
        await handle.signal(Conversation.end)
        kinds = [kind async for kind, _ in stories]
    assert kinds[-1] == "ended"
    assert set(kinds[:-1]) <= {"changed"}
    ended = await browser.get(part)
    assert attribute(ended, "data-status") == "Completed"
    assert "hello" in ended


async def test_its_worker_is_asked(browser: Browser, talk: tuple[WorkflowHandle, str]) -> None:
    _, address = talk
    assert "hello" in await browser.ask(address, name="words", arguments="")
    assert "Stack for <Task pending" in await browser.ask(address, name="__stack_trace")
    unknown = await browser.ask(address, name="<i>nope</i>", arguments='{"a": 1}')
    assert 'role="alert"' in unknown
    assert "not found" in unknown


async def test_the_download_replays(browser: Browser, talk: tuple[WorkflowHandle, str]) -> None:
    handle, address = talk
    await handle.signal(Conversation.end)
    await handle.result()
    text = await browser.get(f"{address}history.json")
    history = WorkflowHistory.from_json(handle.id, text)
    replayer = Replayer(workflows=[Conversation], workflow_runner=UnsandboxedWorkflowRunner())
    result = await replayer.replay_workflow(history)
    assert result.replay_failure is None
    assert len(history.events) == len((await handle.fetch_history()).events)


async def test_a_stream_ends_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(next_event_id=3, transitions=1, status="Running")

    async def unchanged(run: object) -> State:
        return state

    monkeypatch.setattr(following, "_state", unchanged)
    pieces = stream(None, seen="")  # type: ignore[arg-type]
    assert (await anext(pieces)).startswith(b"retry")
    assert b"event: changed" in await anext(pieces)
    rest = asyncio.ensure_future(anext(pieces, None))
    await asyncio.wait({rest}, timeout=0)
    web_streams.end_all()
    async with asyncio.timeout(WITHIN_S):
        assert await rest is None
