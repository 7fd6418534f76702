"""gRPC's settings for the process: made before it is imported, known to the installed version, and the user's win."""

import os
import subprocess
import sys

from tests.databases import PROJECT
from tinytemporal_site.grpc_environment import EXPERIMENTS

PROGRAM = """
import os, sys
import tinytemporal_site
assert "grpc" not in sys.modules, "gRPC was imported before its environment was laid"
import tinytemporal_site.settings, grpc
grpc.server(None)
print(os.environ["GRPC_EXPERIMENTS"])
"""


def _run(**environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "GRPC_EXPERIMENTS"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=PROJECT, env=inherited | environment, capture_output=True, text=True
    )


def test_the_installed_grpc_knows_what_it_is_told() -> None:
    done = _run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == EXPERIMENTS
    assert "Unknown experiment" not in done.stderr


def test_what_grpc_does_not_know_would_be_seen() -> None:
    assert "Unknown experiment" in _run(GRPC_EXPERIMENTS="-no_such_experiment").stderr


def test_the_users_own_value_is_left_alone() -> None:
    assert _run(GRPC_EXPERIMENTS="").stdout.strip() == ""
