"""What people do in the admin, as they do it: look for a run, watch it, act on it, follow a queue, be refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest

from tests.browser.browser import PHONE, Browser
from tests.browser.conftest import Shop
from tests.browser.holding import HELD

pytestmark = pytest.mark.timeout(180)


def open_run(browser: Browser, run_id: str) -> None:
    browser.go(f"/admin/executions/{run_id}/")


def waits_to_ship(browser: Browser, run_id: str) -> None:
    """The order has done all it does before it is told to ship."""
    open_run(browser, run_id)
    browser.wait_for_text("Following", "#x-following")
    browser.wait_for_text("Child workflow execution completed")


def test_a_run_is_found_read_and_watched(operator: Browser, shop: Shop) -> None:
    run_id = shop.order("order-watched")
    operator.link("Executions")
    operator.one("#x-id").send_keys("order-watched")
    operator.reload_until(lambda: "order-watched" in operator.text("table"), "the read model to know it")
    operator.picture("executions")
    operator.go("/admin/executions/?id=order-watched")
    operator.link("order-watched")
    operator.wait(lambda: run_id in operator.path, "the run's page")
    waits_to_ship(operator, run_id)
    timeline = operator.text("#x-state svg")
    for shown in ("reserve", "×3", "timer", "charge", "Parcel"):
        assert shown in timeline
    assert "Running" in operator.text("#x-state")
    operator.picture("run")
    operator.picture("timeline", at="#x-timeline")
    operator.picture("run-phone", size=PHONE)
    operator.driver.execute_script("window.neverReloaded = true")
    shop.do(lambda: shop.client.get_workflow_handle("order-watched").signal("ship"))
    operator.wait(lambda: operator.one("#x-state").get_attribute("data-status") == "Completed", "the end of the run")
    operator.wait_for_text("It has ended.")
    assert operator.driver.execute_script("return window.neverReloaded") is True
    assert "12.5" in operator.text()
    operator.picture("run-dark", dark=True)
    assert operator.problems() == []


def test_a_signal_from_the_admin_ends_the_run(operator: Browser, shop: Shop) -> None:
    run_id = shop.order("order-signalled")
    waits_to_ship(operator, run_id)
    operator.click("#a-signal")
    operator.one("#id_signal_name").send_keys("ship")
    operator.one("#id_input").send_keys("{")
    operator.click("#a-confirm")
    operator.wait_for_text("This is no JSON")
    operator.one("#id_input").clear()
    operator.click("#a-confirm")
    operator.wait_for_text("The signal was taken.")
    operator.wait(lambda: operator.one("#x-state").get_attribute("data-status") == "Completed", "the end of the run")


def test_terminating_is_confirmed_and_logged(operator: Browser, shop: Shop) -> None:
    run_id = shop.order("order-terminated")
    waits_to_ship(operator, run_id)
    operator.click("#a-terminate")
    operator.wait_for_text("The run ends at once")
    assert operator.one("#id_reason").get_attribute("required")
    operator.one("#id_reason").send_keys("ordered twice")
    operator.picture("terminate")
    operator.click("#a-confirm")
    operator.wait_for_text("The run was terminated.")
    assert "ordered twice" in operator.text()
    assert operator.one("#x-state").get_attribute("data-status") == "Terminated"
    assert operator.all("#a-terminate") == []
    operator.go("/admin/")
    operator.wait_for_text("order-terminated")


def test_who_may_only_look_is_refused(viewer: Browser, shop: Shop) -> None:
    run_id = shop.order("order-looked-at")
    waits_to_ship(viewer, run_id)
    assert viewer.all("#a-actions") == []
    viewer.go(f"/admin/executions/{run_id}/do/terminate/")
    assert "403" in viewer.text("h1")
    viewer.picture("refused")
    # A forged request gets no further.
    open_run(viewer, run_id)
    status = viewer.driver.execute_async_script(
        "const done = arguments[arguments.length - 1];"
        "const token = document.cookie.split('csrftoken=')[1].split(';')[0];"
        "fetch(arguments[0], {method: 'POST', headers: {'X-CSRFToken': token}}).then((answer) => done(answer.status))",
        f"/admin/executions/{run_id}/do/terminate/",
    )
    assert status == 403
    open_run(viewer, run_id)
    assert viewer.one("#x-state").get_attribute("data-status") == "Running"


def test_the_gap_of_a_queue_closes(operator: Browser, shop: Shop) -> None:
    """History is slow with the first task; those after it overtake, and their rows stay until it is started too."""
    shop.order(f"{HELD}0", queue="gap")
    operator.go("/admin/queues/")
    operator.reload_until(lambda: "gap workflow" in operator.text(), "the queue to be there")
    operator.link("gap")
    operator.reload_until(lambda: len(operator.all("svg .c-wait")) == 1, "the first task to wait")
    for number in range(1, 8):
        shop.order(f"gap-{number}", queue="gap")
    operator.reload_until(lambda: len(operator.all("svg .c-wait")) == 8, "all tasks to wait")
    assert operator.text("#c-last-task-id") == "8"
    first = shop.begin(lambda: poll(shop))
    operator.reload_until(lambda: len(operator.all("svg .c-out")) == 1, "the first to be dispatched")
    for _ in range(3):
        assert shop.do(lambda: poll(shop)) != HELD
    operator.reload_until(lambda: len(operator.all("svg .c-gap")) == 3, "those that overtook to be retained")
    assert len(operator.all("svg .c-wait")) == 4
    assert (operator.text("#c-live-ack-level"), operator.text("#c-stored")) == ("0", "8")
    operator.picture("queue-gap")
    shop.server.release()
    assert first.result(60).startswith(HELD)
    operator.reload_until(lambda: operator.text("#c-live-ack-level") == "4", "the gap to be closed")
    assert operator.all("svg .c-gap") == []
    operator.click("#a-unload")
    operator.wait_for_text("No task is lost.")
    operator.click("#a-confirm")
    operator.wait_for_text("It was unloaded.")
    assert (operator.text("#c-ack-level"), operator.text("#c-stored")) == ("4", "4")


async def poll(shop: Shop) -> str:
    """The workflow id of the next task of the queue."""
    request = PollWorkflowTaskQueueRequest(namespace="default", task_queue=TaskQueue(name="gap"), identity="by hand")
    answer = await shop.client.workflow_service.poll_workflow_task_queue(request, timeout=timedelta(seconds=60))
    return answer.workflow_execution.workflow_id


def test_many_runs_are_acted_on_at_once(operator: Browser, shop: Shop) -> None:
    for number in range(12):
        shop.order(f"many-{number:02}", queue="nobody")
    operator.go("/admin/executions/?id=many-")
    operator.reload_until(lambda: len(operator.all("input[name=run]")) == 12, "the read model to know them")
    for box in operator.all("input[name=run]"):
        box.click()
    operator.click("#x-bulk button[value=terminate]")
    operator.wait_for_text("to 12 executions")
    operator.one("#id_reason").send_keys("a mistake")
    operator.click("#a-confirm")
    operator.wait(lambda: operator.one("#a-state").get_attribute("data-state") == "Completed", "the batch's end")
    assert "12 done of 12" in operator.text("label[for=a-bar]")
    operator.picture("batch")
    operator.go("/admin/executions/?id=many-&status=Terminated")
    operator.reload_until(lambda: len(operator.all("input[name=run]")) == 12, "the read model to know of their end")


def test_the_first_page_says_what_needs_attention(operator: Browser, shop: Shop) -> None:
    shop.order("nobody-works", queue="nobody")
    operator.go("/admin/")
    operator.reload_until(lambda: "nobody" in operator.text("#content"), "the queue without a poller")
    operator.picture("attention")
    operator.picture("attention-dark", dark=True)
    operator.picture("attention-phone", size=PHONE)
    assert operator.problems() == []
