"""A throw-away PostgreSQL cluster for one test session: in a temporary folder, on a free port, gone at the end.

PostgreSQL refuses to run as root, so under root its programs run as the system's `postgres` (or `nobody`). The server
is a direct child that the kernel stops when this process dies, however it dies.
"""

import ctypes
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from tests.ports import free_port

Command = list[str | Path]

_STOP_WITHIN_S = 15
_PR_SET_PDEATHSIG = 1
# Nothing here outlives the machine's power, and a killed server process loses nothing without fsync either.
_OPTIONS = {
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "warning",
    # The stock SDKs' tests fill many small databases; none of them needs vacuuming.
    "autovacuum": "off",
}
_DURABLE = {"fsync": "on", "full_page_writes": "on", "autovacuum": "on"}


class PostgresMissing(Exception):
    """No PostgreSQL programs were found; the tests need them and never skip for want of them."""


def programs() -> Path:
    """The folder with initdb and postgres: what pg_config names, else the newest that Debian or Homebrew lay down."""
    found: list[Path] = []
    if config := shutil.which("pg_config"):
        asked = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True)
        found.append(Path(asked.stdout.strip()))
    for pattern in ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin"):
        found += sorted(Path("/").glob(pattern), reverse=True)
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresMissing("initdb and postgres were not found: install PostgreSQL's server, or set TEST_DATABASE_URL")


class Cluster:
    """One running PostgreSQL server; `start` returns when it accepts connections."""

    ready_line = "database system is ready to accept connections"

    def __init__(self, *, durable: bool = False) -> None:
        """`durable`: sync every commit, as a server that holds real data does; what is measured must."""
        self._options = {**_OPTIONS, **(_DURABLE if durable else {})}
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="tinytemporal-pg-"))
        self.data = self._folder / "data"
        self._account = _unprivileged_account()
        self.port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self._log: threading.Thread | None = None
        if self._account is not None:
            os.chown(self._folder, self._account.pw_uid, self._account.pw_gid)

    @property
    def url(self) -> str:
        """The superuser's URL of the database `postgres`."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    @property
    def pid(self) -> int:
        """The server's first process; all others are its children."""
        assert self._process is not None, "the cluster is not running"
        return self._process.pid

    def create(self) -> None:
        """Lay the cluster's files; trust is the authentication, since only this machine can connect."""
        options = ("--no-sync", "--no-locale", "--encoding=UTF8", "--auth=trust", "--username=postgres")
        self.run("initdb", *options, "-D", self.data)

    def run(self, program: str, *arguments: str | Path) -> None:
        """One of PostgreSQL's programs, as the account that the server runs as."""
        done = self._spawn([self._programs / program, *arguments])
        output, _ = done.communicate()
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed:\n{output}")

    def start(self) -> None:
        options = [f"--{name}={value}" for name, value in self._options.items()]
        sockets = f"--unix_socket_directories={self._folder}"
        command: Command = [self._programs / "postgres", "-D", self.data, "-p", str(self.port), sockets, *options]
        self._process = self._spawn(command)
        assert self._process.stdout is not None
        seen: list[str] = []
        for line in self._process.stdout:
            seen.append(line)
            if self.ready_line in line:
                break
        else:
            raise RuntimeError("PostgreSQL did not start:\n" + "".join(seen))
        # Its pipe must be read on, or its log would block it once the pipe is full.
        self._log = threading.Thread(target=self._process.stdout.read, name="postgres log", daemon=True)
        self._log.start()

    def stop(self) -> None:
        """A fast shutdown: sessions are ended, transactions rolled back. Idempotent."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """An immediate end, as after a crash; the next start recovers from the log."""
        self._end(signal.SIGQUIT)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        try:
            process.wait(_STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._log is not None:
            self._log.join()
        assert process.stdout is not None
        process.stdout.close()

    def _spawn(self, command: Command) -> "subprocess.Popen[str]":
        account = self._account
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            user=account.pw_uid if account else None,
            group=account.pw_gid if account else None,
            extra_groups=[] if account else None,
            # Ctrl-C in the terminal must reach the tests only; they then stop the server.
            start_new_session=True,
            preexec_fn=dies_with_parent(signal.SIGINT),
        )


def dies_with_parent(number: signal.Signals) -> Callable[[], object] | None:
    """For `preexec_fn`: on Linux, the kernel sends the child `number` when the thread that started it ends.

    None elsewhere, and in threads other than the main one, which may end long before the process.
    """
    if sys.platform != "linux" or threading.current_thread() is not threading.main_thread():
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return functools.partial(libc.prctl, _PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def _unprivileged_account() -> pwd.struct_passwd | None:
    """Whom to run PostgreSQL as; None when we are not root and so can only be ourselves."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresMissing("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
