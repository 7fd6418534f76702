"""What the table of schedules promises, on each database: changes by compare-and-set, what is due, lists and counts."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from temporalio.api.common.v1 import Payload, SearchAttributes
from temporalio.api.schedule.v1 import IntervalSpec, Schedule, ScheduleSpec
from temporalio.api.workflowservice.v1 import CreateScheduleRequest

from common.contracts.schedules import ScheduleRecord
from common.database import Database
from common.errors import InvalidArgument, NotFound, PersistenceError
from common.protos import duration
from tests.contract.conftest import Tamper
from tests.contract.samples import NOW
from worker.schedules.changes import made
from worker.schedules.store import ScheduleStore
from worker.schedules.store_lists import ScheduleLists

CUSTOM = {"Colour": "Keyword", "Tags": "KeywordList", "Size": "Int", "Words": "Text"}
HOUR = timedelta(hours=1)


@pytest.fixture
def store(database: Database) -> ScheduleStore:
    return ScheduleStore(database=database)


@pytest.fixture
def lists(database: Database) -> ScheduleLists:
    return ScheduleLists(database=database)


def schedule(schedule_id: str, *, minute: int = 0, paused: bool = False, namespace: str = "default") -> ScheduleRecord:
    wanted = Schedule(spec=ScheduleSpec(interval=[IntervalSpec(interval=duration(HOUR))]))
    wanted.state.paused = paused
    colour = "red" if minute % 2 else "blue"
    attributes = {
        "Colour": typed(colour, "Keyword"),
        "Tags": typed([colour, f"t{minute}"], "KeywordList"),
        "Size": typed(minute, "Int"),
        "Words": typed(f"a {colour} house", "Text"),
    }
    request = CreateScheduleRequest(
        namespace=namespace,
        schedule_id=schedule_id,
        schedule=wanted,
        request_id=f"request for {schedule_id}",
        search_attributes=SearchAttributes(indexed_fields=attributes),
    )
    return made(request, namespace_id="id", now=NOW + timedelta(minutes=minute))


def typed(value: object, type_name: str) -> Payload:
    metadata = {"encoding": b"json/plain", "type": type_name.encode()}
    return Payload(metadata=metadata, data=msgspec.json.encode(value))


async def test_a_schedule_is_kept_as_it_is(store: ScheduleStore) -> None:
    wanted = schedule("s")
    assert await store.insert(wanted)
    assert await store.find(namespace="default", schedule_id="s") == wanted
    assert await store.find(namespace="other", schedule_id="s") is None
    assert not await store.insert(schedule("s"))
    assert await store.insert(schedule("s", namespace="other"))


async def test_changes_do_not_overwrite_each_other(store: ScheduleStore) -> None:
    await store.insert(schedule("s"))

    def count(record: ScheduleRecord) -> None:
        record.action_count += 1

    await asyncio.gather(*(store.change(count, namespace="default", schedule_id="s") for _ in range(8)))
    record = await store.get(namespace="default", schedule_id="s")
    assert record.action_count == 8
    with pytest.raises(NotFound):
        await store.change(count, namespace="default", schedule_id="s", incarnation="another")
    with pytest.raises(NotFound):
        await store.change(count, namespace="default", schedule_id="none")


async def test_an_error_changes_nothing(store: ScheduleStore) -> None:
    await store.insert(schedule("s"))

    def refuse(record: ScheduleRecord) -> None:
        record.action_count = 7
        raise InvalidArgument("no")

    with pytest.raises(InvalidArgument):
        await store.change(refuse, namespace="default", schedule_id="s")
    assert (await store.get(namespace="default", schedule_id="s")).action_count == 0


async def test_what_is_due_comes_by_time_and_in_pages(store: ScheduleStore) -> None:
    heard: list[None] = []
    store.changed = lambda: heard.append(None)
    for number in range(5):
        await store.insert(schedule(f"s{number}", minute=60 * number))
    await store.insert(schedule("paused", paused=True))
    assert len(heard) == 5
    now = NOW + 3 * HOUR
    first = await store.due(now=now, after=None, limit=2)
    rest = await store.due(now=now, after=first[-1], limit=9)
    assert [place[2] for place in first + rest] == ["s0", "s1", "s2"]
    assert await store.next_at(after=now) == (await store.get(namespace="default", schedule_id="s3")).next_at
    assert await store.next_at(after=now + 100 * HOUR) is None


async def test_deleting(store: ScheduleStore) -> None:
    for namespace, schedule_id in (("default", "a"), ("default", "b"), ("other", "a")):
        await store.insert(schedule(schedule_id, namespace=namespace))
    await store.delete(namespace="default", schedule_id="a")
    with pytest.raises(NotFound, match="schedule not found"):
        await store.delete(namespace="default", schedule_id="a")
    assert not await store.expire(namespace="default", schedule_id="b", is_over=lambda _: False)
    assert await store.expire(namespace="default", schedule_id="b", is_over=lambda _: True)
    await store.delete_all(namespace="other")
    assert await store.find(namespace="other", schedule_id="a") is None


async def test_lists_are_newest_first_and_in_pages(store: ScheduleStore, lists: ScheduleLists) -> None:
    for schedule_id, minute in (("a", 1), ("c", 2), ("b", 2), ("d", 3)):
        await store.insert(schedule(schedule_id, minute=minute))
    await store.insert(schedule("z", namespace="other"))
    found, token = [], b""
    while True:
        page = await lists.page(namespace="default", query="", custom_attributes={}, limit=2, token=token)
        found += [record.schedule_id for record in page.schedules]
        token = page.next_page_token
        if not token:
            break
    assert found == ["d", "b", "c", "a"]
    with pytest.raises(InvalidArgument):
        await lists.page(namespace="default", query="", custom_attributes={}, limit=2, token=b"nonsense")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("ScheduleId = 's1'", "1"),
        ("ScheduleId STARTS_WITH 's' AND Size > 1", "23"),
        ("TemporalSchedulePaused = true", "3"),
        ("TemporalSchedulePaused = false", "012"),
        ("Colour = 'red'", "13"),
        ("NOT Colour = 'red'", "02"),
        ("Tags = 't2' OR Tags IN ('t0', 'none')", "02"),
        ("Tags != 'red'", "02"),
        ("Words = 'red'", "13"),
        ("Size BETWEEN 1 AND 2", "12"),
        ("Colour IS NULL", ""),
    ],
)
async def test_filters(store: ScheduleStore, lists: ScheduleLists, query: str, expected: str) -> None:
    for number in range(4):
        await store.insert(schedule(f"s{number}", minute=number, paused=number == 3))
    asked = {"namespace": "default", "query": query, "custom_attributes": CUSTOM}
    page = await lists.page(**asked, limit=9, token=b"")  # type: ignore[arg-type]
    assert sorted(record.schedule_id[1:] for record in page.schedules) == list(expected)
    assert await lists.count(**asked) == len(expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("None = 1", "invalid query: invalid search attribute: None"),
        *(
            (f"{name} = 'x'", f'invalid query filter for schedules: cannot filter on "{name}"')
            for name in ("WorkflowId", "TemporalScheduledById", "TemporalNamespaceDivision", "TemporalScheduleId")
        ),
        ("Colour = 'x' GROUP BY ExecutionStatus", "cannot filter on"),
        ("foo foo", "syntax error"),
    ],
)
async def test_what_schedules_are_not_listed_by(lists: ScheduleLists, query: str, message: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        await lists.page(namespace="default", query=query, custom_attributes=CUSTOM, limit=9, token=b"")
    assert message in refused.value.message


@pytest.mark.parametrize("query", ["", "ScheduleId = 'a'", "Colour = 'red'", "TemporalSchedulePaused = true"])
async def test_lists_read_by_an_index(lists: ScheduleLists, query: str) -> None:
    plan = await lists.plan(namespace="default", query=query, custom_attributes=CUSTOM, limit=10)
    text = " ".join(plan)
    assert "schedules_listed" in text or "schedules_pkey" in text or "sqlite_autoindex_schedules_1" in text
    assert "TEMP B-TREE" not in text or "ScheduleId" in query


async def test_a_malformed_row_names_itself(store: ScheduleStore, tamper: Tamper) -> None:
    await store.insert(schedule("s"))
    tamper("""UPDATE schedules SET data = '{"namespace": 1}'""")
    with pytest.raises(PersistenceError, match=r"schedules.*default/s"):
        await store.get(namespace="default", schedule_id="s")
