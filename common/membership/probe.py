"""Whether anybody listens at an address: a killed process is found at once, long before its heartbeat is missed."""

from __future__ import annotations

import asyncio

PROBE_WITHIN_S = 1.0


async def refuses(address: str) -> bool:
    """True only when the machine there says that nobody listens. A host that is slow or out of reach proves nothing."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(PROBE_WITHIN_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except ConnectionRefusedError:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False
