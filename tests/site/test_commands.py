"""`serve` and `runservice` as a user runs them: real processes, real signals, real databases."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.conftest import StartServer
from tests.databases import PROJECT, DatabaseFactory, django_entry, manage, server_environment
from tests.ports import free_ports
from tests.server_process import LiveServer
from tests.site.command_line import run_python

MANAGE = str(PROJECT / "manage.py")
START_WITHIN_S = 3.0
"""Of a processor's time: what it takes on a machine that has nothing else to do."""


def ports() -> dict[str, str]:
    names = ("FRONTEND_PORT", "HISTORY_PORT", "MATCHING_PORT", "WEB_PORT", "HTTP_PORT")
    return dict(zip(names, map(str, free_ports(len(names))), strict=True))


class Serve:
    """`manage.py serve` on a database, until it is ended by a signal."""

    def __init__(self, database_url: str) -> None:
        self.ports = ports()
        reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, MANAGE, "serve", f"--ready-fd={writer}"],
            env=server_environment(database_url=database_url, **self.ports),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            pass_fds=[writer],
        )
        os.close(writer)
        with os.fdopen(reader) as pipe:
            self.ready = pipe.readline()
        spent = psutil.Process(self.process.pid).cpu_times()
        self.spent_s = spent.user + spent.system

    def end(self, number: signal.Signals = signal.SIGTERM) -> str:
        """All that it printed; asserts that it ended in order."""
        self.process.send_signal(number)
        output, _ = self.process.communicate()
        assert self.process.returncode == 0, output
        return output


def test_serve_from_nothing_to_signed_in_and_again(database_kind: str, database_factory: DatabaseFactory) -> None:
    url = database_factory.create_empty(database_kind)
    first = Serve(url)
    again: Serve | None = None
    try:
        addresses = json.loads(first.ready)["addresses"]
        assert addresses["frontend"] == f"127.0.0.1:{first.ports['FRONTEND_PORT']}"
        with urllib.request.urlopen(f"http://{addresses['web']}/admin/", timeout=20) as page:
            assert b"Log in" in page.read()
        printed = first.end()
        assert f"Temporal gRPC   127.0.0.1:{first.ports['FRONTEND_PORT']}" in printed
        assert f"http://127.0.0.1:{first.ports['WEB_PORT']}/admin/" in printed
        assert "user admin, password " in printed
        assert "stopped" in printed
        again = Serve(url)
        assert again.spent_s < START_WITHIN_S
        assert "password " not in again.end(signal.SIGINT).replace("new password", "")
    finally:
        for server in (first, again):
            if server is not None and server.process.poll() is None:
                server.process.kill()
                server.process.communicate()
    assert administrators(url) == [("admin",)]
    database_factory.drop(url)


def test_processes_that_first_serve_at_once_share_one_database(database_factory: DatabaseFactory) -> None:
    """One makes the tables and the administrator, the others wait for it, and all serve."""
    url = database_factory.create_empty("postgresql")
    with ThreadPoolExecutor(3) as pool:
        servers = list(pool.map(Serve, [url] * 3))
    try:
        assert [json.loads(server.ready)["pid"] for server in servers] == [server.process.pid for server in servers]
        printed = [server.end() for server in servers]
        assert sum("user admin, password " in text for text in printed) == 1
    finally:
        for server in servers:
            if server.process.poll() is None:
                server.process.kill()
                server.process.communicate()
    assert administrators(url) == [("admin",)]
    assert "No migrations to apply" in manage("migrate", database_url=url)
    database_factory.drop(url)


def administrators(url: str) -> list[tuple[str, ...]]:
    query = "SELECT username FROM auth_user WHERE is_superuser"
    if url.startswith("sqlite"):
        connection = sqlite3.connect(django_entry(url)["NAME"])
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()
    with psycopg.connect(url) as connected:
        return connected.execute(query).fetchall()


def test_serve_in_memory_needs_nothing(tmp_path: Path) -> None:
    server = Serve("sqlite://:memory:")
    printed = server.end()
    assert "SQLite in memory" in printed
    assert list(tmp_path.iterdir()) == []


def test_live_server_says_where_it_listens(live_server: LiveServer) -> None:
    assert live_server.addresses["frontend"] == live_server.address
    with urllib.request.urlopen(f"{live_server.web_url}/admin/", timeout=20) as page:
        assert page.status == 200


def test_restart_keeps_the_addresses(start_server: StartServer) -> None:
    server = start_server()
    before, pid = dict(server.addresses), server.pid
    server.kill()
    server.start()
    assert server.addresses == before
    assert server.pid != pid
    server.stop()


def test_web_alone_needs_no_engine(start_server: StartServer) -> None:
    server = start_server(roles=("web",))
    assert server.addresses.keys() == {"web"}
    server.stop()


def test_unmigrated_database_is_refused(database_kind: str, database_factory: DatabaseFactory) -> None:
    url = database_factory.create_empty(database_kind)
    output = refused("runservice", database_url=url)
    assert "tables are not up to date: run `manage.py migrate` first" in output
    manage("migrate", "--verbosity=0", database_url=url)
    database_factory.drop(url)


def test_unknown_role_is_refused() -> None:
    assert "invalid choice: 'histroy'" in refused("runservice", "histroy", database_url="sqlite://:memory:")


def test_taken_port_is_named(live_server: LiveServer, database_url: str) -> None:
    taken = str(live_server.ports["FRONTEND_PORT"])
    output = refused("runservice", database_url=database_url, **{**ports(), "FRONTEND_PORT": taken})
    assert taken in output
    assert "Traceback" not in output


@pytest.mark.parametrize("command", ["serve", "runservice"])
def test_unreachable_database_is_refused_without_its_password(command: str) -> None:
    (port,) = free_ports(1)
    output = refused(command, database_url=f"postgres://u:hidden@127.0.0.1:{port}/d")
    assert "The database cannot be used" in output
    assert "hidden" not in output
    assert "Traceback" not in output


def refused(*arguments: str, database_url: str, **variables: str) -> str:
    environment = server_environment(database_url=database_url, **variables)
    return run_python(MANAGE, *arguments, environment=environment, expect_success=False)
