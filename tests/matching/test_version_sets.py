"""Version sets as data: what each operation makes of them, and what holds after any number of operations."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.workflowservice.v1 import UpdateWorkerBuildIdCompatibilityRequest as Request

from common.contracts.build_ids import NEVER, BuildIds
from common.errors import FailedPrecondition, InvalidArgument, NewerBuildExists, NotFound, TemporalError
from matching.version_sets import BUILDS_LIMIT, SETS_LIMIT, changed_sets, find_build, next_moment, set_for_poll, set_id

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def new_set(build_id: str) -> Request:
    return Request(add_new_build_id_in_new_default_set=build_id)


def compatible(build_id: str, existing: str, *, default: bool = False) -> Request:
    return Request(
        add_new_compatible_build_id=Request.AddNewCompatibleVersion(
            new_build_id=build_id, existing_compatible_build_id=existing, make_set_default=default
        )
    )


def merge(primary: str, secondary: str) -> Request:
    return Request(merge_sets=Request.MergeSets(primary_set_build_id=primary, secondary_set_build_id=secondary))


def after(*requests: Request, data: BuildIds | None = None) -> BuildIds:
    data = data or BuildIds()
    for request in requests:
        data = changed_sets(data, request, now=NOW)
    return data


def builds(data: BuildIds) -> list[list[str]]:
    return [[build.id for build in version_set.builds] for version_set in data.sets]


def test_a_new_set_is_the_default_and_a_new_build_is_its_sets_default() -> None:
    data = after(new_set("1.0"), new_set("2.0"), compatible("1.1", "1.0"))
    assert builds(data) == [["1.0", "1.1"], ["2.0"]]
    assert [version_set.ids for version_set in data.sets] == [[set_id("1.0")], [set_id("2.0")]]
    assert builds(after(compatible("1.2", "1.0", default=True), data=data)) == [["2.0"], ["1.0", "1.1", "1.2"]]


def test_promotions() -> None:
    data = after(new_set("1.0"), new_set("2.0"), compatible("1.1", "1.0"))
    assert builds(after(Request(promote_set_by_build_id="1.0"), data=data)) == [["2.0"], ["1.0", "1.1"]]
    assert builds(after(Request(promote_build_id_within_set="1.0"), data=data)) == [["1.1", "1.0"], ["2.0"]]


def test_a_merged_set_keeps_the_primarys_default_and_both_ids() -> None:
    data = after(new_set("1"), new_set("2"), new_set("3"), merge("1", "2"))
    assert builds(data) == [["2", "1"], ["3"]]
    assert data.sets[0].ids == sorted([set_id("1"), set_id("2")])
    assert builds(after(merge("1", "3"), data=data))[-1][-1] == "1"


@pytest.mark.parametrize(
    ("request_", "kind", "message"),
    [
        (new_set("1.0"), InvalidArgument, "version 1.0 already exists"),
        (compatible("x", "9"), NotFound, "targeted compatible_version 9 not found"),
        (compatible("1.0", "1.1"), InvalidArgument, "version 1.0 already exists and is not default in set"),
        (
            compatible("1.1", "1.0", default=True),
            InvalidArgument,
            "version 1.1 already exists and is not default for queue",
        ),
        (
            compatible("2.0", "1.0"),
            InvalidArgument,
            "2.0 requested to be made compatible with 1.0 but both versions exist and are incompatible",
        ),
        (Request(promote_set_by_build_id="9"), NotFound, "targeted version 9 not found"),
        (Request(promote_build_id_within_set="9"), NotFound, "targeted version 9 not found"),
        (merge("9", "1.0"), NotFound, "targeted primary version 9 not found"),
        (merge("1.0", "9"), NotFound, "targeted secondary version 9 not found"),
    ],
)
def test_refused(request_: Request, kind: type[TemporalError], message: str) -> None:
    data = after(new_set("1.0"), new_set("2.0"), compatible("1.1", "1.0"))
    with pytest.raises(kind) as refused:
        after(request_, data=data)
    assert refused.value.message == message


def test_what_is_so_already_is_no_error() -> None:
    data = after(new_set("1.0"), compatible("1.1", "1.0"), new_set("2.0"))
    for request in (
        new_set("2.0"),
        compatible("1.1", "1.0"),
        Request(promote_set_by_build_id="2.0"),
        Request(promote_build_id_within_set="1.1"),
        merge("1.0", "1.1"),
    ):
        assert after(request, data=data).sets == data.sets


def test_limits() -> None:
    data = after(*(new_set(str(number)) for number in range(SETS_LIMIT)))
    with pytest.raises(FailedPrecondition, match=r"compatible version sets permitted .* \(11/10\)"):
        after(new_set("more"), data=data)
    data = after(*(compatible(f"b{number}", "0") for number in range(BUILDS_LIMIT - SETS_LIMIT)), data=data)
    with pytest.raises(FailedPrecondition, match=r"build IDs permitted .* \(101/100\)"):
        after(compatible("more", "0"), data=data)


def test_moments_go_forward_whatever_the_clock_does() -> None:
    first = next_moment(NEVER, now=NOW)
    second = next_moment(first, now=NOW)
    third = next_moment(second, now=datetime(2020, 1, 1, tzinfo=UTC))
    assert NEVER < first < second < third
    assert first.at == NOW


IDS = st.sampled_from(["a", "b", "c", "d", "e"])
OPERATIONS = st.one_of(
    IDS.map(new_set),
    st.builds(compatible, IDS, IDS, default=st.booleans()),
    IDS.map(lambda build_id: Request(promote_set_by_build_id=build_id)),
    IDS.map(lambda build_id: Request(promote_build_id_within_set=build_id)),
    st.builds(merge, IDS, IDS),
)


@given(st.lists(OPERATIONS, max_size=25))
def test_each_build_is_in_one_set_and_the_defaults_are_the_latest(operations: list[Request]) -> None:
    data = BuildIds()
    known: set[str] = set()
    for operation in operations:
        before = data
        try:
            data = changed_sets(before, operation, now=NOW)
        except TemporalError:
            continue
        assert data.moment > before.moment
        listed = [build.id for version_set in data.sets for build in version_set.builds]
        assert len(listed) == len(set(listed))
        assert known <= set(listed)
        known = set(listed)
        ids = [set_id_ for version_set in data.sets for set_id_ in version_set.ids]
        assert len(ids) == len(set(ids))
        for version_set in data.sets:
            since = [build.default_since for build in version_set.builds]
            assert since == sorted(since)
        since = [version_set.default_since for version_set in data.sets]
        assert since == sorted(since)
        for build_id in listed:
            _check_poll(data, build_id)


def _check_poll(data: BuildIds, build_id: str) -> None:
    found = find_build(data.sets, build_id)
    assert found is not None
    default = data.sets[found[0]].default
    if default == build_id:
        assert set_for_poll(data.sets, build_id) is data.sets[found[0]]
    else:
        with pytest.raises(NewerBuildExists) as refused:
            set_for_poll(data.sets, build_id)
        assert refused.value.message == f'Task queue has a newer compatible build: "{default}"'
