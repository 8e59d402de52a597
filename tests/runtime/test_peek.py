import copy
import pickle

import numpy as np
import pytest
from tests.plans import read_with_states

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.runtime.elements import ElementIterator

NUMBER = tf.TensorSpec([], tf.int64)


class Source:
    """A generator that counts how often it was started and pulled."""

    def __init__(self, values=range(4)):
        self.values = values
        self.starts = 0
        self.pulled = []

    def __call__(self):
        self.starts += 1
        for value in self.values:
            self.pulled.append(value)
            if isinstance(value, Exception):
                raise value
            yield value

    @property
    def dataset(self):
        return tf.data.Dataset.from_generator(self, output_signature=NUMBER)


def needs_values(x):
    return np.arange(int(x))


def lengths(dataset):
    return [len(x) for x in dataset]


def test_a_source_is_not_read_again_for_the_spec():
    source = Source()
    dataset = source.dataset.map(needs_values)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int64)
    assert source.pulled == [0]
    assert lengths(dataset) == [0, 1, 2, 3]
    assert (source.starts, source.pulled) == (1, [0, 1, 2, 3])


def test_only_the_first_pass_has_what_was_kept():
    source = Source()
    dataset = source.dataset.map(needs_values)
    assert lengths(dataset) == lengths(dataset) == [0, 1, 2, 3]
    assert (source.starts, source.pulled) == (2, [0, 1, 2, 3] * 2)
    one, two = iter(dataset), iter(dataset)
    assert [len(next(each)) for each in (one, two, one, two)] == [0, 0, 1, 1]
    assert source.starts == 4


@pytest.mark.parametrize(
    "build",
    [
        lambda d: d.filter(lambda x: int(x) >= 0),
        lambda d: d.take_while(lambda x: int(x) >= 0),
        lambda d: d.map(needs_values, num_parallel_calls=2),
        lambda d: d.map(needs_values).map(lambda x: len(x) * 2),
        lambda d: d.map(needs_values).padded_batch(2).map(lambda x: int(x.sum())),
        lambda d: d.shuffle(3, seed=1).map(needs_values),
        lambda d: d.shuffle(3, seed=1).cache().map(needs_values),
        lambda d: d.prefetch(2).map(needs_values).prefetch(2),
        lambda d: d.group_by_window(lambda x: int(x) % 2, lambda _, g: g, window_size=2),
        lambda d: tf.data.Dataset.zip(d.map(needs_values), tf.data.Dataset.range(9)),
        lambda d: d.map(needs_values).repeat(1),
    ],
)
def test_what_was_kept_is_used_wherever_it_stands(build):
    source = Source()
    dataset = build(source.dataset)
    _ = dataset.element_spec
    assert len(list(dataset)) > 0
    assert (source.starts, source.pulled) == (1, [0, 1, 2, 3])


def test_to_ask_for_the_spec_changes_no_order():
    asked, plain = (tf.data.Dataset.range(50).shuffle(50, seed=3) for _ in range(2))
    mapped = asked.map(lambda x: np.int64(int(x)))
    _ = mapped.element_spec
    assert [int(x) for x in mapped] == [int(x) for x in plain]
    assert [int(x) for x in mapped] == [int(x) for x in plain]


def test_a_pass_with_another_order_begins_anew():
    mixed = tf.data.Dataset.range(50).shuffle(50, seed=3)
    mapped = mixed.map(lambda x: np.int64(int(x)))
    _ = mapped.element_spec
    first = [int(x) for x in mixed]
    second = [int(x) for x in mapped]
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second


def test_a_function_that_fails_at_first_is_tried_on_the_next():
    source = Source([ValueError("gone"), 3])

    def picky(x):
        if int(x) < 2:
            raise KeyError(int(x))
        return np.float32(x)

    dataset = tf.data.Dataset.range(4).map(picky).ignore_errors()
    assert dataset.element_spec == tf.TensorSpec([], tf.float32)
    assert [float(x) for x in dataset] == [2, 3]
    with pytest.raises(KeyError, match="0"):
        _ = tf.data.Dataset.range(2).map(picky).element_spec
    with pytest.raises(ValueError, match="gone"):
        _ = source.dataset.map(picky).element_spec


def test_a_function_is_not_tried_without_end():
    def broken(x):
        raise KeyError(int(x))

    counted = tf.data.Dataset.counter().map(broken)
    with pytest.raises(KeyError, match="0"):
        _ = counted.element_spec


def test_what_a_function_writes_into_its_argument_is_written_once():
    def in_place(x):
        if int(x[0]) >= 0:
            x += 1
        return x

    rows = tf.data.Dataset.from_generator(
        lambda: [[1, 1], [2, 2]], output_signature=tf.TensorSpec([2], tf.int64)
    ).map(in_place)
    _ = rows.element_spec
    assert [x.tolist() for x in rows] == [[2, 2], [3, 3]]


def test_states_are_those_of_a_pass_without_a_beginning():
    source = Source([0, 1, "x", 3, 4])
    dataset = source.dataset.map(needs_values)
    begun = ElementIterator(plan_of(dataset))
    plain = ElementIterator(plan_of(dataset))
    assert read_with_states(begun, 9)[1] == read_with_states(plain, 9)[1]


def test_a_cache_in_files_is_left_free(tmp_path):
    source = Source()
    cached = source.dataset.cache(tmp_path / "kept")
    one, two = cached.map(needs_values), cached.map(lambda x: int(x) + 1)
    assert one.element_spec != two.element_spec
    assert lengths(one) == [0, 1, 2, 3]
    assert [int(x) for x in two] == [1, 2, 3, 4]


def test_copies_begin_on_their_own():
    dataset = tf.data.Dataset.range(4).map(needs_values)
    _ = dataset.element_spec
    for other in (copy.deepcopy(dataset), pickle.loads(pickle.dumps(dataset))):
        assert lengths(other) == lengths(other) == [0, 1, 2, 3]
    assert lengths(dataset) == [0, 1, 2, 3]
