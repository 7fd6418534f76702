"""Versioning rules as data: what each operation makes of them, and what holds after any number of operations."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.taskqueue.v1 import BuildIdAssignmentRule, CompatibleBuildIdRedirectRule, RampByPercentage
from temporalio.api.workflowservice.v1 import GetWorkerVersioningRulesResponse
from temporalio.api.workflowservice.v1 import UpdateWorkerVersioningRulesRequest as Request

from common.contracts.build_ids import NEVER, BuildIds, Moment
from common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, TemporalError
from matching.ramps import ramp_threshold
from matching.version_sets import changed_sets
from matching.versioning_rules import (
    active,
    assigned_build,
    changed_rules,
    conflict_token,
    default_build,
    redirected_build,
    rules_response,
    upstream_builds,
)
from tests.matching.test_version_sets import new_set

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def rule(target: str, ramp: float | None = None) -> BuildIdAssignmentRule:
    percentage = None if ramp is None else RampByPercentage(ramp_percentage=ramp)
    return BuildIdAssignmentRule(target_build_id=target, percentage_ramp=percentage)


def insert(target: str, ramp: float | None = None, *, index: int = 0) -> Request:
    return Request(
        insert_assignment_rule=Request.InsertBuildIdAssignmentRule(rule_index=index, rule=rule(target, ramp))
    )


def replace(index: int, target: str, ramp: float | None = None, *, force: bool = False) -> Request:
    return Request(
        replace_assignment_rule=Request.ReplaceBuildIdAssignmentRule(
            rule_index=index, rule=rule(target, ramp), force=force
        )
    )


def delete(index: int, *, force: bool = False) -> Request:
    return Request(delete_assignment_rule=Request.DeleteBuildIdAssignmentRule(rule_index=index, force=force))


def redirect(source: str, target: str) -> Request:
    return Request(
        add_compatible_redirect_rule=Request.AddCompatibleBuildIdRedirectRule(
            rule=CompatibleBuildIdRedirectRule(source_build_id=source, target_build_id=target)
        )
    )


def redirect_instead(source: str, target: str) -> Request:
    return Request(
        replace_compatible_redirect_rule=Request.ReplaceCompatibleBuildIdRedirectRule(
            rule=CompatibleBuildIdRedirectRule(source_build_id=source, target_build_id=target)
        )
    )


def no_redirect(source: str) -> Request:
    return Request(delete_compatible_redirect_rule=Request.DeleteCompatibleBuildIdRedirectRule(source_build_id=source))


def commit(target: str, *, force: bool = False) -> Request:
    return Request(commit_build_id=Request.CommitBuildId(target_build_id=target, force=force))


def after(*requests: Request, data: BuildIds | None = None, now: datetime = NOW, polled: bool = False) -> BuildIds:
    data = data or BuildIds()
    for request in requests:
        request.conflict_token = conflict_token(data.moment)
        data = changed_rules(data, request, now=now, has_recent_poller=polled)
    return data


def assignments(data: BuildIds) -> list[tuple[str, float]]:
    return [(rule.target, rule.ramp) for rule in active(data.assignment_rules)]


def test_assignment_rules_are_counted_without_the_deleted_ones() -> None:
    data = after(
        insert("1"), insert("2", 25), insert("3", 50, index=9), delete(1, force=True), insert("4", 10, index=1)
    )
    assert assignments(data) == [("2", 25), ("4", 10), ("3", 50)]
    assert assignments(after(replace(1, "5", 75, force=True), data=data)) == [("2", 25), ("5", 75), ("3", 50)]


def test_a_committed_build_is_the_only_full_rule() -> None:
    data = after(insert("1"), insert("2", 25), insert("3", 50), commit("2"), polled=True)
    assert assignments(data) == [("3", 50), ("2", 100)]
    assert default_build(data.assignment_rules) == "2"


def test_redirects_are_followed_to_the_end() -> None:
    data = after(redirect("1", "2"), redirect("2", "3"), redirect("", "1"))
    assert redirected_build(data.redirect_rules, "1") == "3"
    assert redirected_build(data.redirect_rules, "") == "3"
    assert redirected_build(data.redirect_rules, "9") == "9"
    assert upstream_builds("3", active(data.redirect_rules)) == {"", "1", "2"}
    data = after(redirect_instead("2", "4"), no_redirect("1"), data=data)
    assert redirected_build(data.redirect_rules, "1") == "1"
    assert redirected_build(data.redirect_rules, "2") == "4"


IN_FORCE = after(insert("1"), insert("part", 25), redirect("a", "b"))
REFUSED = [
    (insert("2", index=-1), InvalidArgument, "rule index cannot be negative"),
    (insert("2", 101), InvalidArgument, "ramp percentage must be in range [0, 100]"),
    (replace(9, "2"), InvalidArgument, "rule index 9 is out of bounds for assignment rule list of length 2"),
    (delete(9), InvalidArgument, "rule index 9 is out of bounds for assignment rule list of length 2"),
    (
        delete(1),
        FailedPrecondition,
        "at least one fully-ramped assignment rule must exist (use force=true to bypass this requirement and set the "
        "unversioned queue as the default)",
    ),
    (
        insert("a", 5),
        FailedPrecondition,
        "update breaks requirement, this build ID cannot be the target of a partially-ramped assignment rule because it is "
        "the source of a redirect rule",
    ),
    (
        redirect("part", "z"),
        FailedPrecondition,
        "redirect rule source build ID cannot be the target of any partially-ramped assignment rule",
    ),
    (redirect("b", "a"), FailedPrecondition, "update would break acyclic requirement"),
    (redirect("a", "c"), AlreadyExists, "source a already redirects to target b"),
    (redirect("x", ""), InvalidArgument, "the unversioned build ID cannot be the target of a redirect rule"),
    (redirect_instead("x", "y"), NotFound, "no redirect rule found with source ID x"),
    (no_redirect("x"), NotFound, "no redirect rule found with source ID x"),
    (
        commit("2"),
        FailedPrecondition,
        "no versioned poller with build ID '2' seen within the last 1m10s, use force=true to commit anyways",
    ),
]


@pytest.mark.parametrize(("request_", "kind", "message"), REFUSED)
def test_refused(request_: Request, kind: type[TemporalError], message: str) -> None:
    with pytest.raises(kind) as refused:
        after(request_, data=IN_FORCE)
    assert refused.value.message == message


def test_members_of_version_sets_are_in_no_rule() -> None:
    data = changed_sets(BuildIds(), new_set("s"), now=NOW)
    message = "update breaks requirement, {} build ID is already a member of a version set"
    for request, role in (
        (insert("s"), "target"),
        (commit("s", force=True), "target"),
        (redirect("s", "x"), "source"),
        (redirect("x", "s"), "target"),
    ):
        with pytest.raises(FailedPrecondition) as refused:
            after(request, data=data)
        assert refused.value.message == message.format(role)


def test_the_conflict_token_is_upstreams() -> None:
    assert conflict_token(NEVER) == b"\x18\x01"
    assert conflict_token(Moment(at=datetime(1970, 1, 1, 0, 0, 0, 300_000, tzinfo=UTC), tick=2)) == (
        b"\x08\xac\x02\x10\x02\x18\x01"
    )
    request = insert("1")
    request.conflict_token = b"\x01"
    with pytest.raises(FailedPrecondition) as refused:
        changed_rules(BuildIds(), request, now=NOW, has_recent_poller=False)
    assert refused.value.message == "provided conflict token '[1]' does not match existing one '[24 1]'"


def test_rules_as_they_are_shown() -> None:
    data = after(insert("1"), redirect("1", "2"))
    shown = rules_response(data, GetWorkerVersioningRulesResponse)
    assert [rule.rule.percentage_ramp.ramp_percentage for rule in shown.assignment_rules] == [100]
    assert shown.assignment_rules[0].create_time.ToDatetime(tzinfo=UTC) == NOW
    assert [rule.rule.target_build_id for rule in shown.compatible_redirect_rules] == ["2"]
    assert shown.conflict_token == conflict_token(data.moment)


def test_deleted_rules_are_kept_for_two_weeks() -> None:
    data = after(insert("1"), insert("2", 5), delete(0))
    later = after(insert("3", 5), data=data, now=NOW + timedelta(days=13))
    assert len(later.assignment_rules) == 3
    later = after(insert("4", 5), data=later, now=NOW + timedelta(days=14))
    assert len(later.assignment_rules) == 3


def test_a_ramp_takes_its_share_and_the_same_runs_again() -> None:
    data = after(insert("old"), insert("new", 30))
    runs = [f"run-{number}" for number in range(2_000)]
    taken = [run for run in runs if assigned_build(data.assignment_rules, run) == "new"]
    assert 500 < len(taken) < 700
    more = after(replace(0, "new", 60), data=data)
    assert set(taken) <= {run for run in runs if assigned_build(more.assignment_rules, run) == "new"}


# Run ids, and where upstream's FarmHash puts them between 0 and 100.
@pytest.mark.parametrize(
    "run_id, threshold",
    [
        ("0193a7c4-5a3e-7c11-8b52-0d7f1e2a9c44", 27.6619583368301),
        ("019400f0-0000-7000-8000-000000000000", 69.5143997203559),
        ("5f0c3b0e-9a51-4a8e-b0ab-3c5f4e6d7a89", 21.2915961863473),
    ],
)
def test_a_run_is_ramped_as_upstream_does_it(run_id: str, threshold: float) -> None:
    assert ramp_threshold(run_id) == pytest.approx(threshold)
    before, after_it = (after(insert("old"), insert("new", threshold + by)) for by in (-0.001, 0.001))
    assert assigned_build(before.assignment_rules, run_id) == "old"
    assert assigned_build(after_it.assignment_rules, run_id) == "new"


BUILDS = st.sampled_from(["", "a", "b", "c", "d"])
OPERATIONS = st.one_of(
    st.builds(insert, BUILDS, st.sampled_from([None, 0, 20, 100]), index=st.integers(-1, 3)),
    st.builds(replace, st.integers(0, 3), BUILDS, st.sampled_from([None, 50])),
    st.builds(delete, st.integers(0, 3), force=st.booleans()),
    st.builds(redirect, BUILDS, BUILDS),
    st.builds(redirect_instead, BUILDS, BUILDS),
    st.builds(no_redirect, BUILDS),
    st.builds(commit, BUILDS, force=st.booleans()),
)


@given(st.lists(OPERATIONS, max_size=30))
def test_what_always_holds(operations: list[Request]) -> None:
    data = BuildIds()
    for operation in operations:
        before = data
        try:
            data = after(operation, data=before)
        except TemporalError:
            continue
        redirects = active(data.redirect_rules)
        sources = [rule.source for rule in redirects]
        assert len(sources) == len(set(sources))
        for build in "abcd":
            target = redirected_build(redirects, build)
            assert target not in sources
            assert target == build or build in upstream_builds(target, redirects)
        partial = {rule.target for rule in active(data.assignment_rules) if rule.ramp != 100}
        if operation.WhichOneof("operation") != "replace_compatible_redirect_rule":
            assert not partial & (set(sources) - {rule.source for rule in active(before.redirect_rules)})
        assert data.moment > before.moment
