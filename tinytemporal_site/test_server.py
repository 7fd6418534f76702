"""`tinytemporal-test-server PORT`: what SDKs start as the test server whose time can be skipped.

It takes the arguments of Temporal's own test server, for SDKs know those: the port, and `--enable-time-skipping` to begin with time
unlocked. All is in memory and ends with the process, there is no web side, and nothing is printed but warnings. Other settings
come from the environment (README, "Settings"); a `.env` file is not read.

An SDK tries to connect every 100 ms, and gives up after fifty refusals. So the port is taken at once, before Python has
loaded what the server is made of: until it runs, the SDK's first try waits instead.
"""

from __future__ import annotations

import argparse
import os
import secrets
import socket
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from common.service import OnFailure, Service


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until a signal; the exit status."""
    chosen = _parser().parse_args(arguments)
    held = _hold(chosen.port)
    _set_environment(port=held.getsockname()[1])
    try:
        return _serve(held, is_unlocked=chosen.enable_time_skipping)
    finally:
        held.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tinytemporal-test-server", description="A Temporal server that can skip time."
    )
    parser.add_argument("port", type=int, help="where it listens, on 127.0.0.1; 0: any free port")
    parser.add_argument("--enable-time-skipping", action="store_true", help="begin with time unlocked")
    return parser


def _hold(port: int) -> socket.socket:
    """Listens and takes no connection. Raises OSError when somebody else does."""
    held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", port))
    held.listen()
    return held


def _set_environment(*, port: int) -> None:
    """What is in the environment already wins, save for what makes this the test server."""
    os.environ |= {
        "ENV_FILE": os.devnull,
        "DATABASE_URL": "sqlite://:memory:",
        "FRONTEND_PORT": str(port),
        "TIME_SKIPPING": "true",
        "DJANGO_SETTINGS_MODULE": "tinytemporal_site.settings",
    }
    for name, value in {
        "HTTP_PORT": "off",
        "NUM_HISTORY_SHARDS": "1",
        "LOG_LEVEL": "WARNING",
        "SECRET_KEY": secrets.token_urlsafe(),
    }.items():
        os.environ.setdefault(name, value)


def _serve(held: socket.socket, *, is_unlocked: bool) -> int:
    import django

    django.setup()
    from common.errors import Unavailable
    from tinytemporal_site.composition import build_server
    from tinytemporal_site.management.commands.runservice import memory_database_kept, require_schema
    from tinytemporal_site.process import run_process
    from tinytemporal_site.roles import default_host
    from tinytemporal_site.time_skipping import NEEDED

    def build(on_failure: OnFailure) -> Service:
        server = build_server(
            roles=NEEDED, host=default_host(), on_failure=on_failure, time_locks=0 if is_unlocked else 1
        )
        held.close()  # whoever waits for an answer there is sent away, and tries again
        return server

    with memory_database_kept():
        require_schema()
        try:
            failure = run_process(build=build, announce=lambda addresses: None)  # noqa: ARG005
        except (OSError, Unavailable) as error:
            print(f"The test server could not start: {error}", file=sys.stderr)  # noqa: T201
            return 1
    if failure is not None:
        print(f"A part of the test server failed: {failure!r}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
