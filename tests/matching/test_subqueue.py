"""One priority of a loaded queue: what goes back to being unread when memory overflows."""

from datetime import UTC, datetime

from matching.backlog.subqueue import LoadedSubqueue
from matching.config import MatchingConfig
from matching.delivery import Delivery
from matching.ready import ReadyHeap
from matching.records import QueueTask, Subqueue

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def delivery(task_id: int, *, key: str = "") -> Delivery:
    task = QueueTask(kind="workflow", workflow_id=f"w{task_id}", run_id="r", scheduled_event_id=2, scheduled_at=NOW)
    return Delivery(task=task, created_at=NOW, fairness_key=key)


def stored(sub: LoadedSubqueue, *deliveries: Delivery) -> list[Delivery]:
    for task_id, each in enumerate(deliveries, start=1):
        sub.number(each, task_id=task_id, weight=1.0)
    return sub.committed(list(deliveries))


def subqueue(page_size: int) -> LoadedSubqueue:
    return LoadedSubqueue(priority=3, record=Subqueue(), has_rows=False, config=MatchingConfig(page_size=page_size))


def test_memory_holds_two_pages_and_the_rest_is_unread() -> None:
    sub = subqueue(page_size=3)
    taken = stored(sub, *(delivery(n) for n in range(10)))
    assert len(taken) == len(sub.deliveries) == 6
    assert sub.has_unread
    assert sub.acks.outstanding == 6


def test_insertions_below_the_read_level_are_kept_and_the_far_end_is_sent_back() -> None:
    sub = subqueue(page_size=2)
    many = [delivery(n, key="noisy") for n in range(4)]
    others = [delivery(n, key=f"quiet {n}") for n in range(3)]
    stored(sub, *many, *others)
    assert len(sub.deliveries) == 7
    sub.trim()
    kept = [each for each in many + others if not each.dropped]
    assert len(kept) == len(sub.deliveries) == 2
    assert sub.read_level == max(each.level for each in kept)
    assert all(each.level > sub.read_level for each in many + others if each.dropped)


def test_nothing_at_or_below_what_was_dispatched_is_sent_back() -> None:
    """Else the acknowledged prefix could pass over a task that was sent back, and delete its row."""
    sub = subqueue(page_size=2)
    noisy = [delivery(n, key="noisy") for n in range(4)]
    stored(sub, *noisy)
    sub.handled(noisy[0])
    quiet = [delivery(n, key=f"quiet {n}") for n in range(3)]
    for task_id, each in enumerate(quiet, start=5):
        sub.number(each, task_id=task_id, weight=1.0)
    sub.committed(quiet)
    # The others of that pass are set aside by a rate limit, say, so the last one goes first.
    sub.handled(quiet[2])
    sub.trim()
    assert sub.read_level == quiet[2].level
    assert not any(each.dropped for each in [noisy[1], *quiet])
    sent_back = [each for each in noisy if each.dropped]
    assert len(sent_back) == 2
    for each in list(sub.deliveries.values()):
        sub.handled(each)
    level, _ = sub.acks.progress()
    assert level == quiet[2].level < min(each.level for each in sent_back)


def test_dropped_deliveries_do_not_pile_up_behind_a_backlog() -> None:
    heap = ReadyHeap()
    first = delivery(0)
    heap.push(first)
    for n in range(1, 20_000):
        passing = delivery(n)
        passing.priority = 5
        heap.push(passing)
        passing.dropped = True
    assert len(heap) <= 1_024
    assert heap.peek() is first
