"""Free TCP ports on the loopback address."""

import random
import socket

# Below the range from which systems take the ports of outgoing connections: there, a port that was free when it was chosen
# may be some connection's own by the time a server is to listen on it.
_FIRST, _LAST = 20_000, 32_000


def free_port() -> int:
    """A port that nobody listens on at the moment; the caller takes it soon, or another may."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """`count` different ones: all are held before any is let go."""
    held: list[socket.socket] = []
    try:
        while len(held) < count:
            try:
                held.append(socket.create_server(("127.0.0.1", random.randint(_FIRST, _LAST))))
            except OSError:
                continue  # somebody has that one
        return [int(listener.getsockname()[1]) for listener in held]
    finally:
        for listener in held:
            listener.close()
