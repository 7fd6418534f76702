"""Assignment and redirect rules (versioning v0.2), as pure functions over `BuildIds`.

    changed_rules(data, request, now=…, has_recent_poller=…) -> BuildIds      what UpdateWorkerVersioningRules makes of it
    rules_response(data, kind) -> the rules in force, and the token that the next change has to name
    assigned_build(data, run_id) / redirected_build(data, build_id)

A new run is assigned the build of the first rule whose ramp takes it. From then on it follows its build, and the redirect
rules that lead from it. Rules are counted as they are shown, without the deleted ones.
Source: upstream's service/matching/version_rule_helpers.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec
from temporalio.api.taskqueue.v1 import (
    BuildIdAssignmentRule,
    CompatibleBuildIdRedirectRule,
    RampByPercentage,
    TimestampedBuildIdAssignmentRule,
    TimestampedCompatibleBuildIdRedirectRule,
)
from temporalio.api.workflowservice.v1 import (
    GetWorkerVersioningRulesResponse,
    UpdateWorkerVersioningRulesRequest,
    UpdateWorkerVersioningRulesResponse,
)

from common.contracts.build_ids import AssignmentRule, BuildIds, Moment, RedirectRule
from common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from common.protos import timestamp
from matching.ramps import ramp_threshold
from matching.version_sets import find_build, next_moment

ASSIGNMENT_RULES_LIMIT = 100
REDIRECT_RULES_LIMIT = 500
UPSTREAM_BUILDS_LIMIT = 50
"""From how many builds redirects may lead to one."""
DELETED_RULE_RETENTION = timedelta(days=14)
POLLER_WINDOW = timedelta(seconds=70)
"""Within it a worker of a build must have polled for the build to be committed."""
FULL = 100.0

Request = UpdateWorkerVersioningRulesRequest
Response = TypeVar("Response", GetWorkerVersioningRulesResponse, UpdateWorkerVersioningRulesResponse)
Rule = TypeVar("Rule", AssignmentRule, RedirectRule)


def active(rules: Iterable[Rule]) -> list[Rule]:
    return [rule for rule in rules if rule.deleted is None]


def conflict_token(moment: Moment) -> bytes:
    """The bytes that upstream's clock has on the wire: milliseconds, count, number of the cluster; zeros are left out."""
    return b"".join(
        bytes((field << 3,)) + _varint(value)
        for field, value in ((1, int(moment.at.timestamp() * 1000)), (2, moment.tick), (3, 1))
        if value
    )


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _go_bytes(value: bytes) -> str:
    return f"[{' '.join(str(byte) for byte in value)}]"


def rules_response(data: BuildIds, kind: type[Response]) -> Response:
    return kind(
        assignment_rules=[
            TimestampedBuildIdAssignmentRule(
                rule=BuildIdAssignmentRule(
                    target_build_id=rule.target, percentage_ramp=RampByPercentage(ramp_percentage=rule.ramp)
                ),
                create_time=timestamp(rule.created.at),
            )
            for rule in active(data.assignment_rules)
        ],
        compatible_redirect_rules=[
            TimestampedCompatibleBuildIdRedirectRule(
                rule=CompatibleBuildIdRedirectRule(source_build_id=rule.source, target_build_id=rule.target),
                create_time=timestamp(rule.created.at),
            )
            for rule in active(data.redirect_rules)
        ],
        conflict_token=conflict_token(data.moment),
    )


# changes


def changed_rules(data: BuildIds, request: Request, *, now: datetime, has_recent_poller: bool) -> BuildIds:
    """Raises FailedPrecondition, InvalidArgument, NotFound and AlreadyExists, as upstream."""
    present = conflict_token(data.moment)
    if request.conflict_token != present:
        raise FailedPrecondition(
            f"provided conflict token '{_go_bytes(request.conflict_token)}' does not match existing one '{_go_bytes(present)}'"
        )
    moment = next_moment(data.moment, now=now)
    operation = request.WhichOneof("operation")
    if operation == "commit_build_id":
        changed = _committed(data, request.commit_build_id, moment, has_recent_poller=has_recent_poller)
    elif operation is None:
        changed = data
    else:
        changed = _OPERATIONS[operation](data, getattr(request, operation), moment)
    return msgspec.structs.replace(
        changed,
        moment=moment,
        assignment_rules=_kept(changed.assignment_rules, now=now),
        redirect_rules=_kept(changed.redirect_rules, now=now),
    )


def _kept(rules: list[Rule], *, now: datetime) -> list[Rule]:
    return [rule for rule in rules if rule.deleted is None or now - rule.deleted.at < DELETED_RULE_RETENTION]


def _insert_assignment(data: BuildIds, request: Request.InsertBuildIdAssignmentRule, moment: Moment) -> BuildIds:
    if request.rule_index < 0:
        raise InvalidArgument("rule index cannot be negative")
    rule = _assignment_rule(data, request.rule, moment)
    rules = data.assignment_rules
    place = _place(rules, request.rule_index)
    place = len(rules) if place is None else place
    changed = msgspec.structs.replace(data, assignment_rules=[*rules[:place], rule, *rules[place:]])
    return _checked_assignments(changed, limit=ASSIGNMENT_RULES_LIMIT)


def _replace_assignment(data: BuildIds, request: Request.ReplaceBuildIdAssignmentRule, moment: Moment) -> BuildIds:
    rule = _assignment_rule(data, request.rule, moment)
    rules = data.assignment_rules
    place = _index(rules, request.rule_index)
    changed = [*rules[:place], rule, _deleted(rules[place], moment), *rules[place + 1 :]]
    return _with_assignments(data, changed, force=request.force)


def _delete_assignment(data: BuildIds, request: Request.DeleteBuildIdAssignmentRule, moment: Moment) -> BuildIds:
    rules = data.assignment_rules
    place = _index(rules, request.rule_index)
    changed = [*rules[:place], _deleted(rules[place], moment), *rules[place + 1 :]]
    return _with_assignments(data, changed, force=request.force)


def _committed(data: BuildIds, request: Request.CommitBuildId, moment: Moment, *, has_recent_poller: bool) -> BuildIds:
    """The build gets all new runs: a full rule for it at the end, no other full rule, no other rule for it."""
    target = request.target_build_id
    if not has_recent_poller and not request.force:
        raise FailedPrecondition(
            f"no versioned poller with build ID '{target}' seen within the last 1m10s, use force=true to commit anyways"
        )
    _check_no_member(data, target, "target")
    rules = [
        _deleted(rule, moment) if rule.deleted is None and (rule.target == target or rule.ramp == FULL) else rule
        for rule in data.assignment_rules
    ]
    rules.append(AssignmentRule(target=target, created=moment))
    return _checked_assignments(msgspec.structs.replace(data, assignment_rules=rules), limit=ASSIGNMENT_RULES_LIMIT)


def _assignment_rule(data: BuildIds, rule: BuildIdAssignmentRule, moment: Moment) -> AssignmentRule:
    ramp = rule.percentage_ramp.ramp_percentage if rule.HasField("percentage_ramp") else FULL
    if not 0 <= ramp <= FULL:
        raise InvalidArgument("ramp percentage must be in range [0, 100]")
    target = rule.target_build_id
    _check_no_member(data, target, "target")
    if ramp != FULL and any(redirect.source == target for redirect in active(data.redirect_rules)):
        raise FailedPrecondition(
            "update breaks requirement, this build ID cannot be the target of a partially-ramped assignment rule because it "
            "is the source of a redirect rule"
        )
    return AssignmentRule(target=target, ramp=ramp, created=moment)


def _check_no_member(data: BuildIds, build_id: str, role: str) -> None:
    if find_build(data.sets, build_id) is not None:
        raise FailedPrecondition(f"update breaks requirement, {role} build ID is already a member of a version set")


def _place(rules: Sequence[AssignmentRule], index: int) -> int | None:
    """Where the rule with this number among those in force is."""
    places = [place for place, rule in enumerate(rules) if rule.deleted is None]
    return places[index] if 0 <= index < len(places) else None


def _index(rules: Sequence[AssignmentRule], index: int) -> int:
    place = _place(rules, index)
    if place is None:
        raise InvalidArgument(
            f"rule index {index} is out of bounds for assignment rule list of length {len(active(rules))}"
        )
    return place


def _deleted(rule: Rule, moment: Moment) -> Rule:
    return msgspec.structs.replace(rule, deleted=moment)


def _with_assignments(data: BuildIds, rules: list[AssignmentRule], *, force: bool) -> BuildIds:
    # Upstream looks at deleted rules too when it asks whether there was a full one.
    had_full = any(rule.ramp == FULL for rule in data.assignment_rules)
    changed = msgspec.structs.replace(data, assignment_rules=rules)
    return _checked_assignments(changed, needs_full=had_full and not force)


def _checked_assignments(data: BuildIds, *, limit: int = 0, needs_full: bool = False) -> BuildIds:
    rules = active(data.assignment_rules)
    if limit and len(rules) > limit:
        raise FailedPrecondition(
            f"update exceeds number of assignment rules permitted in namespace ({len(rules)}/{limit})"
        )
    if needs_full and not any(rule.ramp == FULL for rule in rules):
        raise FailedPrecondition(
            "at least one fully-ramped assignment rule must exist (use force=true to bypass this requirement and set the "
            "unversioned queue as the default)"
        )
    return data


def _add_redirect(data: BuildIds, request: Request.AddCompatibleBuildIdRedirectRule, moment: Moment) -> BuildIds:
    rule = _redirect_rule(data, request.rule, moment)
    if any(other.target == rule.source and other.ramp != FULL for other in active(data.assignment_rules)):
        raise FailedPrecondition(
            "redirect rule source build ID cannot be the target of any partially-ramped assignment rule"
        )
    present = next((other for other in active(data.redirect_rules) if other.source == rule.source), None)
    if present is not None:
        raise AlreadyExists(f"source {rule.source} already redirects to target {present.target}")
    return _checked_redirects(data, [rule, *data.redirect_rules], limit=REDIRECT_RULES_LIMIT)


def _replace_redirect(
    data: BuildIds, request: Request.ReplaceCompatibleBuildIdRedirectRule, moment: Moment
) -> BuildIds:
    rule = _redirect_rule(data, request.rule, moment)
    return _checked_redirects(data, [rule, *_without_redirect(data, rule.source, moment)])


def _delete_redirect(data: BuildIds, request: Request.DeleteCompatibleBuildIdRedirectRule, moment: Moment) -> BuildIds:
    return msgspec.structs.replace(data, redirect_rules=_without_redirect(data, request.source_build_id, moment))


def _redirect_rule(data: BuildIds, rule: CompatibleBuildIdRedirectRule, moment: Moment) -> RedirectRule:
    if not rule.target_build_id:
        raise InvalidArgument("the unversioned build ID cannot be the target of a redirect rule")
    _check_no_member(data, rule.source_build_id, "source")
    _check_no_member(data, rule.target_build_id, "target")
    return RedirectRule(source=rule.source_build_id, target=rule.target_build_id, created=moment)


def _without_redirect(data: BuildIds, source: str, moment: Moment) -> list[RedirectRule]:
    rules = list(data.redirect_rules)
    for place, rule in enumerate(rules):
        if rule.deleted is None and rule.source == source:
            rules[place] = _deleted(rule, moment)
            return rules
    raise NotFound(f"no redirect rule found with source ID {source}")


def _checked_redirects(data: BuildIds, rules: list[RedirectRule], *, limit: int = 0) -> BuildIds:
    present = active(rules)
    if limit and len(present) > limit:
        raise FailedPrecondition(
            f"update exceeds number of redirect rules permitted in namespace ({len(present)}/{limit})"
        )
    if _is_cyclic(present):
        raise FailedPrecondition("update would break acyclic requirement")
    for rule in present:
        upstream = upstream_builds(rule.target, present)
        if len(upstream) > UPSTREAM_BUILDS_LIMIT:
            raise FailedPrecondition(
                f"update exceeds number of upstream build ids permitted in namespace ({len(upstream)}/{UPSTREAM_BUILDS_LIMIT})"
            )
    return msgspec.structs.replace(data, redirect_rules=rules)


def _is_cyclic(rules: Sequence[RedirectRule]) -> bool:
    """Each source has one rule in force, so every path is a chain."""
    leads_to = {rule.source: rule.target for rule in rules}
    done: set[str] = set()
    for start in leads_to:
        path: set[str] = set()
        build = start
        while build in leads_to and build not in done:
            if build in path:
                return True
            path.add(build)
            build = leads_to[build]
        done |= path
    return False


_OPERATIONS: dict[str, Callable[..., BuildIds]] = {
    "insert_assignment_rule": _insert_assignment,
    "replace_assignment_rule": _replace_assignment,
    "delete_assignment_rule": _delete_assignment,
    "add_compatible_redirect_rule": _add_redirect,
    "replace_compatible_redirect_rule": _replace_redirect,
    "delete_compatible_redirect_rule": _delete_redirect,
}


# what the rules say


def upstream_builds(build_id: str, rules: Sequence[RedirectRule]) -> set[str]:
    """The builds from which redirects lead to this one, itself not among them."""
    found: set[str] = set()
    looking = [build_id]
    while looking:
        target = looking.pop()
        for rule in rules:
            if rule.target == target and rule.source not in found and rule.source != build_id:
                found.add(rule.source)
                looking.append(rule.source)
    return found


def assigned_build(rules: Sequence[AssignmentRule], run_id: str) -> str:
    """Which build a new run gets, the same whenever it is asked; empty: workers without versioning."""
    threshold: float | None = None
    for rule in rules:
        if rule.deleted is not None:
            continue
        if rule.ramp != FULL:
            threshold = ramp_threshold(run_id) if threshold is None else threshold
            if rule.ramp <= threshold:
                continue
        return rule.target
    return ""


def default_build(rules: Sequence[AssignmentRule]) -> str:
    """The target of the first full rule; empty: workers without versioning."""
    return next((rule.target for rule in active(rules) if rule.ramp == FULL), "")


def redirected_build(rules: Sequence[RedirectRule], build_id: str) -> str:
    """Where the redirect rules lead from a build: itself when none does."""
    leads_to = {rule.source: rule.target for rule in rules if rule.deleted is None}
    for _ in range(len(leads_to) + 1):
        if build_id not in leads_to:
            break
        build_id = leads_to[build_id]
    return build_id
