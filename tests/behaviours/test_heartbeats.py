"""Heartbeats: what keeps an attempt alive, and which details the next one sees."""

from temporalio.api.enums.v1 import TimeoutType

from .harness import Run, Server, activity, command, decoded, payloads, seconds, until

RETRY_SOON = {"initial_interval": seconds(0.05), "backoff_coefficient": 1}


async def scheduled(server: Server, **fields: object) -> Run:
    run = await server.start()
    await server.do(run, activity(run.queue, **fields))
    return run


async def test_b27_silence_after_one_beat_is_a_heartbeat_timeout(server: Server) -> None:
    run = await scheduled(server, heartbeat_timeout=seconds(2), retry_policy={"maximum_attempts": 1})
    task = await server.activity_task(run.queue)
    assert task.heartbeat_timeout == seconds(2)
    await server.beat(task, "alive")
    events = await server.reached(run, "ACTIVITY_TASK_TIMED_OUT")
    failure = until("ACTIVITY_TASK_TIMED_OUT", events).activity_task_timed_out_event_attributes.failure
    assert failure.timeout_failure_info.timeout_type == TimeoutType.TIMEOUT_TYPE_HEARTBEAT
    assert decoded(failure.timeout_failure_info.last_heartbeat_details) == ["alive"]


async def test_b27_waiting_in_the_queue_is_not_silence(server: Server) -> None:
    run = await scheduled(server, heartbeat_timeout=seconds(1.5), retry_policy={"maximum_attempts": 1})
    await server.nothing_happens(run, for_s=3.5)
    task = await server.activity_task(run.queue)
    assert task.attempt == 1
    await server.beat(task)
    await server.complete_activity(task, "fine")
    await server.reached(run, "ACTIVITY_TASK_COMPLETED")


async def test_b27_details_sent_with_the_failure_reach_the_next_attempt(server: Server) -> None:
    run = await scheduled(server, heartbeat_timeout=seconds(30), retry_policy=RETRY_SOON)
    first = await server.activity_task(run.queue)
    await server.beat(first, "older")
    await server.fail_activity(first, last_heartbeat_details=payloads("newest"))
    assert decoded((await server.pending_activity(run)).heartbeat_details) == ["newest"]
    assert decoded((await server.activity_task(run.queue)).heartbeat_details) == ["newest"]
    await server.terminate(run)


async def test_b27_a_beat_just_before_the_failure_reaches_the_next_attempt(server: Server) -> None:
    run = await scheduled(server, heartbeat_timeout=seconds(30), retry_policy=RETRY_SOON)
    first = await server.activity_task(run.queue)
    await server.beat(first, "older")
    await server.beat(first, "newest")
    await server.fail_activity(first)
    assert decoded((await server.pending_activity(run)).heartbeat_details) == ["newest"]
    assert decoded((await server.activity_task(run.queue)).heartbeat_details) == ["newest"]
    await server.terminate(run)


async def test_b27_details_outlive_an_attempt_that_never_beats(server: Server) -> None:
    run = await scheduled(server, retry_policy=RETRY_SOON)
    first = await server.activity_task(run.queue)
    await server.beat(first, "kept")
    await server.fail_activity(first)
    second = await server.activity_task(run.queue)
    assert decoded(second.heartbeat_details) == ["kept"]
    await server.fail_activity(second)
    third = await server.activity_task(run.queue)
    assert (third.attempt, decoded(third.heartbeat_details)) == (3, ["kept"])
    await server.terminate(run)


async def test_b27_a_beat_learns_of_the_cancel_request(server: Server) -> None:
    run = await server.start()
    await server.do(run, activity(run.queue))
    task = await server.activity_task(run.queue)
    assert not (await server.beat(task)).cancel_requested
    await server.signal(run)
    await server.do(run, command("request_cancel_activity_task", scheduled_event_id=5))
    assert (await server.beat(task)).cancel_requested
    await server.call("RespondActivityTaskCanceled", task_token=task.task_token, details=payloads("stopped"))
    events = await server.reached(run, "ACTIVITY_TASK_CANCELED")
    cancelled = until("ACTIVITY_TASK_CANCELED", events).activity_task_canceled_event_attributes
    assert decoded(cancelled.details) == ["stopped"]
