"""Sets of compatible builds (versioning v0.1), as pure functions over `BuildIds`.

    changed_sets(data, request, now=…, limits=…) -> BuildIds      what UpdateWorkerBuildIdCompatibility makes of it
    find_build(data, build_id) -> (set, place in it) | None
    set_for_poll / set_for_task                                   the set whose tasks a worker gets, and a task's set

The last set is the queue's default, which gets new workflows; the last build of a set gets all of that set's tasks. A build
is in one set at most. Source: upstream's service/matching/version_sets.go and version_sets_merge.go.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
from temporalio.api.workflowservice.v1 import UpdateWorkerBuildIdCompatibilityRequest

from common.contracts.build_ids import Build, BuildIds, Moment, VersionSet
from common.errors import FailedPrecondition, InvalidArgument, NewerBuildExists, NotFound

SETS_LIMIT = 10
BUILDS_LIMIT = 100
"""Of one family, over all its sets. Source: upstream's limit.versionCompatibleSetLimitPerQueue and versionBuildIdLimitPerQueue."""

Sets = list[VersionSet]


def next_moment(last: Moment, *, now: datetime) -> Moment:
    """After `last`, whatever the clock says."""
    at = now.astimezone(UTC)
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    return Moment(at=at) if at > last.at else Moment(at=last.at, tick=last.tick + 1)


def set_id(build_id: str) -> str:
    """The id of the set that begins with this build."""
    return base64.urlsafe_b64encode(hashlib.sha256(build_id.encode()).digest()).decode()[:20]


def find_build(sets: Sequence[VersionSet], build_id: str) -> tuple[int, int] | None:
    for number, version_set in enumerate(sets):
        for place, build in enumerate(version_set.builds):
            if build.id == build_id:
                return number, place
    return None


def set_for_poll(sets: Sequence[VersionSet], build_id: str) -> VersionSet | None:
    """The set whose tasks a worker of this build may have; None when it is in none. Raises NewerBuildExists."""
    found = find_build(sets, build_id)
    if found is None:
        return None
    version_set = sets[found[0]]
    if version_set.default != build_id:
        raise NewerBuildExists(default_build_id=version_set.default)
    return version_set


def set_for_task(sets: Sequence[VersionSet], build_id: str) -> VersionSet | None:
    """The set of a task of a run on that build, the default set for a task that is still to be assigned (empty build)."""
    if not build_id:
        return sets[-1] if sets else None
    found = find_build(sets, build_id)
    return None if found is None else sets[found[0]]


def changed_sets(data: BuildIds, request: UpdateWorkerBuildIdCompatibilityRequest, *, now: datetime) -> BuildIds:
    """Raises InvalidArgument, NotFound and FailedPrecondition, as upstream. A repeated request changes nothing but the
    moment."""
    moment = next_moment(data.moment, now=now)
    operation = request.WhichOneof("operation")
    if operation == "add_new_build_id_in_new_default_set":
        sets = _with_new_default_set(data.sets, request.add_new_build_id_in_new_default_set, moment)
    elif operation == "add_new_compatible_build_id":
        sets = _with_compatible(data.sets, request.add_new_compatible_build_id, moment)
    elif operation == "promote_set_by_build_id":
        number, _ = _targeted(data.sets, request.promote_set_by_build_id)
        sets = data.sets if number == len(data.sets) - 1 else _promoted(data.sets, number, moment)
    elif operation == "promote_build_id_within_set":
        sets = _with_promoted_build(data.sets, request.promote_build_id_within_set, moment)
    else:
        sets = _merged(data.sets, request.merge_sets, moment)
    _check_limits(sets)
    return msgspec.structs.replace(data, moment=moment, sets=sets)


def _check_limits(sets: Sets) -> None:
    if len(sets) > SETS_LIMIT:
        raise FailedPrecondition(
            "update would exceed number of compatible version sets permitted in namespace dynamic config "
            f"({len(sets)}/{SETS_LIMIT})"
        )
    builds = sum(len(version_set.builds) for version_set in sets)
    if builds > BUILDS_LIMIT:
        raise FailedPrecondition(
            f"update would exceed number of build IDs permitted in namespace dynamic config ({builds}/{BUILDS_LIMIT})"
        )


def _targeted(sets: Sets, build_id: str, *, what: str = "targeted version") -> tuple[int, int]:
    found = find_build(sets, build_id)
    if found is None:
        raise NotFound(f"{what} {build_id} not found")
    return found


def _with_new_default_set(sets: Sets, build_id: str, moment: Moment) -> Sets:
    found = find_build(sets, build_id)
    if found is None:
        return [
            *sets,
            VersionSet(ids=[set_id(build_id)], builds=[Build(id=build_id, default_since=moment)], default_since=moment),
        ]
    if found[0] == len(sets) - 1 and len(sets[-1].builds) == 1:
        return sets
    raise InvalidArgument(f"version {build_id} already exists")


def _with_compatible(
    sets: Sets, request: UpdateWorkerBuildIdCompatibilityRequest.AddNewCompatibleVersion, moment: Moment
) -> Sets:
    build_id, existing = request.new_build_id, request.existing_compatible_build_id
    number, _ = _targeted(sets, existing, what="targeted compatible_version")
    found = find_build(sets, build_id)
    if found is not None:
        _check_repeated(sets, found, number, request)
        return sets
    version_set = sets[number]
    builds = [*version_set.builds, Build(id=build_id, default_since=moment)]
    sets = [*sets[:number], msgspec.structs.replace(version_set, builds=builds), *sets[number + 1 :]]
    return _promoted(sets, number, moment) if request.make_set_default else sets


def _check_repeated(
    sets: Sets,
    found: tuple[int, int],
    number: int,
    request: UpdateWorkerBuildIdCompatibilityRequest.AddNewCompatibleVersion,
) -> None:
    """A build that is there already may be added again only if nothing would change by that."""
    build_id = request.new_build_id
    if found[0] != number:
        raise InvalidArgument(
            f"{build_id} requested to be made compatible with {request.existing_compatible_build_id} but both versions "
            "exist and are incompatible"
        )
    if request.make_set_default and number != len(sets) - 1:
        raise InvalidArgument(f"version {build_id} already exists and is not default for queue")
    if found[1] != len(sets[number].builds) - 1:
        raise InvalidArgument(f"version {build_id} already exists and is not default in set")


def _promoted(sets: Sets, number: int, moment: Moment) -> Sets:
    version_set = msgspec.structs.replace(sets[number], default_since=moment)
    return [*sets[:number], *sets[number + 1 :], version_set]


def _with_promoted_build(sets: Sets, build_id: str, moment: Moment) -> Sets:
    number, place = _targeted(sets, build_id)
    version_set = sets[number]
    if place == len(version_set.builds) - 1:
        return sets
    build = msgspec.structs.replace(version_set.builds[place], default_since=moment)
    builds = [*version_set.builds[:place], *version_set.builds[place + 1 :], build]
    return [*sets[:number], msgspec.structs.replace(version_set, builds=builds), *sets[number + 1 :]]


def _merged(sets: Sets, request: UpdateWorkerBuildIdCompatibilityRequest.MergeSets, moment: Moment) -> Sets:
    """The primary set takes the secondary's builds, below its own default. It is the queue's default if either was."""
    first, _ = _targeted(sets, request.primary_set_build_id, what="targeted primary version")
    second, _ = _targeted(sets, request.secondary_set_build_id, what="targeted secondary version")
    if first == second:
        return sets
    primary, secondary = sets[first], sets[second]
    default = msgspec.structs.replace(primary.builds[-1], default_since=moment)
    others = sorted([*primary.builds[:-1], *secondary.builds], key=lambda build: build.default_since)
    merged = VersionSet(
        ids=sorted({*primary.ids, *secondary.ids}),
        builds=[*others, default],
        default_since=max(primary.default_since, secondary.default_since),
    )
    rest = [version_set for version_set in sets if version_set is not primary and version_set is not secondary]
    return sorted([*rest, merged], key=lambda version_set: version_set.default_since)
