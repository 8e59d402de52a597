from itertools import islice

import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, flatten
from evenfeed.dataset import plan_of
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, TensorSlice
from evenfeed.runtime import operator, reading_pace
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.positions.rows import Walk


@pytest.fixture(autouse=True)
def _a_busy_machine_does_not_count(monkeypatch):
    monkeypatch.setattr(reading_pace, "perf_counter", lambda: 0.0)


def reads(monkeypatch, plan, count):
    """Return how many elements each read asked for while `count` elements were returned."""
    asked = []
    read = Walk.read
    monkeypatch.setattr(Walk, "read", lambda self, most: asked.append(most) or read(self, most))
    assert len(list(islice(ElementIterator(plan), count))) == count
    return asked


def test_reads_grow_from_one_element(monkeypatch):
    assert reads(monkeypatch, Range(0, 1000), 1) == [1]
    assert reads(monkeypatch, Range(0, 1000), 20) == [1, 2, 4, 8, 16]


def test_reads_grow_no_further_than_the_budget(monkeypatch):
    monkeypatch.setattr(operator, "_BLOCK_BYTES", 64)
    monkeypatch.setattr(operator, "_COLUMN_BYTES", 64)
    assert reads(monkeypatch, Range(0, 1000), 40) == [1, 2, 4, 8, 8, 8, 8, 8]


def test_an_element_larger_than_the_budget_is_read_alone(monkeypatch):
    monkeypatch.setattr(operator, "_BLOCK_BYTES", 10)
    monkeypatch.setattr(operator, "_COLUMN_BYTES", 10)
    monkeypatch.setattr(operator, "_LARGE_BYTES", 10)
    assert reads(monkeypatch, Batch(Range(0, 1000), 4), 3) == [1, 1, 1]


def test_elements_without_bytes_are_no_trouble():
    plan = Repeat(TensorSlice(0, [np.zeros((3, 0))]), 1000)
    assert sum(1 for _ in ElementIterator(plan)) == 3000


def test_the_end_stays_the_end():
    iterator = ElementIterator(Range(0, 1))
    assert list(iterator) == [0]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
    assert not iterator.get_next_as_optional().has_value()


class Endless:
    """An iterator of ones that records when it is deleted."""

    def __init__(self, gone):
        self.gone = gone

    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __del__(self):
        self.gone.append(True)


@pytest.mark.parametrize(
    "through",
    [
        lambda dataset: dataset.take(2),
        lambda dataset: dataset.map(lambda x: x + 1).take(2),
        lambda dataset: dataset.batch(2).take(1).unbatch(),
        lambda dataset: tf.data.Dataset.zip(dataset, tf.data.Dataset.range(2)),
        lambda dataset: tf.data.Dataset.range(1).flat_map(lambda _: dataset).take(2),
    ],
)
def test_an_iterator_at_its_end_lets_go_of_generators(through):
    gone = []
    ones = tf.data.Dataset.from_generator(lambda: Endless(gone), tf.int64)
    iterator = iter(through(ones))
    assert len(list(islice(iterator, 2))) == 2
    assert gone == []
    assert next(iterator, None) is None
    assert gone == [True]


def test_an_iterator_at_its_end_has_a_position():
    calls = []
    dataset = tf.data.Dataset.from_generator(lambda: calls.append(1) or range(3), tf.int64)
    iterator = iter(dataset)
    start = iterator.get_state()
    assert [int(x) for x in iterator] == [0, 1, 2]
    end = iterator.get_state()
    assert next(iterator, None) is None  # and the generator is not called again
    assert len(calls) == 1
    iterator.set_state(start)
    assert [int(x) for x in iterator] == [0, 1, 2]
    iterator.set_state(end)
    assert next(iterator, None) is None


def test_save_and_restore_are_names_for_the_position():
    dataset = tf.data.Dataset.range(10).shuffle(5, seed=42, reshuffle_each_iteration=False)
    expected = list(dataset.as_numpy_iterator())
    iterator = dataset.as_numpy_iterator()
    assert [iterator.next() for _ in range(3)] == expected[:3]
    state = iterator.save()
    assert list(iterator) == expected[3:]
    iterator.restore(state)
    assert list(iterator) == expected[3:]


def state_of(plan, count):
    iterator = ElementIterator(plan)
    assert len(list(islice(iterator, count))) == count
    return iterator.get_state()


def test_a_position_counts_what_was_delivered_not_what_was_read():
    state = state_of(Range(0, 100), 5)
    assert (state["at"], state["rows"]) == (5, 0)  # blocks of 1, 2 and 4 were read


def test_a_state_of_another_dataset_is_refused():
    iterator = ElementIterator(Batch(Range(0, 6), 2))
    what = "The state belongs to an iterator over a different dataset."
    fix = "build the dataset with the same steps, sizes and shapes as when the state was taken."
    for other in (Batch(Range(0, 6), 3), Batch(Range(0, 7), 2), Range(0, 6)):
        with error_saying(InvalidArgumentError, what, fix=fix):
            iterator.set_state(state_of(other, 1))
    assert next(iterator).tolist() == [0, 1]


def test_a_state_of_another_version_is_refused():
    iterator = ElementIterator(Range(0, 6))
    state = iterator.get_state() | {"version": 99}
    what = "The state has version 99, but this evenfeed reads versions 2 to 6."
    with error_saying(InvalidArgumentError, what, fix="use the evenfeed version that wrote it, …"):
        iterator.set_state(state)


def test_a_state_in_the_middle_of_a_long_range_is_taken_up_at_once():
    plan = Range(0, 10**12)
    iterator = ElementIterator(plan)
    iterator.set_state(iterator.position() | {"at": 10**12 - 2})
    assert [int(x) for x in iterator] == [10**12 - 2, 10**12 - 1]


def test_an_iterator_goes_on_behind_an_error():
    plan = Repeat(Batch(Batch(Range(0, 3), 2), 2), 3)
    iterator = ElementIterator(plan)
    for _ in range(3):
        with pytest.raises(
            InvalidArgumentError, match="elements of a batch must have the same shape"
        ):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_what_was_read_with_a_failing_element_comes_first():
    plan = Batch(Batch(Batch(Range(0, 23), 2), 2), 1)
    iterator = ElementIterator(plan)
    assert sum(1 for _ in islice(iterator, 5)) == 5
    with pytest.raises(InvalidArgumentError, match="elements of a batch must have the same shape"):
        next(iterator)


class InterruptedOnce:
    """A source whose reader is interrupted at one element, the first time it is read."""

    def __init__(self, at):
        self._at = at
        self._interrupted = False

    def __call__(self):
        for number in range(20):
            if number == self._at and not self._interrupted:
                self._interrupted = True
                raise KeyboardInterrupt
            yield number


NUMBER = tf.TensorSpec([], tf.int64)


def by_value(x):
    return x if x >= 0 else -x  # a condition, so that it does not trace


PASSES = {
    "plain": lambda d: d,
    "map in threads": lambda d: d.map(by_value, num_parallel_calls=4, output_signature=NUMBER),
    "shuffle": lambda d: d.shuffle(5, seed=1),
    "batch": lambda d: d.batch(3).unbatch(),
    "prefetch": lambda d: d.prefetch(2),
    "windows": lambda d: d.window(4).flat_map(lambda w: w),
}


@pytest.mark.parametrize("through", PASSES.values(), ids=PASSES.keys())
@pytest.mark.parametrize("at", [0, 7, 19])
def test_what_an_interrupted_read_took_comes_all_the_same(through, at):
    def of(source):
        return through(tf.data.Dataset.from_generator(source, output_signature=NUMBER))

    expected = [int(x) for x in of(lambda: iter(range(20)))]
    iterator, found = iter(of(InterruptedOnce(at))), []
    with pytest.raises(KeyboardInterrupt):
        found.extend(int(x) for x in iterator)
    again = iter(of(lambda: iter(range(20))))
    again.set_state(iterator.position() | {"plan": again.get_state()["plan"]})
    rest = [int(x) for x in again]
    assert found + rest == expected
    assert found + [int(x) for x in iterator] == expected


def test_a_first_element_that_was_interrupted_is_read_again():
    source = tf.data.Dataset.from_generator(InterruptedOnce(0), output_signature=NUMBER)
    mapped = source.map(by_value)
    with pytest.raises(KeyboardInterrupt):
        iter(mapped)
    assert [int(x) for x in mapped] == list(range(20))


def test_as_numpy_iterator_goes_on_behind_an_element_that_fails():
    def checked(x):
        if x == 1:
            raise KeyError("bad")
        return x

    iterator = tf.data.Dataset.range(3).map(checked).as_numpy_iterator()
    assert next(iterator) == 0
    with pytest.raises(KeyError):
        next(iterator)
    assert list(iterator) == [2]


def test_a_state_that_cannot_be_restored_leaves_the_position():
    iterator = iter(tf.data.Dataset.range(5).batch(2).prefetch(1))
    first, state = next(iterator), iterator.position()
    with pytest.raises(TypeError):
        iterator.set_state(state | {"at": 7})
    assert first.tolist() == [0, 1]
    assert [x.tolist() for x in iterator] == [[2, 3], [4]]


def test_a_flat_element_is_its_parts_without_their_structure():
    dataset = tf.data.Dataset.range(4).map(lambda x: {"b": (x, None), "a": [x, -x]}).batch(2)
    flat = ElementIterator(plan_of(dataset), flat=True)
    for element in ElementIterator(plan_of(dataset)):
        parts = next(flat)
        assert [None if p is None else p.tolist() for p in parts] == [
            None if p is None else p.tolist() for p in flatten(element, DATA)
        ]
    with pytest.raises(StopIteration):
        next(flat)
