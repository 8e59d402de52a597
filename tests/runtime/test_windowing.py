import json

import numpy as np
import pytest
from tests.failing import ERROR, failing, outcome, unless
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.runtime.operators.flattening import ReadGroups
from evenfeed.runtime.operators.keyed_elements import FullGroups


def grouped(dataset, key=lambda x: x % 2):
    return dataset.group_by_window(key, lambda _, group: group.batch(3), window_size=3)


def test_full_groups_come_first_and_the_rest_by_key():
    assert outcome(grouped(tf.data.Dataset.range(8))) == [[0, 2, 4], [1, 3, 5], [6], [7]]
    assert outcome(grouped(tf.data.Dataset.range(0))) == []


def test_an_element_or_a_key_that_fails_is_passed():
    assert outcome(grouped(failing(8, 3))) == [ERROR, [0, 2, 4], [1, 5, 7], [6]]
    assert outcome(grouped(failing(8, 7))) == [[0, 2, 4], [1, 3, 5], ERROR, [6]]
    good = unless(3)
    keyed = grouped(tf.data.Dataset.range(8), lambda x: good(x) % 2)
    assert outcome(keyed) == [ERROR, [0, 2, 4], [1, 5, 7], [6]]


def test_an_error_in_what_a_group_is_reduced_to_is_passed():
    good, spec = unless(4), tf.TensorSpec([], tf.int64)
    reduced = tf.data.Dataset.range(8).group_by_window(
        lambda x: x % 2, lambda _, group: group.map(good, output_signature=spec), window_size=3
    )
    assert outcome(reduced) == [0, 2, ERROR, 1, 3, 5, 6, 7]


@pytest.mark.parametrize("passed", range(5))
def test_groups_resume_behind_errors(passed):
    iterator = iter(grouped(failing(8, 3)))
    for _ in range(passed):
        try:
            next(iterator)
        except ValueError:
            continue
    again = iter(grouped(failing(8, 3)))
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    assert outcome(again) == [ERROR, [0, 2, 4], [1, 5, 7], [6]][passed:]


def stored(count):
    """Return sequences of 0, 1, 2, … numbers, twice: the second round is read from a cache that is complete."""
    spec = tf.TensorSpec([None], tf.int64)
    made = tf.data.Dataset.from_generator(
        lambda: (np.arange(length) for length in range(count)), output_signature=spec
    )
    return made.cache().repeat(2)


def bucketed(dataset):
    return dataset.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [5, 9], [3, 4, 2])


def test_keys_of_a_complete_cache_are_found_many_at_a_time(monkeypatch):
    reads, keys = [], FullGroups._find_keys

    def find_keys(self, block, first):
        reads.append(block.length)
        keys(self, block, first)

    monkeypatch.setattr(FullGroups, "_find_keys", find_keys)
    list(bucketed(stored(40)))
    assert sum(reads) == 39  # the second round, without its first element
    assert len(reads) < 8


def test_buckets_of_a_complete_cache_are_those_of_single_elements():
    rows = [np.arange(length) for length in range(40)] * 2
    again = tf.data.Dataset.from_generator(
        lambda: iter(rows), output_signature=tf.TensorSpec([None], tf.int64)
    )
    for one, two in zip(bucketed(stored(40)), bucketed(again), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("passed", [0, 5, 13, 14, 17, 25, 28])
def test_buckets_of_a_complete_cache_resume(passed):
    iterator = iter(bucketed(stored(40)))
    for _ in range(passed):
        next(iterator)
    again = iter(bucketed(stored(40)))
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    for one, two in zip(iterator, again, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_key_of_a_complete_cache_that_fails_is_passed():
    table = tf.constant([0, 1, 0, 1, 0, 1])
    rows = tf.data.Dataset.range(8).map(lambda x: x, vectorize=False).cache().repeat(2)
    found = outcome(grouped(rows, lambda x: tf.gather(table, x)))
    assert found == [[0, 2, 4], [1, 3, 5], ERROR, ERROR, [0, 2, 4], [1, 3, 5], ERROR, ERROR]


def test_a_key_that_indexes_out_of_range_is_passed():
    table = tf.constant([0, 1, 0, 1, 0, 1])
    found = outcome(grouped(tf.data.Dataset.range(8), lambda x: table[x]))
    assert found == [[0, 2, 4], [1, 3, 5], ERROR, ERROR]


def test_keys_of_values_are_whole_numbers_of_any_width():
    evens = grouped(tf.data.Dataset.range(4), lambda x: int(x) % 2)
    assert outcome(evens) == [[0, 2], [1, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned float32"):
        list(grouped(tf.data.Dataset.range(4), lambda x: np.float32(int(x))))


@pytest.mark.parametrize(
    ("reduce_func", "shape"),
    [
        (lambda key, group: group.batch(2, drop_remainder=True), [2]),
        (lambda key, group: group.batch(int(key) + 2, drop_remainder=True), [None]),
        (lambda key, group: group.batch([2][key], drop_remainder=True), [2]),
    ],
)
def test_what_hangs_on_the_key_is_not_in_the_spec(reduce_func, shape):
    groups = tf.data.Dataset.range(4).group_by_window(lambda x: x * 0, reduce_func, window_size=2)
    assert groups.element_spec.shape == shape


def test_batches_padded_to_boundaries_have_no_one_length():
    rows = tf.data.Dataset.from_generator(
        lambda: ([1] * length for length in range(1, 7)), tf.int32, [None]
    )
    buckets = rows.bucket_by_sequence_length(len, [3, 7], [2, 2, 2], pad_to_bucket_boundary=True)
    assert [batch.shape[1] for batch in buckets] == [2, 6, 6]
    assert buckets.element_spec.shape == [None, None]


def test_sequences_that_are_not_there_fall_into_no_bucket():
    rows = tf.data.Dataset.from_tensor_slices(np.zeros((0, 3)))
    assert outcome(rows.bucket_by_sequence_length(len, [2], [1, 1])) == []


def test_groups_that_are_reduced_to_other_structures_are_an_error_each():
    def named(key, group):
        name = "later" if key == 4 else "first"
        return group.map(lambda x: {name: x})

    made = tf.data.Dataset.range(6).group_by_window(lambda x: x, named, window_size=1)
    assert [x["first"].item() for x in made.ignore_errors()] == [0, 1, 2, 3, 5]
    with error_saying(TypeError, "The function returned datasets whose elements differ …", fix="…"):
        list(made)


def by_parity(**size):
    return tf.data.Dataset.range(5).group_by_window(
        lambda x: x % 2, lambda _, group: group.batch(9), **size
    )


@pytest.mark.parametrize("size", [0, -1])
def test_elements_of_windows_without_a_size_are_an_error_each_and_lost(size):
    assert outcome(by_parity(window_size=size)) == [ERROR] * 5
    assert outcome(by_parity(window_size_func=lambda _: size)) == [ERROR] * 5
    some = by_parity(window_size_func=lambda key: 2 if key == 1 else size)
    assert outcome(some) == [ERROR, ERROR, [1, 3], ERROR]


@pytest.mark.parametrize("size", [2.0, 2.5, "2"])
def test_the_size_of_a_window_is_a_whole_number(size):
    with pytest.raises(TypeError, match="window_size must be a whole number, but got"):
        by_parity(window_size=size)
    made = by_parity(window_size_func=lambda _: size)
    assert outcome(made.ignore_errors()) == []
    with pytest.raises(TypeError, match="the result of window_size_func must be a whole number"):
        list(made)


REDUCED = {
    "batch": lambda key, group: group.batch(2),
    "by key": lambda key, group: group.batch(int(key) + 1, drop_remainder=True),
    "with its key": lambda key, group: group.map(lambda *x: (key, x)).batch(3),
    "elements": lambda key, group: group.skip(1),
    "nothing": lambda key, group: group.take(0),
    "beside others": lambda key, group: tf.data.Dataset.zip((group, tf.data.Dataset.range(2))),
    "filter": lambda key, group: group.filter(lambda x, *_: tf.cast(x, tf.int64) % 5 < 3),
    "shuffle": lambda key, group: group.shuffle(3, seed=1),
}
ROWS = {
    "numbers": lambda: tf.data.Dataset.range(150),
    "pairs": lambda: tf.data.Dataset.range(150).map(lambda x: (x, tf.cast(x, tf.float32) / 3)),
    "text": lambda: tf.data.Dataset.range(150).map(lambda x: (x, tf.strings.as_string(x))),
    "generated": lambda: tf.data.Dataset.from_generator(
        lambda: range(150), output_signature=tf.TensorSpec([], tf.int64)
    ),
}


def by_three(dataset, reduce_func):
    return dataset.group_by_window(
        lambda x, *_: x % 3, reduce_func, window_size_func=lambda key: key + 2
    )


def plainly(structure):
    if isinstance(structure, tuple):
        return tuple(map(plainly, structure))
    return structure.dtype, np.asarray(structure).tolist()


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("reduced", REDUCED)
def test_groups_that_are_read_by_a_template_are_those_that_the_function_makes(reduced, rows):
    function, seen = REDUCED[reduced], []

    def called_for_each(key, group):
        seen.append(int(key))
        return function(key, group)

    by_template = by_three(ROWS[rows](), function)
    by_calls = by_three(ROWS[rows](), called_for_each)
    assert list(map(plainly, by_template)) == list(map(plainly, by_calls))
    assert len(seen) > 40


def test_a_function_that_leaves_no_trace_is_called_for_the_first_groups_only(monkeypatch):
    calls, reduced = [], ReadGroups._reduced
    monkeypatch.setattr(
        ReadGroups, "_reduced", lambda self, *group: calls.append(1) or reduced(self, *group)
    )
    assert len(list(grouped(tf.data.Dataset.range(600)))) == 200
    assert len(calls) < 20


@pytest.mark.parametrize("passed", [0, 1, 17, 30, 49, 60, 73])
def test_groups_that_are_read_by_a_template_resume(passed):
    dataset = by_three(tf.data.Dataset.range(220), lambda key, group: group.batch(2))
    iterator = iter(dataset)
    for _ in range(passed):
        next(iterator)
    again = iter(dataset)
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    assert list(map(plainly, iterator)) == list(map(plainly, again))


def test_a_group_that_fails_is_passed_if_others_are_read_by_a_template():
    rows = tf.data.Dataset.range(120).map(lambda x: tf.range(2 + tf.cast(x == 90, tf.int64)))
    padded = rows.group_by_window(
        lambda _: np.int64(0), lambda _, group: group.padded_batch(4, padded_shapes=[2]), 4
    )
    found = outcome(padded)
    assert found.index(ERROR) == 22
    assert len(found) == 30


def test_a_window_size_that_fails_loses_its_element_only():
    seen = []

    def size(key):
        seen.append(int(key))
        if len(seen) == 2:
            raise ValueError("no size")
        return 2

    dataset = tf.data.Dataset.range(12).group_by_window(
        lambda x: x // 3 % 2, lambda _, group: group.batch(2), window_size_func=size
    )
    assert outcome(dataset) == [[0, 1], ERROR, [4, 5], [2, 6], [7, 8], [9, 10], [11]]
    assert seen == [0, 1, 1]
