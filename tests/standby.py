"""A synchronous standby of a throw-away PostgreSQL cluster, and a primary that dies as with its machine."""

from __future__ import annotations

import psutil
import psycopg

from tests.postgres import Cluster


class Standby(Cluster):
    """A copy of a running cluster that follows it, until it is promoted."""

    ready_line = "database system is ready to accept read-only connections"

    def follow(self, primary: Cluster) -> None:
        """Copies the primary's files and starts; from then on the primary acknowledges what this one has on disk."""
        source = f"host=127.0.0.1 port={primary.port} user=postgres application_name=standby"
        self.run(
            "pg_basebackup", "-d", source, "-D", self.data, "--write-recovery-conf", "--checkpoint=fast", "--no-sync"
        )
        self.start()
        with psycopg.connect(primary.url, autocommit=True) as session:
            session.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            session.execute("SELECT pg_reload_conf()")
            state = "SELECT sync_state FROM pg_stat_replication WHERE application_name = 'standby'"
            while session.execute(state).fetchone() != ("sync",):
                pass

    def promote(self) -> None:
        """Returns when it accepts writes."""
        with psycopg.connect(self.url, autocommit=True) as session:
            assert session.execute("SELECT pg_promote()").fetchone() == (True,)


def kill(cluster: Cluster) -> None:
    """SIGKILL to each of the server's processes: none gets to say or write anything any more."""
    server = psutil.Process(cluster.pid)
    server.suspend()  # else it would end its children in order, or start new ones
    for process in (*server.children(recursive=True), server):
        process.kill()
    cluster.stop()
