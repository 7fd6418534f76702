"""The workers that send heartbeats, in memory: what they last said of themselves.

A worker that says it has shut down is forgotten at once, one that falls silent after a while. Nothing of this is stored.
Source: upstream's service/matching/workers.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator

import msgspec
from temporalio.api.enums.v1 import WorkerStatus
from temporalio.api.worker.v1 import WorkerHeartbeat, WorkerInfo, WorkerListInfo
from temporalio.api.workflowservice import v1 as ws

from common.clock import Clock
from common.errors import InvalidArgument, NotFound
from matching.config import MatchingConfig
from matching.worker_filter import parse_filter

SYSTEM_QUEUE_PREFIX = "temporal-sys-"


class PageToken(msgspec.Struct, rename="camel"):
    last_worker_instance_key: str


class WorkerRegistry:
    def __init__(self, *, clock: Clock, config: MatchingConfig) -> None:
        self._clock = clock
        self._ttl_s = config.worker_ttl.total_seconds()
        self._limit = config.workers_limit
        self._seen: OrderedDict[tuple[str, str], tuple[float, WorkerHeartbeat]] = OrderedDict()
        """By namespace and instance key, the one heard of last at the end."""

    def heard(self, *, namespace: str, heartbeats: Iterable[WorkerHeartbeat]) -> None:
        now = self._clock.monotonic()
        for heartbeat in heartbeats:
            key = (namespace, heartbeat.worker_instance_key)
            self._seen.pop(key, None)
            if heartbeat.status != WorkerStatus.WORKER_STATUS_SHUTDOWN:
                self._seen[key] = (now, heartbeat)
        self._forget_silent(now)

    def leaves(self, *, namespace: str, heartbeat: WorkerHeartbeat, is_kept_here: bool) -> None:
        """The last word of a worker that shuts down. A host that keeps no list of the namespace's workers only forgets what
        it knows of this one."""
        if is_kept_here:
            self.heard(namespace=namespace, heartbeats=[heartbeat])
        else:
            self._seen.pop((namespace, heartbeat.worker_instance_key), None)

    def list(self, request: ws.ListWorkersRequest) -> ws.ListWorkersResponse:
        """In order of instance key. Raises InvalidArgument for a bad filter or page token."""
        after = _page_token(request.next_page_token)
        found = sorted(
            self._matching(request.namespace, request.query, request.include_system_workers),
            key=lambda worker: worker.worker_instance_key,
        )
        page = [worker for worker in found if worker.worker_instance_key > after]
        response = ws.ListWorkersResponse()
        if request.page_size and len(page) > request.page_size:
            page = page[: request.page_size]
            token = PageToken(last_worker_instance_key=page[-1].worker_instance_key)
            response.next_page_token = msgspec.json.encode(token)
        response.workers_info.extend(WorkerInfo(worker_heartbeat=worker) for worker in page)
        response.workers.extend(_list_info(worker) for worker in page)
        return response

    def count(self, request: ws.CountWorkersRequest) -> ws.CountWorkersResponse:
        found = self._matching(request.namespace, request.query, request.include_system_workers)
        return ws.CountWorkersResponse(count=sum(1 for _ in found))

    def describe(self, request: ws.DescribeWorkerRequest) -> ws.DescribeWorkerResponse:
        self._forget_silent(self._clock.monotonic())
        found = self._seen.get((request.namespace, request.worker_instance_key))
        if found is None:
            raise NotFound(f"Worker {request.worker_instance_key} not found")
        return ws.DescribeWorkerResponse(worker_info=WorkerInfo(worker_heartbeat=found[1]))

    def _matching(self, namespace: str, query: str, include_system: bool) -> Iterator[WorkerHeartbeat]:
        self._forget_silent(self._clock.monotonic())
        matches: Callable[[WorkerHeartbeat], bool] = parse_filter(query) if query.strip() else lambda _: True
        return (
            worker
            for (of, _), (_, worker) in self._seen.items()
            if of == namespace
            and (include_system or not worker.task_queue.startswith(SYSTEM_QUEUE_PREFIX))
            and matches(worker)
        )

    def _forget_silent(self, now: float) -> None:
        while self._seen:
            heard, _ = next(iter(self._seen.values()))
            if now - heard <= self._ttl_s and len(self._seen) <= self._limit:
                return
            self._seen.popitem(last=False)


def _page_token(token: bytes) -> str:
    if not token:
        return ""
    try:
        return msgspec.json.decode(token, type=PageToken).last_worker_instance_key
    except msgspec.MsgspecError as error:
        raise InvalidArgument("invalid next_page_token") from error


def _list_info(worker: WorkerHeartbeat) -> WorkerListInfo:
    info = WorkerListInfo(
        worker_instance_key=worker.worker_instance_key,
        worker_identity=worker.worker_identity,
        task_queue=worker.task_queue,
        sdk_name=worker.sdk_name,
        sdk_version=worker.sdk_version,
        status=worker.status,
        host_name=worker.host_info.host_name,
        worker_grouping_key=worker.host_info.worker_grouping_key,
        process_id=worker.host_info.process_id,
        plugins=worker.plugins,
        drivers=worker.drivers,
    )
    if worker.HasField("deployment_version"):
        info.deployment_version.CopyFrom(worker.deployment_version)
    if worker.HasField("start_time"):
        info.start_time.CopyFrom(worker.start_time)
    return info
