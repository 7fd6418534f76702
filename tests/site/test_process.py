"""A server process's life: signals, failures, readiness, and the bound on stopping."""

import asyncio
import json
import os
import signal

import pytest

from common.service import OnFailure, Service
from tests.databases import server_environment
from tests.site.command_line import run_python
from tinytemporal_site.process import run_process, write_ready
from tinytemporal_site.roles import ROLES, chosen_roles, default_host


class Fake(Service):
    """A service that notes what happens to it and can refuse to start."""

    def __init__(self, *, start_error: Exception | None = None) -> None:
        super().__init__(name="fake")
        self.record: list[str] = []
        self._start_error = start_error

    async def start(self) -> None:
        self.record.append("start")
        if self._start_error is not None:
            raise self._start_error

    async def stop(self) -> None:
        self.record.append("stop")

    def addresses(self) -> dict[str, str]:
        return {"frontend": "127.0.0.1:1"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_in_order(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    service = Fake()
    seen: list[dict[str, str]] = []

    def announce(addresses: dict[str, str]) -> None:
        seen.append(addresses)
        os.kill(os.getpid(), number)

    assert run_process(build=lambda _: service, announce=announce) is None
    assert service.record == ["start", "stop"]
    assert seen == [{"frontend": "127.0.0.1:1"}]
    assert signal.getsignal(number) == before


def test_failed_part_ends_it_with_that_failure() -> None:
    error = ValueError("broken")
    service = Fake()
    callbacks: list[OnFailure] = []

    def build(on_failure: OnFailure) -> Service:
        callbacks.append(on_failure)
        return service

    assert run_process(build=build, announce=lambda _: callbacks[0](error)) is error
    assert service.record == ["start", "stop"]


def test_failed_start_is_raised_and_nothing_announced() -> None:
    seen: list[dict[str, str]] = []
    with pytest.raises(OSError, match="in use"):
        run_process(build=lambda _: Fake(start_error=OSError("in use")), announce=seen.append)
    assert seen == []


def test_signal_during_the_start_cancels_it() -> None:
    cancelled: list[bool] = []

    class Slow(Fake):
        async def start(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

    service = Slow()
    seen: list[dict[str, str]] = []
    assert run_process(build=lambda _: service, announce=seen.append) is None
    assert cancelled == [True]
    assert seen == []
    assert service.record == ["stop"]


def test_stop_that_takes_too_long_ends_the_process() -> None:
    program = """
import asyncio, os, signal
from common.service import Service
from tinytemporal_site import process

class Stuck(Service):
    async def start(self): ...
    async def stop(self): await asyncio.Event().wait()

process.STOP_WITHIN_S = 0.05
process.run_process(build=lambda _: Stuck(name="stuck"), announce=lambda _: os.kill(os.getpid(), signal.SIGTERM))
"""
    environment = server_environment(database_url="sqlite://:memory:")
    output = run_python("-c", program, environment=environment, expect_success=False)
    assert "stopping took longer than 0.05 s; exiting at once" in output


def test_ready_is_one_line_of_json() -> None:
    reader, writer = os.pipe()
    write_ready(writer, {"web": "127.0.0.1:2"})
    with os.fdopen(reader) as pipe:
        lines = pipe.readlines()
    assert [json.loads(line) for line in lines] == [{"pid": os.getpid(), "addresses": {"web": "127.0.0.1:2"}}]


def test_roles() -> None:
    assert chosen_roles([]) == chosen_roles(["all"]) == chosen_roles(["history", "all"]) == frozenset(ROLES)
    assert chosen_roles(["history", "matching"]) == {"history", "matching"}
    assert str(os.getpid()) in default_host()
