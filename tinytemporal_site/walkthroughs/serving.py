"""Servers for a walkthrough: in this process, or as a process that can be killed; both on the configured database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings

from tinytemporal_site.composition import build_server
from tinytemporal_site.roles import default_host

ROLES = ("history", "matching", "frontend")
_PORTS = ("FRONTEND_PORT", "HISTORY_PORT", "MATCHING_PORT")


@asynccontextmanager
async def server_here() -> AsyncIterator[str]:
    """The engine's roles in this process, on free ports; gives the frontend's address."""
    for port in _PORTS:
        setattr(settings, port, 0)
    server = build_server(roles=frozenset(ROLES), host=default_host())
    await server.start()
    try:
        yield server.addresses()["frontend"]
    finally:
        await server.stop()


class Child:
    """`manage.py` with these arguments as a process of its own, to be killed."""

    def __init__(self, *arguments: str, **environment: str) -> None:
        reader, writer = os.pipe()
        self._process = subprocess.Popen(  # noqa: S603  this project's own command
            [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments, f"--ready-fd={writer}"],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            pass_fds=[writer],
        )
        os.close(writer)
        self._ready = os.fdopen(reader)

    def told(self) -> dict[str, Any]:
        """What it says once it is ready. Raises RuntimeError when it ends before. Blocks."""
        with self._ready:
            line = self._ready.readline()
        if not line:
            raise RuntimeError("a process of the walkthrough did not start")
        told: dict[str, Any] = json.loads(line)
        return told

    def kill(self) -> None:
        """SIGKILL: it gets to do nothing any more."""
        self._process.kill()
        self._process.wait()


def server_child() -> Child:
    return Child("runservice", *ROLES, LOG_LEVEL="ERROR", **dict.fromkeys(_PORTS, "0"))
