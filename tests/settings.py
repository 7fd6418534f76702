"""The project's settings for the test session, cut off from a developer's `.env` and database.

Tests that need a database of their own ask for the fixture `database_url`; what pytest-django makes is in memory.
"""

import os

os.environ["ENV_FILE"] = os.devnull
os.environ["DATABASE_URL"] = "sqlite://:memory:"
os.environ["SECRET_KEY"] = "only-for-tests"
# Tests start processes while gRPC's threads are at work; its own doings at a fork can break the child before it is a program.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

from tinytemporal_site.settings import *  # noqa: F403  the environment is laid first
