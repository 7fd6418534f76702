"""Running Python as a user would, and seeing what it printed."""

import subprocess
import sys

from tests.databases import PROJECT


def run_python(*arguments: str, environment: dict[str, str], expect_success: bool = True) -> str:
    """Everything that this Python printed by its end; asserts that it succeeded, or that it did not."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is expect_success, f"ended with {done.returncode}:\n{done.stdout}"
    return done.stdout
