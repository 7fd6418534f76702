"""A server with a worker, somebody who may act and somebody who may only look, and a browser."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Self

import pytest
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from tests.browser.browser import Browser, start
from tests.browser.orders import ACTIVITIES, WORKFLOWS
from tests.databases import PROJECT, DatabaseFactory, manage
from tests.server_process import LiveServer

QUEUE = "orders"


class Server(LiveServer):
    command = ("-m", "tests.browser.holding", "runservice")

    def release(self) -> None:
        """Lets go of the workflow tasks that are held."""
        self.signal(signal.SIGUSR1)


PASSWORD = uuid.uuid4().hex
PICTURES = Path(os.environ.get("SCREENSHOTS") or PROJECT / "var" / "screenshots")
MAKE_USERS = f"""
from django.contrib.auth.models import Group, User
for name in ("operator", "viewer"):
    user = User.objects.create_user(name, password={PASSWORD!r}, is_staff=True)
    user.groups.add(Group.objects.get(name=name))
"""


class Shop:
    """A client and a worker of the server, on an event loop in a thread of their own."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="shop", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.client = self.do(lambda: Client.connect(self.server.address))
        self._worker = self.do(self._make_worker)
        self.working = asyncio.run_coroutine_threadsafe(self._worker.run(), self._loop)
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._worker.shutdown)
        self.working.result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """The outcome of what `make` makes on the loop."""
        return self.begin(make).result(60)

    def begin(self, make: Callable[[], Awaitable[Any]]) -> Future[Any]:
        async def run() -> Any:
            return await make()

        return asyncio.run_coroutine_threadsafe(run(), self._loop)

    def order(self, workflow_id: str, *, queue: str = QUEUE, **more: Any) -> str:
        """Starts one; its run id."""
        handle = self.do(lambda: self.client.start_workflow("Order", "tea", id=workflow_id, task_queue=queue, **more))
        run_id: str = handle.result_run_id
        return run_id

    async def _make_worker(self) -> Worker:
        return Worker(
            self.client,
            task_queue=QUEUE,
            workflows=WORKFLOWS,
            activities=ACTIVITIES,
            workflow_runner=UnsandboxedWorkflowRunner(),
            identity="worker of the shop",
        )


@pytest.fixture(scope="package")
def server(database_factory: DatabaseFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With the settings of production but TLS, which nobody ends for it here."""
    url = database_factory.create("sqlite")
    manage("shell", "-c", MAKE_USERS, database_url=url)
    made = Server(database_url=url, log=tmp_path_factory.mktemp("server") / "log", environment={"DEBUG": "false"})
    made.start()
    try:
        yield made
        made.stop()
    finally:
        made.kill()
        database_factory.drop(url)


@pytest.fixture(scope="package")
def shop(server: Server) -> Iterator[Shop]:
    with Shop(server) as opened:
        yield opened


@pytest.fixture(scope="package")
def chromium(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    driver = start(tmp_path_factory.mktemp("chromium"))
    try:
        yield Browser(driver, url=server.web_url, pictures=PICTURES)
    finally:
        driver.quit()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """Signed out, and nothing complained of."""
    chromium.go("/admin/login/")
    chromium.sign_out()
    chromium.problems()
    return chromium


@pytest.fixture
def operator(browser: Browser) -> Browser:
    browser.sign_in("operator", PASSWORD)
    return browser


@pytest.fixture
def viewer(browser: Browser) -> Browser:
    browser.sign_in("viewer", PASSWORD)
    return browser
