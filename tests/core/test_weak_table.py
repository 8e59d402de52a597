import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from evenfeed.core.concurrency.weak_table import WeakTable


class Owner:
    """Equal to all others."""

    itself: "Owner | None" = None

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_equal_objects_have_separate_values():
    table = WeakTable[list[int]]()
    one, two = Owner(), Owner()
    table.of(one, list).append(1)
    assert table.of(one, list) == [1]
    assert table.of(two, list) == []
    assert table.get(Owner()) is None


def test_all_threads_get_the_same_value():
    table, owner, together = WeakTable[object](), Owner(), Barrier(8)

    def value(_):
        together.wait()
        return table.of(owner, object)

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(value, range(8)))) == 1


def test_a_value_lives_as_long_as_its_object():
    table, owner = WeakTable[Owner](), Owner()
    table.put(owner, Owner())
    owner.itself = owner  # only the garbage collector frees it
    del owner
    gc.collect()
    assert table._entries == {}


def test_a_value_that_is_being_made_may_look_up_others():
    table, one, two = WeakTable[str](), Owner(), Owner()
    assert table.of(one, lambda: table.of(two, lambda: "two") + " and one") == "two and one"


def test_a_value_is_replaced():
    table, owner = WeakTable[int](), Owner()
    assert (table.put(owner, 1), table.put(owner, 2), table.get(owner)) == (1, 2, 2)
