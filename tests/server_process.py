"""A real server process, as a user starts it, that a test can stop, kill and start again at the same address."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.databases import PROJECT, server_environment
from tests.ports import free_ports
from tests.postgres import dies_with_parent

_READY_WITHIN_S = 60
_STOP_WITHIN_S = 20
_LOG_TAIL = 8_000
_PORTS = ("FRONTEND_PORT", "HISTORY_PORT", "MATCHING_PORT", "WEB_PORT", "HTTP_PORT")


class LiveServer:
    """`manage.py runservice` against one database, on ports of its own that survive a restart.

    `start` returns once the process says that everything runs. All methods block; in an async test that must go on
    meanwhile, hand them to a thread.
    """

    command = (str(PROJECT / "manage.py"), "runservice")

    def __init__(
        self,
        *,
        database_url: str,
        log: Path,
        roles: tuple[str, ...] = ("all",),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.database_url = database_url
        self.log = log
        self.roles = roles
        self.ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))
        self.environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._addresses: dict[str, str] = {}

    @property
    def address(self) -> str:
        """Where the frontend listens, as HOST:PORT."""
        return f"127.0.0.1:{self.ports['FRONTEND_PORT']}"

    @property
    def web_url(self) -> str:
        return f"http://127.0.0.1:{self.ports['WEB_PORT']}"

    @property
    def addresses(self) -> dict[str, str]:
        """What the process itself said of where its roles listen, by role."""
        return self._addresses

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server is not running"
        return self._process.pid

    def start(self) -> None:
        assert self._process is None, "the server is running already"
        reader, writer = os.pipe()
        with contextlib.closing(os.fdopen(reader)) as ready:
            self._process = self._spawn(ready_fd=writer)
            os.close(writer)
            line = ready.readline() if select.select([ready], [], [], _READY_WITHIN_S)[0] else ""
        if not line:
            self.kill()
            raise RuntimeError(f"the server did not start:\n{self.log_tail()}")
        self._addresses = json.loads(line)["addresses"]

    def stop(self) -> None:
        """An orderly end by SIGTERM; fails when it takes too long or is not one. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            code = process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"the server did not stop in {_STOP_WITHIN_S} s:\n{self.log_tail()}") from None
        if code != 0:
            raise RuntimeError(f"the server ended with {code}:\n{self.log_tail()}")

    def kill(self) -> None:
        """SIGKILL: it gets to do nothing any more. Idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.stop()
        self.start()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def log_tail(self) -> str:
        with self.log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LOG_TAIL))
            return stream.read().decode(errors="replace")

    def _spawn(self, *, ready_fd: int) -> "subprocess.Popen[bytes]":
        ports = {name: str(port) for name, port in self.ports.items()}
        command = [sys.executable, *self.command, *self.roles, f"--ready-fd={ready_fd}"]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                env=server_environment(database_url=self.database_url, **ports, **self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[ready_fd],
                preexec_fn=dies_with_parent(signal.SIGKILL),
            )
