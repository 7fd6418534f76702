"""How gRPC is to run in this process. It reads its environment once, when it is first imported, so this comes before."""

import os

EXPERIMENTS = "-event_engine_listener"
"""gRPC's newer listener hands each call from thread to thread on its way in and out; with the one before it the thread
that waits for Python also reads and writes the sockets. Measured with 31 calls for a workflow: a tenth of what gRPC costs,
or 7 to 13 % of the whole server's CPU time. A value that the user has set is left alone."""


def prepare() -> None:
    os.environ.setdefault("GRPC_EXPERIMENTS", EXPERIMENTS)
