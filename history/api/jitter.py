"""Spreading what is started at once."""

from __future__ import annotations

import random
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from common.protos import ZERO, from_duration


def draw_jitter(most: Duration) -> timedelta:
    """A random time up to `most`, from zero."""
    limit = from_duration(most)
    return limit * random.random() if limit > ZERO else ZERO  # noqa: S311 - nobody's secret
