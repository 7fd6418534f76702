"""Worker heartbeats: list, describe, count, and the filter language."""

from datetime import timedelta

import pytest
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat

from common.errors import InvalidArgument, NotFound
from common.protos import timestamp
from matching.service import MatchingService
from matching.worker_filter import parse_filter

from .fakes import NAMESPACE, START, World, ws

RUNNING = WorkerStatus.WORKER_STATUS_RUNNING


def heartbeat(key: str, *, queue: str = "orders", status: WorkerStatus.ValueType = RUNNING) -> WorkerHeartbeat:
    return WorkerHeartbeat(
        worker_instance_key=key,
        worker_identity=f"{key}@host",
        task_queue=queue,
        status=status,
        sdk_name="temporal-python",
        start_time=timestamp(START),
    )


async def beat(service: MatchingService, *beats: WorkerHeartbeat) -> None:
    await service.record_worker_heartbeat(ws.RecordWorkerHeartbeatRequest(namespace=NAMESPACE, worker_heartbeat=beats))


async def keys(service: MatchingService, query: str = "", **fields: object) -> list[str]:
    request = ws.ListWorkersRequest(namespace=NAMESPACE, query=query, **fields)  # type: ignore[arg-type]
    return [worker.worker_instance_key for worker in (await service.list_workers(request)).workers]


async def test_workers_are_listed_counted_and_described(world: World) -> None:
    service = await world.service()
    await beat(service, heartbeat("b"), heartbeat("a", queue="other"), heartbeat("s", queue="temporal-sys-x"))
    assert await keys(service) == ["a", "b"]
    assert await keys(service, include_system_workers=True) == ["a", "b", "s"]
    assert await keys(service, 'TaskQueue = "orders"') == ["b"]
    counted = await service.count_workers(ws.CountWorkersRequest(namespace=NAMESPACE, query="TaskQueue = 'never'"))
    assert counted.count == 0
    described = await service.describe_worker(ws.DescribeWorkerRequest(namespace=NAMESPACE, worker_instance_key="a"))
    assert described.worker_info.worker_heartbeat == heartbeat("a", queue="other")
    with pytest.raises(NotFound, match="Worker never not found"):
        await service.describe_worker(ws.DescribeWorkerRequest(namespace=NAMESPACE, worker_instance_key="never"))
    assert (await service.list_workers(ws.ListWorkersRequest(namespace="elsewhere"))).workers == []


async def test_lists_come_in_pages(world: World) -> None:
    service = await world.service()
    await beat(service, *(heartbeat(f"w{n}") for n in range(5)))
    request = ws.ListWorkersRequest(namespace=NAMESPACE, page_size=2)
    pages = []
    while True:
        page = await service.list_workers(request)
        pages.append([info.worker_heartbeat.worker_instance_key for info in page.workers_info])
        if not page.next_page_token:
            break
        request.next_page_token = page.next_page_token
    assert pages == [["w0", "w1"], ["w2", "w3"], ["w4"]]
    with pytest.raises(InvalidArgument, match="invalid next_page_token"):
        await service.list_workers(ws.ListWorkersRequest(namespace=NAMESPACE, next_page_token=b"?"))


async def test_a_worker_is_forgotten_when_it_shuts_down_or_falls_silent(world: World) -> None:
    service = await world.service()
    await beat(service, heartbeat("a"), heartbeat("b"), heartbeat("c"))
    await beat(service, heartbeat("a", status=WorkerStatus.WORKER_STATUS_SHUTDOWN))
    await service.shutdown_worker(
        ws.ShutdownWorkerRequest(
            namespace=NAMESPACE, worker_heartbeat=heartbeat("b", status=WorkerStatus.WORKER_STATUS_SHUTDOWN)
        )
    )
    assert await keys(service) == ["c"]
    world.clock.advance(timedelta(minutes=5, seconds=1))
    assert await keys(service) == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WorkerIdentity = 'a@host'", True),
        ("WorkerIdentity != 'a@host'", False),
        ("Status = 'Running' AND SdkName STARTS_WITH 'temporal'", True),
        ("SdkName NOT STARTS_WITH 'temporal' OR TaskQueue = 'orders'", True),
        ("(TaskQueue = 'x' OR TaskQueue = 'y') AND SdkName IS NOT NULL", False),
        ("HostName IS NULL", True),
        ("StartTime >= '2026-01-01T00:00:00Z'", True),
        ("StartTime > '2026-01-01T00:00:00Z'", False),
        ("StartTime BETWEEN '2025-12-31T00:00:00Z' AND '2026-01-02T00:00:00Z'", True),
        ("HeartbeatTime IS NULL", True),
        ("Colour = 1", False),
        ("TaskQueue > 'a'", False),
        ("StartTime = 'yesterday'", False),
    ],
)
def test_filters(query: str, expected: bool) -> None:
    assert parse_filter(query)(heartbeat("a")) is expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("TaskQueue = = 1", "malformed query: syntax error at position 41"),
        ("TaskQueue =", "malformed query: syntax error at position 39"),
        ("TaskQueue = 'a' 'b'", "malformed query: syntax error at position 47 near 'b'"),
        ("TaskQueue = 'open", "malformed query"),
        ("NOT TaskQueue = 'a'", "malformed query"),
    ],
)
def test_filters_that_cannot_be_read(query: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        parse_filter(query)
