import itertools
from collections import Counter, defaultdict, deque
from functools import partial

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.runtime.functions.reach.python_state import ReachableState, uses_iterator

TOTAL = 0


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def counts_global(x):
    global TOTAL  # noqa: PLW0603 - what is counted with
    TOTAL += 1
    return x * 0 + TOTAL


class Counting:
    def __init__(self):
        self.count = 0
        self.seen = []

    def method(self, x):
        self.count += 1
        self.seen.append(1)
        return x * 0 + self.count

    def __call__(self, x):
        return self.method(x)


def counts_nonlocal():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x * 0 + count

    return function


def counts_in(container):
    def function(x):
        container["n"] += 1
        return x * 0 + container["n"]

    return function


def counts_in_array(x, counts=np.zeros(1, np.int64)):  # noqa: B008 - what is kept there
    counts[0] += 1
    return x * 0 + int(counts[0])


def called_by_another(function):
    return lambda x: function(x) + 0


def helped(function, x):
    return function(x)


@pytest.mark.filterwarnings("ignore:.*returns something else each time")
@pytest.mark.parametrize(
    "make",
    [
        lambda: counts_global,
        counts_nonlocal,
        Counting,
        lambda: Counting().method,
        lambda: counts_in({"n": 0}),
        lambda: counts_in(Counter()),
        lambda: counts_in(defaultdict(int)),
        lambda: counts_in_array,
        lambda: partial(helped, counts_nonlocal()),
        lambda: called_by_another(counts_nonlocal()),
    ],
)
def test_a_counter_counts_elements_and_no_looks(make):
    dataset = tf.data.Dataset.range(3).map(make())
    assert numbers(dataset) == [1, 2, 3]
    assert numbers(dataset) == [4, 5, 6]


def test_a_warning_of_a_counter_does_not_speak_of_chance():
    with pytest.warns(UserWarning, match="returns something else each time it is called") as said:
        tf.data.Dataset.range(3).map(counts_nonlocal())
    assert "as a counter or a clock does" in str(said[0].message)


def test_what_a_traced_function_does_to_a_list_it_does_once():
    seen, count = [], tf.Variable(1)

    def traced(x):
        seen.append(x.shape)
        return x + tf.cast(count, tf.int64)

    dataset = tf.data.Dataset.range(5).map(traced)
    assert numbers(dataset) == numbers(dataset) == [1, 2, 3, 4, 5]
    assert seen == [()]


def test_what_is_made_at_the_first_trace_is_kept():
    made = {}

    def lazy(x):
        if "table" not in made:
            made["table"] = np.arange(9)
        return x + made["table"][1]

    assert numbers(tf.data.Dataset.range(2).map(lazy)) == [1, 2]
    assert list(made) == ["table"]


@pytest.mark.parametrize("pulls", [itertools.count(), iter([0, 1, 2]), (n for n in range(3))])
def test_a_python_iterator_gives_its_elements_to_elements(pulls):
    function = lambda x: x * 10 + next(pulls)  # noqa: E731 - as users write it
    assert uses_iterator(function)
    assert numbers(tf.data.Dataset.range(3).map(function)) == [0, 11, 22]


def test_iterators_are_found_where_a_function_names_them():
    class Pulls:
        def __init__(self):
            self.source = itertools.count()
            self.other = 1

        def method(self):
            return next(self.source)

        def does_not(self):
            return self.other

    assert uses_iterator(Pulls().method)
    assert not uses_iterator(Pulls().does_not)
    assert uses_iterator(partial(helped, next, iter([1])))
    assert not uses_iterator(len)


@pytest.mark.parametrize(
    ("container", "change"),
    [
        ([1, 2], lambda c: c.append(3)),
        (deque([1, 2], 2), lambda c: c.append(3)),
        ({1, 2}, lambda c: c.discard(1)),
        ({"a": 1}, lambda c: c.update(a=2)),
        (bytearray(b"ab"), lambda c: c.extend(b"c")),
        (np.arange(3), lambda c: c.fill(0)),
    ],
)
def test_small_containers_are_put_back(container, change):
    before = list(container)
    state = ReachableState(lambda: container)
    change(container)
    assert list(container) != before or isinstance(container, dict)
    state.restore()
    assert list(container) == before
    if isinstance(container, dict):
        assert container == {"a": 1}


def test_what_holds_much_is_data_and_left_alone():
    data = list(range(1000))
    state = ReachableState(lambda: data)
    data.append(1)
    state.restore()
    assert len(data) == 1001
