"""Free TCP ports on the loopback address."""

import random
import socket

# Below the range from which systems take the ports of outgoing connections: there, a port that was free when it was chosen
# may be some connection's own by the time a server is to listen on it.
_FIRST, _LAST = 20_000, 32_000
_given: set[int] = set()
"""By this process, so that servers which are made first and started later do not get the same one."""


def free_port() -> int:
    """A port that nobody listens on at the moment; the caller takes it soon, or another may."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """`count` different ones: all are held before any is let go."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            port = random.randint(_FIRST, _LAST)
            if port in _given:
                continue
            try:
                held.append(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue  # somebody has that one
            _given.add(port)
        return [int(listener.getsockname()[1]) for listener in held]
    finally:
        for listener in held:
            listener.close()
