"""One server process from start to end: event loop, signals, the announcement of readiness, the bound on stopping."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from common.service import OnFailure, Service

log = logging.getLogger(__name__)

STOP_WITHIN_S = 10
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_FORCED_EXIT = 1
_COLLECTOR_THRESHOLDS = (50_000, 20, 100)

Build = Callable[[OnFailure], Service]
Announce = Callable[[dict[str, str]], None]


def run_process(*, build: Build, announce: Announce) -> BaseException | None:
    """Runs the service that `build` makes until a signal asks to stop or a part of it fails.

    `build` is called on the event loop with what to call when a part fails for good. `announce` is called once with
    the addresses, when everything has started. Returns the failure that ended the process, None after an orderly end.
    Raises what the start raised. When stopping takes longer than `STOP_WITHIN_S`, the process exits at once with 1:
    all that was acknowledged is committed by then, so nothing is lost.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(build=build, announce=announce))


def write_ready(descriptor: int, addresses: dict[str, str]) -> None:
    """Tells the parent process, as one line of JSON on a pipe that it gave, where the roles listen."""
    with os.fdopen(descriptor, "w", encoding="utf-8") as pipe:
        pipe.write(json.dumps({"pid": os.getpid(), "addresses": addresses}) + "\n")


async def _serve(*, build: Build, announce: Announce) -> BaseException | None:
    stop = asyncio.Event()
    failures: list[BaseException] = []

    def on_failure(error: BaseException) -> None:
        failures.append(error)
        stop.set()

    service = build(on_failure)
    with _stop_on_signals(stop):
        if await _unless_stopped(service.start(), stop):
            announce(service.addresses())
            _calm_the_collector()
            await stop.wait()
        await _stop_in_time(service)
    return failures[0] if failures else None


def _calm_the_collector() -> None:
    """What the start made lives as long as the process: the cyclic collector need not walk it again and again, and
    with what a busy server allocates its default thresholds cost a tenth of the CPU time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)


async def _unless_stopped(start: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether `start` came to its end; a signal that comes first cancels it. Raises what it raised."""
    starting = asyncio.ensure_future(start)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        return False
    await starting
    return True


async def _stop_in_time(service: Service) -> None:
    try:
        async with asyncio.timeout(STOP_WITHIN_S):
            await service.stop()
    except TimeoutError:
        log.critical("stopping took longer than %s s; exiting at once", STOP_WITHIN_S)
        for task in asyncio.all_tasks():
            log.critical("not ended: %s at %s", task.get_name(), _where(task))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_FORCED_EXIT)


def _where(task: asyncio.Task[Any]) -> str:
    """The innermost line of ours that it waits in."""
    frames = task.get_stack()
    return f"{frames[-1].f_code.co_filename}:{frames[-1].f_lineno}" if frames else "its end"


@contextlib.contextmanager
def _stop_on_signals(stop: asyncio.Event) -> Iterator[None]:
    """The first signal asks for an orderly stop, the second ends the process as if nobody handled it."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}

    def handle(number: signal.Signals) -> None:
        log.info("%s: stopping", number.name)
        stop.set()
        give_up(dict.fromkeys(_SIGNALS, signal.SIG_DFL))

    def give_up(successors: dict[signal.Signals, Any]) -> None:
        for number, successor in successors.items():
            loop.remove_signal_handler(number)
            signal.signal(number, successor)

    for number in _SIGNALS:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        give_up(before)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's loop where it is installed, else Python's own."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
