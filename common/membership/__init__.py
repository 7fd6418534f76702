"""Who plays which role, and which host a shard or a task queue belongs to.

`Membership` knows the members of each role and tells subscribers when they change; `Ring` places keys on them, the same way
in every process that knows the same members. Members come from settings or, live, from the heartbeat table
`cluster_members`. Membership only directs traffic: a wrong picture makes calls take a detour and hosts take leases from
each other, and the fences in the database keep the data right all the same.
"""

from __future__ import annotations

from common.membership.live import LiveMembership
from common.membership.members import Member, Membership
from common.membership.ring import Ring

__all__ = ["LiveMembership", "Member", "Membership", "Ring"]
