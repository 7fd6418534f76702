"""The client side: one connection to each host that is called, and a contract's client over it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import grpc

from common import caller, deadline
from common.clock import Clock
from common.errors import DeadlineExceeded, Internal, OutcomeUnknown, TemporalError, Unavailable
from common.rpc.contract import Contract, Method
from common.rpc.errors import HostUnreachable, decode_error
from common.rpc.server import NO_LIMIT, RESULT

log = logging.getLogger(__name__)

_OPTIONS = [
    ("grpc.max_receive_message_length", NO_LIMIT),
    ("grpc.max_send_message_length", NO_LIMIT),
    # A host that is there but does not move any more (stopped, or cut off without a word) is found by pings.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 3_000),
    ("grpc.http2.ping_timeout_ms", 3_000),
    ("grpc.http2.max_pings_without_data", 0),
    # A host that comes back is tried again soon.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Hosts of the cluster are reached directly, whatever proxy the environment names.
    ("grpc.enable_http_proxy", 0),
    # Two channels to one address must not share a connection: each is closed by itself.
    ("grpc.use_local_subchannel_pool", 1),
    # A call is not repeated behind the caller's back.
    ("grpc.enable_retries", 0),
]
PATIENCE = timedelta(seconds=10)
"""How long calls to a host that left may still take."""
_NOT_SENT = ("failed to connect", "connection refused", "connections to all backends failing", "dns resolution failed")
"""What gRPC says of a call that never left this process, in lower case."""


class RemoteHost:
    """The connection to one address. Made without connecting; gRPC connects with the first call and again after a break."""

    def __init__(self, *, address: str, clock: Clock) -> None:
        self.address = address
        self._clock = clock
        self._channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self._in_flight: set[grpc.aio.UnaryUnaryCall[bytes, bytes]] = set()
        self._clients: dict[Contract, Any] = {}
        self._emptied: asyncio.Future[None] | None = None

    def client(self, contract: Contract) -> Any:
        """An object with the contract's methods. Beyond the contract's errors they raise HostUnreachable when the call was
        not delivered, OutcomeUnknown when the connection broke before the answer, RemoteFault for a bug over there."""
        found = self._clients.get(contract)
        if found is None:
            found = self._clients[contract] = _Client(self, contract)
        return found

    async def close(self) -> None:
        """What is in flight ends with OutcomeUnknown."""
        self.abandon()
        await self._channel.close()

    async def retire(self, *, patience: timedelta) -> None:
        """Closes once nothing is in flight any more; what is still there after `patience` is given up."""
        timer = self._clock.call_at(self._clock.now() + patience, self.abandon)
        try:
            while self._in_flight:
                self._emptied = asyncio.get_running_loop().create_future()
                await self._emptied
        finally:
            timer.cancel()
            await self._channel.close()

    def abandon(self) -> None:
        """Gives up on the answers that are awaited now: the host is not expected to give them any more."""
        for call in list(self._in_flight):
            call.cancel()

    def method(self, method: Method) -> Callable[..., Any]:
        send = self._channel.unary_unary(method.path)

        async def call(*args: Any, **kwargs: Any) -> Any:
            data = method.encode_arguments(args, kwargs)
            until = deadline.current()
            client_name = caller.client_name()
            running = send(
                data,
                timeout=None if until is None else self._seconds_to(until),
                metadata=(("client-name", client_name), ("client-version", caller.client_version()))
                if client_name
                else None,
            )
            self._in_flight.add(running)
            try:
                answer = await running
            except grpc.aio.AioRpcError as error:
                raise self._translated(error) from error
            except asyncio.CancelledError:
                if _is_cancelled():
                    running.cancel()
                    raise
                raise OutcomeUnknown(f"{self.address} did not answer: it is taken to be gone") from None
            finally:
                self._ended(running)
            if answer[:1] == RESULT:
                return method.decode_result(memoryview(answer)[1:])
            raise decode_error(memoryview(answer)[1:])

        call.__name__ = method.name
        return call

    def _ended(self, call: grpc.aio.UnaryUnaryCall[bytes, bytes]) -> None:
        self._in_flight.discard(call)
        if not self._in_flight and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _seconds_to(self, until: datetime) -> float:
        return max(0.0, (until - self._clock.now()).total_seconds())

    def _translated(self, error: grpc.aio.AioRpcError) -> TemporalError:
        code, text = error.code(), error.details() or ""
        match code:
            case grpc.StatusCode.DEADLINE_EXCEEDED:
                return DeadlineExceeded("context deadline exceeded")
            case grpc.StatusCode.CANCELLED:
                # Not by us: the host stops, and has perhaps done it.
                return OutcomeUnknown(f"{self.address} ended the call: {text}")
            case grpc.StatusCode.UNAVAILABLE if any(words in text.lower() for words in _NOT_SENT):
                return HostUnreachable(f"{self.address} can't be reached: {text}")
            case grpc.StatusCode.UNAVAILABLE:
                return OutcomeUnknown(f"the connection to {self.address} broke: {text}")
            case grpc.StatusCode.UNIMPLEMENTED:
                return Unavailable(f"{self.address} does not serve this: {text}")
        return Internal(f"{self.address} answered {code.name}: {text}")


class _Client:
    def __init__(self, host: RemoteHost, contract: Contract) -> None:
        for name, method in contract.methods.items():
            setattr(self, name, host.method(method))


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Channels:
    """The connections of this process, by address."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._hosts: dict[str, RemoteHost] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def to(self, address: str) -> RemoteHost:
        host = self._hosts.get(address)
        if host is None:
            host = self._hosts[address] = RemoteHost(address=address, clock=self._clock)
        return host

    def keep_only(self, addresses: set[str]) -> None:
        """Retire the connections to all others."""
        for address in self._hosts.keys() - addresses:
            closing = asyncio.get_running_loop().create_task(
                self._hosts.pop(address).retire(patience=PATIENCE), name=f"retire the connection to {address}"
            )
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Closes every connection now."""
        for task in list(self._closing):
            task.cancel()
        hosts, self._hosts = list(self._hosts.values()), {}
        await asyncio.gather(*(host.close() for host in hosts))
        if self._closing:
            await asyncio.wait(set(self._closing))
