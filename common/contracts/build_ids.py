"""What the older build-id versioning of a task queue family is made of: sets of compatible builds (v0.1), assignment and
redirect rules (v0.2). Matching stores it as part of the family's user data; the frontend works reachability out of it.

Deprecated upstream in favour of worker deployments, and answered by it all the same.
"""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec import field

from common.records import Record


class Moment(Record, kw_only=True, order=True):
    """When something changed, in an order of its own: later changes have later moments even if the clock stands still or goes
    back. Source: upstream's hybrid logical clock, of one cluster."""

    at: datetime
    """Whole milliseconds."""
    tick: int = 0
    """Counts the changes that have the same time."""


NEVER = Moment(at=datetime(1970, 1, 1, tzinfo=UTC))


class Build(Record, kw_only=True):
    """A build in a set."""

    id: str
    default_since: Moment
    """When it became its set's default, whether or not it still is."""


class VersionSet(Record, kw_only=True):
    """Builds that can do each other's work; the last one is the set's default, the only one that gets tasks."""

    ids: list[str]
    """The first names the set's physical queue; the others are those of sets that were merged into it."""
    builds: list[Build]
    default_since: Moment

    @property
    def default(self) -> str:
        return self.builds[-1].id


class AssignmentRule(Record, kw_only=True):
    target: str
    """A build id; empty for workers without versioning."""
    ramp: float = 100.0
    """The percentage of new runs that the rule takes; the others go on to the next rule."""
    created: Moment
    deleted: Moment | None = None


class RedirectRule(Record, kw_only=True):
    source: str
    target: str
    created: Moment
    deleted: Moment | None = None


class BuildIds(Record, kw_only=True):
    """The whole of it for one family. Deleted rules stay for a while, since reachability looks at them."""

    moment: Moment = field(default_factory=lambda: NEVER)
    """Of the last change; the conflict token is made of it."""
    sets: list[VersionSet] = []
    """The last one is the queue's default set."""
    assignment_rules: list[AssignmentRule] = []
    redirect_rules: list[RedirectRule] = []
