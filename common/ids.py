"""Identifiers: their types, how they are drawn, and which shard an execution belongs to."""

from __future__ import annotations

import secrets
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import NewType
from uuid import UUID

from common.clock import EPOCH

ShardId = NewType("ShardId", int)
RunId = NewType("RunId", str)


def uuid7(now: datetime) -> str:
    """A UUID version 7 (RFC 9562) for `now`: 48 bits of milliseconds, then random bits; sorts by time of creation."""
    delta = now - EPOCH
    milliseconds = (delta.days * 86_400 + delta.seconds) * 1_000 + delta.microseconds // 1_000
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(UUID(int=value))


@lru_cache(maxsize=8_192)
def shard_for(*, namespace: str, workflow_id: str, shards: int) -> ShardId:
    """The shard, numbered from 1, that owns all runs of a workflow id.

    Stable across processes and releases: the first 8 bytes, big-endian, of BLAKE2b over namespace, NUL, workflow id.
    """
    digest = blake2b(f"{namespace}\0{workflow_id}".encode(), digest_size=8).digest()
    return ShardId(int.from_bytes(digest) % shards + 1)
