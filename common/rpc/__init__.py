"""Typed RPC between the roles: a client contract of `common.contracts` over gRPC, for any contract and without stubs.

A contract is a Protocol of coroutines. `Contract` reads its signatures once; `RpcServer` serves an object that implements
it; `RemoteHost.client` gives an object that implements it by calling that server. What travels is MessagePack: each
argument under its name, API messages as their own bytes. Errors of `common.errors` arrive as what they were, class and
fields; cancelling the await cancels the call; the caller's deadline and client name go along.
"""

from __future__ import annotations

from common.rpc.channels import Channels, RemoteHost
from common.rpc.contract import Contract
from common.rpc.errors import HostUnreachable, RemoteFault
from common.rpc.server import RpcServer
from common.rpc.services import HISTORY, HISTORY_INSPECT, MATCHING, MATCHING_INSPECT

__all__ = [
    "HISTORY",
    "HISTORY_INSPECT",
    "MATCHING",
    "MATCHING_INSPECT",
    "Channels",
    "Contract",
    "HostUnreachable",
    "RemoteFault",
    "RemoteHost",
    "RpcServer",
]
