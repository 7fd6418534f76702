from collections.abc import AsyncIterator

import pytest

from .fakes import World


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Arriving tasks are stored at once when no poller waits."""
    made = World()
    yield made
    await made.close()
