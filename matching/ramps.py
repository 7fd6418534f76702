"""Which share of the ids a ramp takes."""

from __future__ import annotations

import random

from common.farmhash import fingerprint32


def ramp_threshold(id_: str) -> float:
    """0 ≤ threshold < 100, always the same of an id; without one, a random one. A workflow id is asked for a ramp of a
    deployment, a run id for one of an assignment rule. Source: upstream's calcRampThreshold."""
    if not id_:
        return random.random() * 100  # noqa: S311  no secret
    return 100 * (fingerprint32(id_.encode()) / 2**32)
