"""The tour's projects, one a language: what each needs, how it is built, how its program is started.

A project is the folder beside this module that has its language's name. It is built in `var/sdks` of the checkout, never
where it lies, and again only when one of its files or its recipe here changed. The packages it names come from their
registry through the language's own client, pinned by the project's lock file.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
BUILDS = FOLDER.parents[1] / "var" / "sdks"
_BUILD_WITHIN_S = 840


@dataclass(frozen=True, kw_only=True)
class Project:
    """`build` and `start` are run in the folder of the build; the tour's own arguments follow `start`."""

    language: str
    tools: tuple[str, ...]
    build: tuple[tuple[str, ...], ...]
    start: tuple[str, ...]

    def missing_tools(self) -> list[str]:
        return [tool for tool in self.tools if shutil.which(tool) is None]

    def built(self) -> Path:
        """The folder of the finished build, made now if there is none; an assertion with the output when that fails.

        Sessions may build at once: each does so in a folder of its own, and the first to end gives its name to it.
        """
        finished = BUILDS / f"{self.language}-{self._digest()}"
        if not finished.exists():
            unfinished = BUILDS / f"{finished.name}.{os.getpid()}"
            try:
                self._build(unfinished)
                if not finished.exists():
                    self._remove_builds()
                    unfinished.rename(finished)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)
        return finished

    def _build(self, folder: Path) -> None:
        shutil.copytree(FOLDER / self.language, folder)
        for command in self.build:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=_BUILD_WITHIN_S,
                check=False,
            )
            assert done.returncode == 0, (
                f"{self.language}: {' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
            )

    def _remove_builds(self) -> None:
        """Finished builds of this language that a change has made old."""
        for folder in BUILDS.glob(f"{self.language}-*"):
            if not folder.suffix:
                shutil.rmtree(folder, ignore_errors=True)

    def _digest(self) -> str:
        digest = hashlib.sha256(repr(self).encode())
        for file in sorted((FOLDER / self.language).rglob("*")):
            if file.is_file():
                digest.update(f"\n{file.relative_to(FOLDER)}\n".encode())
                digest.update(file.read_bytes())
        return digest.hexdigest()[:16]


TYPESCRIPT = Project(
    language="typescript",
    tools=("node", "npm"),
    # No install script is needed: the native part of the worker is inside its package.
    build=(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), ("npm", "run", "build")),
    start=("node", "dist/main.js"),
)
GO = Project(
    language="go",
    tools=("go",),
    build=(("go", "build", "-p", "2", "-buildvcs=false", "-ldflags=-s -w", "-o", "tour", "."),),
    start=("./tour",),
)
JAVA = Project(
    language="java",
    tools=("java", "javac", "mvn"),
    build=(("mvn", "--batch-mode", "--no-transfer-progress", "--quiet", "compile"),),
    # A short life: nothing in it is worth the optimising compiler or a large heap.
    start=(
        "java",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        "target/classes:target/libraries/*",
        "tour.Main",
    ),
)
PROJECTS = (TYPESCRIPT, GO, JAVA)
