"""The acknowledgement level: the fully handled prefix, whatever the order of acknowledgements."""

from hypothesis import given, settings
from hypothesis import strategies as st

from matching.backlog.acks import AckTracker
from matching.backlog.fairness import FairnessPasses


def test_the_seeds_example() -> None:
    acks = AckTracker(level=(0, 0))
    for task_id in (1, 2, 3):
        acks.add((1, task_id))
    acks.done((1, 2))
    assert acks.progress() == ((0, 0), 0)
    assert acks.done_above_gap == 1
    acks.done((1, 1))
    assert acks.progress() == ((1, 2), 2)
    assert acks.outstanding == 1


@settings(max_examples=300)
@given(data=st.data())
def test_everything_at_or_below_the_level_is_done(data: st.DataObject) -> None:
    acks = AckTracker(level=(0, 0))
    added: set[tuple[int, int]] = set()
    done: set[tuple[int, int]] = set()
    next_id = 1
    for _ in range(data.draw(st.integers(0, 40))):
        level, handled = acks.progress()
        match data.draw(st.sampled_from(["add", "done", "forget"])):
            case "add":
                fresh = (level[0] + data.draw(st.integers(1, 5)), next_id)
                next_id += 1
                added.add(fresh)
                acks.add(fresh)
            case "done" if added - done:
                chosen = data.draw(st.sampled_from(sorted(added - done)))
                done.add(chosen)
                acks.done(chosen)
                acks.done(chosen)
            case "forget" if forgettable := {x for x in added - done if not any(d > x for d in done)}:
                gone = max(forgettable)
                added.discard(gone)
                acks.forget(gone)
        level, now_handled = acks.progress()
        assert now_handled >= handled
        assert {x for x in added if x <= level} <= done
        undone = added - done
        prefix = {x for x in done if not undone or x < min(undone)}
        assert now_handled == len(prefix)
        assert level == max(prefix, default=(0, 0))
        assert acks.outstanding == len(undone)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.5, 1.0, 3.0])), max_size=200))
def test_a_keys_passes_grow_and_are_beyond_the_position(tasks: list[tuple[str, float]]) -> None:
    passes = FairnessPasses(position=5_000, counters={"a": 9_000}, keys_tracked=100)
    last = {"a": 9_000}
    for key, weight in tasks:
        value = passes.next(key=key, weight=weight)
        assert value > max(last.get(key, 0), 5_000)
        last[key] = value
    assert passes.highest == max([9_000, *last.values()])


def test_keys_share_in_the_ratio_of_their_weights() -> None:
    passes = FairnessPasses(position=0, counters={}, keys_tracked=100)
    tasks = [("big", passes.next(key="big", weight=1.0)) for _ in range(300)]
    tasks += [("heavy", passes.next(key="heavy", weight=3.0)) for _ in range(300)]
    first = [key for key, _ in sorted(tasks, key=lambda task: task[1])][:200]
    assert abs(first.count("heavy") / first.count("big") - 3) < 0.1


def test_counters_the_queue_has_passed_are_not_kept() -> None:
    passes = FairnessPasses(position=0, counters={}, keys_tracked=10)
    for n in range(100):
        passes.reached(passes.next(key=f"k{n}", weight=1.0))
    assert passes.furthest(100) == {}
