from datetime import timedelta

from temporalio import workflow
from temporalio.worker import Worker

from tinytemporal_site.testing import time_skipping


@workflow.defn
class Reminder:
    @workflow.run
    async def run(self) -> str:
        await workflow.sleep(timedelta(days=30))
        return "It has been a month."


async def test_reminder() -> None:
    async with time_skipping() as env, Worker(env.client, task_queue="reminders", workflows=[Reminder]):
        said = await env.client.execute_workflow(Reminder.run, id="reminder-1", task_queue="reminders")
    assert said == "It has been a month."
