"""The address under test and a client for it."""

import os
from collections.abc import AsyncIterator

import grpc
import pytest

from .harness import Server

ADDRESS = os.environ.get("TINYTEMPORAL_BEHAVIOURS_ADDRESS", "")

# Decided at import, since a fixture that is asked for by name at run time cannot be parametrised over the databases.
if ADDRESS:

    @pytest.fixture(scope="session")
    def frontend_address() -> str:
        """The server that the environment names."""
        return ADDRESS

else:

    @pytest.fixture(scope="session")
    def frontend_address(live_server_address: str) -> str:
        """A live server of this project, once for each database."""
        return live_server_address


@pytest.fixture(scope="session")
def reference_server() -> bool:
    """Whether the official server is asked: for the few answers where ours differ on purpose."""
    return bool(ADDRESS) and os.environ.get("TINYTEMPORAL_BEHAVIOURS_REFERENCE", "1") == "1"


@pytest.fixture
async def server(frontend_address: str) -> AsyncIterator[Server]:
    async with grpc.aio.insecure_channel(frontend_address) as channel:
        yield Server(channel)
