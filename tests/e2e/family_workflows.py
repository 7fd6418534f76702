"""Workflows with children, updates and a wish to be reset."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError, ChildWorkflowError

SHORT = timedelta(seconds=20)


@workflow.defn
class Child:
    def __init__(self) -> None:
        self._may_end = False

    @workflow.run
    async def run(self, mode: str) -> str:
        if mode == "fail":
            raise ApplicationError("boom", type="Boom", non_retryable=True)
        if mode == "continue" and workflow.info().continued_run_id is None:
            workflow.continue_as_new(mode)
        if mode != "quick":
            await workflow.wait_condition(lambda: self._may_end)
        return f"child {mode}"

    @workflow.signal
    def end(self) -> None:
        self._may_end = True


@workflow.defn
class Parent:
    @workflow.run
    async def run(self, mode: str) -> str:
        child_id = f"{workflow.info().workflow_id}-child"
        if mode in ("quick", "fail"):
            try:
                return await workflow.execute_child_workflow(Child.run, mode, id=child_id)
            except ChildWorkflowError as error:
                return f"{type(error.cause).__name__} {error.cause}"
        handle = await workflow.start_child_workflow(
            Child.run,
            "wait",
            id=child_id,
            parent_close_policy=workflow.ParentClosePolicy[mode.upper()],
        )
        if mode == "request_cancel":
            return "left it to be canceled"
        await handle.signal(Child.end)
        return await handle


@workflow.defn
class Counter:
    """Counts what updates and signals add, until it is told to end."""

    def __init__(self) -> None:
        self._count = 0
        self._ended = False
        self._may_finish = False

    @workflow.run
    async def run(self) -> int:
        await workflow.wait_condition(lambda: self._ended)
        return self._count

    @workflow.update
    def add(self, number: int) -> int:
        self._count += number
        return self._count

    @add.validator
    def check(self, number: int) -> None:
        if number < 0:
            raise ValueError("only upwards")

    @workflow.update
    async def finish(self) -> str:
        await workflow.wait_condition(lambda: self._may_finish)
        return "finished"

    @workflow.signal
    def bump(self, number: int) -> None:
        self._count += number

    @workflow.signal
    def allow(self) -> None:
        self._may_finish = True

    @workflow.signal
    def end(self) -> None:
        self._ended = True
