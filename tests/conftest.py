"""What every test can ask for: databases of both kinds, a PostgreSQL cluster, real server processes.

`TEST_DATABASE_URL` names a PostgreSQL server to use instead of a throw-away cluster; databases are made in it and
dropped again. Nothing is skipped because a component is missing: the test fails and says what it lacks.
"""

import os
import signal
from collections.abc import Callable, Iterator

import hypothesis
import pytest

from tests.databases import KINDS, DatabaseFactory
from tests.postgres import Cluster
from tests.server_process import LiveServer

StartServer = Callable[..., LiveServer]


# How long one example takes depends on what else the machine does; a test that hangs is ended by its own timeout.
hypothesis.settings.register_profile("anywhere", deadline=None)
hypothesis.settings.load_profile("anywhere")


def pytest_configure(config: pytest.Config) -> None:
    """A SIGTERM ends the session as Ctrl-C does, so that what it started is stopped."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _live_server_helper() -> None:
    """Takes the place of pytest-django's: its helper would drive our `live_server` as if it were Django's own."""


@pytest.fixture(scope="session")
def cluster_on_demand() -> Iterator[Callable[[], Cluster]]:
    """Gives the session's PostgreSQL server, started by whoever asks first: a session without need of it has none."""
    clusters: list[Cluster] = []

    def get() -> Cluster:
        if not clusters:
            clusters.append(Cluster())
            clusters[0].create()
            clusters[0].start()
        return clusters[0]

    try:
        yield get
    finally:
        for cluster in clusters:
            cluster.remove()


@pytest.fixture(scope="session")
def postgres_cluster(cluster_on_demand: Callable[[], Cluster]) -> Cluster:
    """The session's own PostgreSQL server; a test that stops it starts it again."""
    return cluster_on_demand()


@pytest.fixture(scope="session")
def database_factory(
    cluster_on_demand: Callable[[], Cluster], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DatabaseFactory]:
    """Makes databases of a given kind: `database_factory.create("postgresql")` gives a URL."""

    def postgres_url() -> str:
        return os.environ.get("TEST_DATABASE_URL") or cluster_on_demand().url

    factory = DatabaseFactory(folder=tmp_path_factory.mktemp("databases"), postgres_url=postgres_url)
    yield factory
    factory.drop_all()


@pytest.fixture(scope="session", params=KINDS)
def database_kind(request: pytest.FixtureRequest) -> str:
    """Runs what asks for it once on SQLite and once on PostgreSQL."""
    kind: str = request.param
    return kind


@pytest.fixture
def database_url(database_kind: str, database_factory: DatabaseFactory) -> Iterator[str]:
    """A fresh, migrated database of each kind, for this test alone."""
    url = database_factory.create(database_kind)
    yield url
    database_factory.drop(url)


@pytest.fixture(scope="module")
def module_database_url(database_kind: str, database_factory: DatabaseFactory) -> Iterator[str]:
    """A fresh, migrated database of each kind, shared by the tests of a module."""
    url = database_factory.create(database_kind)
    yield url
    database_factory.drop(url)


@pytest.fixture(scope="session")
def live_server(
    database_kind: str, database_factory: DatabaseFactory, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    """One server process for each kind of database, shared by the session; tests that kill use `start_server`."""
    url = database_factory.create(database_kind)
    server = LiveServer(database_url=url, log=tmp_path_factory.mktemp("server") / "log")
    server.start()
    try:
        yield server
        server.stop()
    finally:
        server.kill()
        database_factory.drop(url)


@pytest.fixture(scope="session")
def live_server_address(live_server: LiveServer) -> str:
    """The frontend of the session's live server, as HOST:PORT."""
    return live_server.address


@pytest.fixture
def start_server(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """Starts server processes for this test alone: `start_server(roles=("all",), environment={})`.

    They share the test's own database (`database_url`) and are killed at its end if they still run.
    """
    started: list[LiveServer] = []

    def start(*, roles: tuple[str, ...] = ("all",), environment: dict[str, str] | None = None) -> LiveServer:
        log = tmp_path_factory.mktemp("server") / "log"
        server = LiveServer(database_url=database_url, log=log, roles=roles, environment=environment)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()
