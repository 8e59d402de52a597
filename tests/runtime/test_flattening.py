import numpy as np
import pytest
from tests.failing import ERROR, failing, outcome, unless
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.runtime.build import build
from evenfeed.runtime.run import Run

Dataset = tf.data.Dataset


def twice(x):
    return Dataset.from_tensors(x).repeat(2)


def test_what_fails_is_passed():
    good = unless(2)
    assert outcome(failing(4, 2).flat_map(twice)) == [0, 0, 1, 1, ERROR, 3, 3]
    assert outcome(Dataset.range(4).flat_map(lambda x: twice(good(x)))) == [
        *(0, 0, 1, 1, ERROR, 3, 3)
    ]
    assert outcome(Dataset.range(2).flat_map(lambda _: failing(3, 1))) == [0, ERROR, 2] * 2


def test_an_error_keeps_the_turn():
    assert outcome(failing(6, 1, 4).interleave(twice, cycle_length=2)) == [
        *(0, ERROR, 2, 0, 2, 3, ERROR, 5, 3, 5)
    ]
    inner = Dataset.range(4).interleave(lambda _: failing(3, 1), cycle_length=2)
    assert outcome(inner) == [0, 0, ERROR, 2, ERROR, 2] * 2
    inner = Dataset.range(2).interleave(lambda _: failing(3, 1), cycle_length=2, block_length=2)
    assert outcome(inner) == [0, ERROR, 2, 0, ERROR, 2]


def test_what_hangs_on_an_unknown_rank_has_an_unknown_shape():
    numbers = Dataset.range(2)
    mixed = numbers.concatenate(numbers.batch(2)).flat_map(Dataset.from_tensors)
    assert mixed.element_spec == tf.TensorSpec(None, tf.int64)
    assert outcome(mixed) == [0, 1, [0, 1]]


def test_numbers_in_lists_keep_their_width():
    numbers = tf.data.Dataset.from_tensor_slices((np.arange(2), np.arange(2.0)))
    single = tf.data.Dataset.from_tensors
    flat = numbers.flat_map(lambda x, y: single(([x], {"y": [[y]]})))
    turns = numbers.interleave(lambda x, y: single([x, x]).concatenate(single([x, x])))
    assert flat.element_spec == (
        tf.TensorSpec([1], tf.int64),
        {"y": tf.TensorSpec([1, 1], tf.float64)},
    )
    assert [x.dtype for x in turns] == ["int64"] * 4


def test_a_function_may_make_datasets_that_take_no_zero():
    batches = Dataset.range(1, 4).flat_map(lambda n: Dataset.range(4).batch(n))
    assert outcome(batches) == [[0], [1], [2], [3], [0, 1], [2, 3], [0, 1, 2], [3]]
    full = Dataset.range(1, 3).flat_map(lambda n: Dataset.range(4).batch(n, drop_remainder=True))
    assert full.element_spec == tf.TensorSpec([None], tf.int64)
    shards = Dataset.range(1, 3).interleave(lambda n: Dataset.range(4).shard(n, 0), cycle_length=2)
    assert outcome(shards) == [0, 0, 1, 2, 2, 3]
    assert outcome(Dataset.range(0).flat_map(lambda n: Dataset.range(4).batch(n))) == []


def test_a_function_that_takes_no_stand_in_is_called_with_the_first_element():
    batches = Dataset.range(6, 8).flat_map(lambda n: Dataset.range(4).batch(n - 5))
    assert batches.element_spec == tf.TensorSpec([None], tf.int64)
    assert outcome(batches) == [[0], [1], [2], [3], [0, 1], [2, 3]]


def test_what_no_element_would_change_is_refused_where_it_is_given():
    read = []

    def numbers():
        read.append(1)
        yield 1

    source = Dataset.from_generator(numbers, tf.int64)
    with pytest.raises(AttributeError, match="nothing"):
        source.flat_map(lambda _: Dataset.range(4).nothing())  # type: ignore[attr-defined]
    with error_saying(TypeError, "…", fix="…"):
        source.flat_map(lambda x: x)  # type: ignore[arg-type, return-value]
    assert read == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="batch_size must be at least 1"):
        Dataset.range(3).flat_map(lambda _: Dataset.range(4).batch(0))


def test_shapes_that_hang_on_values_are_not_known():
    def filled(n):
        return Dataset.from_tensors((tf.zeros([n, 2]), n))

    made = Dataset.range(3).flat_map(filled)
    assert made.element_spec[0] == tf.TensorSpec([None, 2], tf.float32)
    assert [x.shape for x, _ in made] == [(0, 2), (1, 2), (2, 2)]
    only_one = Dataset.range(1).flat_map(lambda n: [filled(n)][int(n)])
    assert only_one.element_spec[0] == tf.TensorSpec([0, 2], tf.float32)


def test_unlike_datasets_are_refused():
    def either(n, other):
        return Dataset.range(2) if n == 0 else other

    pairs = Dataset.zip((Dataset.range(2), Dataset.range(2)))
    for other in (Dataset.from_tensors("a"), pairs, Dataset.range(2).map(lambda x: {"a": x})):
        what = "All datasets that <lambda> returns must have the same element structure and dtypes, but …"
        with error_saying(TypeError, what, fix="return datasets with the same structure …"):
            Dataset.range(2).flat_map(lambda n, other=other: either(n, other))
    mixed = Dataset.range(2).flat_map(lambda n: either(n, Dataset.range(2).batch(2)))
    assert mixed.element_spec == tf.TensorSpec(None, tf.int64)


def test_datasets_in_a_map_may_hang_on_values():
    made = Dataset.range(1, 3).map(lambda n: Dataset.range(4).batch(n)).flat_map(lambda d: d)
    assert outcome(made) == [[0], [1], [2], [3], [0, 1], [2, 3]]
    single = Dataset.range(1, 3).map(lambda n: Dataset.range(n, n + 1).get_single_element())
    assert outcome(single) == [1, 2]


def test_groups_may_be_reduced_by_their_key():
    made = Dataset.range(6).group_by_window(
        lambda x: x % 2 + 1, lambda key, group: group.batch(key), 3
    )
    assert outcome(made) == [[0], [2], [4], [1, 3], [5]]


def test_unlike_datasets_of_later_elements_are_an_error_each():
    pairs = Dataset.zip((Dataset.range(2), Dataset.range(2)))
    for other in (Dataset.from_tensors("a"), pairs, Dataset.range(2, output_type=tf.int32)):
        made = Dataset.range(2, 6).flat_map(lambda n, o=other: o if n == 4 else twice(n))
        assert outcome(made.ignore_errors()) == [2, 2, 3, 3, 5, 5]
        turns = Dataset.range(2, 6).interleave(
            lambda n, o=other: o if n == 4 else twice(n), cycle_length=2
        )
        assert outcome(turns.ignore_errors()) == [2, 3, 2, 3, 5, 5]
    with error_saying(TypeError, "The function returned datasets whose elements differ …", fix="…"):
        list(Dataset.range(5).flat_map(lambda n: pairs if n == 4 else Dataset.range(2)))


@pytest.mark.parametrize(
    "other", [lambda x: {"b": x}, lambda x: {"a": {"b": x}}, lambda x: (x,), lambda x: x]
)
def test_other_names_or_nesting_at_a_later_element_are_an_error_each(other):
    def made(n):
        return twice(n).map(other if n == 4 else lambda x: {"a": x})

    for dataset in (
        Dataset.range(6).flat_map(made),
        Dataset.range(6).interleave(made, cycle_length=1),
    ):
        assert [x["a"].item() for x in dataset.ignore_errors()] == [0, 0, 1, 1, 2, 2, 3, 3, 5, 5]
        with error_saying(
            TypeError, "The function returned datasets whose elements differ …", fix="…"
        ):
            list(dataset)


@pytest.mark.parametrize("refused", [0, 1, 2])
def test_lengths_that_follow_those_of_elements_are_open_though_a_value_is_refused(refused):
    rows = tf.data.Dataset.from_generator(
        lambda: iter([np.array([5, 6, 7]), np.array([8])]),
        output_signature=tf.TensorSpec([None], tf.int64),
    )

    def picky(row):
        if int(row[0]) == refused:
            raise ValueError("refused")
        return tf.data.Dataset.from_tensors(row)

    dataset = rows.flat_map(picky)
    assert dataset.element_spec.shape.as_list() == [None]
    assert [row.tolist() for row in dataset] == [[5, 6, 7], [8]]


def test_long_datasets_are_read_in_whole_rounds():
    long = tf.data.Dataset.range(3).interleave(
        lambda x: tf.data.Dataset.range(x * 10**6, (x + 1) * 10**6), cycle_length=3, block_length=2
    )
    operator = build(plan_of(long), Run(plan_of(long)))
    first = [operator.read(2) for _ in range(3)]  # opens them
    assert [block.columns[0].tolist() for block in first] == [
        [base, base + 1] for base in (0, 10**6, 2 * 10**6)
    ]
    numbers = operator.read(61).columns[0].tolist()
    expected = [
        base + 2 * turn + place
        for turn in range(1, 11)
        for base in (0, 10**6, 2 * 10**6)
        for place in range(2)
    ]
    assert numbers == expected


def test_a_failing_element_of_a_long_dataset_keeps_its_turn():
    def number(y):
        return y + tf.gather(tf.constant([0], tf.int64), tf.where(y == 10**6 + 3, 1, 0))

    def numbers(x):
        return tf.data.Dataset.range(x * 10**6, (x + 1) * 10**6).map(number)

    iterator, found = iter(tf.data.Dataset.range(2).interleave(numbers, cycle_length=2)), []
    for _ in range(12):
        try:
            found.append(int(next(iterator)))
        except tf.errors.InvalidArgumentError:
            found.append(None)
    millions = 10**6 + np.array([0, 1, 2, 4, 5])
    zero, one, two, four, five = millions.tolist()
    assert found == [0, zero, 1, one, 2, two, 3, None, four, 4, five, 5]
