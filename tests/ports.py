"""Free TCP ports on the loopback address."""

import socket


def free_port() -> int:
    """A port that nobody listens on at the moment; the caller takes it soon, or another may."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """`count` different ones: all are held before any is let go."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(listener.getsockname()[1]) for listener in held]
    finally:
        for listener in held:
            listener.close()
