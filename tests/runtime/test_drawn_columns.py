"""tf.random in a map: random operations draw columns for whole Blocks, the numbers of one call after another."""

import warnings

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.dataset import plan_of

Dataset = tf.data.Dataset
ROWS = np.arange(60, dtype=np.float32).reshape(12, 5)

DRAWS = {
    "normal": lambda x: tf.random.normal([3], seed=3),
    "normal, 64 bits": lambda x: tf.random.normal([3], seed=3, dtype=tf.float64),
    "normal around an element": lambda x: tf.random.normal([3], mean=x[0], seed=3),
    "uniform": lambda x: tf.random.uniform([], seed=3),
    "uniform, 16 bits": lambda x: tf.random.uniform([5], dtype=tf.float16, seed=3),
    "a die": lambda x: tf.random.uniform([2], 1, 7, tf.int32, seed=3),
    "wide integers": lambda x: tf.random.uniform([2], 1, 2**40, tf.int64, seed=3),
    "truncated": lambda x: tf.random.truncated_normal([5], seed=3),
    "truncated, 64 bits": lambda x: tf.random.truncated_normal([3], seed=3, dtype=tf.float64),
    "classes": lambda x: tf.random.categorical(x[None], 3, seed=3),
    "shuffle": lambda x: tf.random.shuffle(x, seed=3),
    "dropout": lambda x: tf.nn.dropout(x, 0.5, seed=3),
    "gamma": lambda x: tf.random.gamma([2], 1.5, seed=3),
    "no seed of its own": lambda x: tf.random.normal([3]),
    "several": lambda x: (
        tf.random.normal([2], seed=1),
        tf.random.uniform([2], seed=1),
        tf.random.normal([2], seed=1),
        tf.random.shuffle(x, seed=0),
    ),
}


@pytest.fixture(autouse=True)
def _without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    tf.random.set_seed(None)


def rows_of(dataset):
    return [[np.asarray(part) for part in tf.nest.flatten(element)] for element in dataset]


def same(one, two):
    for left, right in zip(rows_of(one), rows_of(two), strict=True):
        for a, b in zip(left, right, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_whole_blocks_get_the_numbers_of_single_calls(name):
    tf.random.set_seed(7)
    rows = Dataset.from_tensor_slices(ROWS)
    dataset = rows.map(DRAWS[name])
    singly = rows.map(DRAWS[name], vectorize=False)
    assert plan_of(dataset).function.way == "vectorised"
    for arranged in (
        lambda d: d,
        lambda d: d.batch(5),
        lambda d: d.repeat(2).batch(7),
        lambda d: d.prefetch(2),
    ):
        same(arranged(dataset), arranged(singly))


@pytest.mark.parametrize("seed", [None, 7])
def test_uniform_numbers_are_those_of_eager_code_to_the_last_bit(seed):
    tf.random.set_seed(seed)
    dataset = Dataset.range(5).map(lambda x: tf.random.uniform([4], seed=3))
    found = rows_of(dataset)
    tf.random.set_seed(seed)
    eager = [np.asarray(tf.random.uniform([4], seed=3)) for _ in range(5)]
    np.testing.assert_array_equal([row[0] for row in found], eager)


def test_without_seeds_every_element_of_every_pass_differs():
    dataset = Dataset.range(6).map(lambda x: tf.random.uniform([2]))
    drawn = [tuple(row[0].tolist()) for _ in range(2) for row in rows_of(dataset)]
    assert len(set(drawn)) == 12


def test_two_iterators_do_not_share_numbers():
    dataset = Dataset.range(5).map(lambda x: tf.random.uniform([], seed=3))
    one, two = iter(dataset), iter(dataset)
    turns = [float(next(one)) == float(next(two)) for _ in range(5)]
    assert turns == [True] * 5


def test_an_element_that_fails_takes_its_numbers_along():
    table = np.arange(3)

    def picked(x):
        return tf.gather(table, x), tf.random.uniform([], seed=3)

    def drawn(numbers, **how):
        iterator = iter(Dataset.from_tensor_slices(numbers).map(picked, **how).batch(1).unbatch())
        found = []
        for _ in numbers:
            try:
                found.append(float(next(iterator)[1]))
            except tf.errors.InvalidArgumentError:
                found.append(None)
        return found

    whole = drawn([0, 1, 2, 0, 1])
    assert drawn([0, 1, 9, 0, 1]) == [*whole[:2], None, *whole[3:]]


def test_a_filter_draws_once_for_each_element():
    def kept(draw):
        return [int(x) for x in Dataset.range(200).filter(draw)]

    def often(x):
        return tf.random.uniform([], seed=3) < 0.1

    every = [float(x) for x in Dataset.range(200).map(lambda x: tf.random.uniform([], seed=3))]
    assert kept(often) == [x for x, number in enumerate(every) if number < 0.1]


@pytest.mark.parametrize("text", [False, True])
def test_a_draw_beside_a_kernel_runs_on_whole_blocks(text):
    source = Dataset.from_tensor_slices(["a", "bb", "ccc"] if text else [1, 2, 3])
    dataset = source.map(
        lambda x: (
            tf.random.uniform([], seed=3),
            tf.strings.length(x) if text else x,
            tf.random.uniform([], seed=3),
        )
    )
    assert plan_of(dataset).function.way == "vectorised"
    first = [float(x) for x in source.map(lambda _: tf.random.uniform([], seed=3))]
    assert [(float(a), int(n), float(b)) for a, n, b in dataset] == [
        (number, length, number) for number, length in zip(first, (1, 2, 3), strict=True)
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.cond(x[0] > 1, lambda: tf.random.uniform([], seed=3), lambda: 0.0),
        lambda x: tf.map_fn(lambda y: y + tf.random.uniform([], seed=3), x),
    ],
    ids=["cond", "map_fn"],
)
def test_a_draw_inside_a_transformation_runs_per_element(function):
    with pytest.warns(UserWarning, match="so it runs once per element"):
        dataset = Dataset.from_tensor_slices(ROWS).map(function)
    assert plan_of(dataset).function.way == "per element"
    same(dataset, Dataset.from_tensor_slices(ROWS).map(function, vectorize=False))


def test_a_function_that_draws_more_for_longer_elements_keeps_its_spec():
    def noise(x):
        return tf.random.normal([tf.shape(x)[0], 2], seed=3)

    with pytest.warns(UserWarning, match="so it runs once per element"):
        dataset = Dataset.range(1, 5).map(tf.range, vectorize=False).map(noise)
    assert dataset.element_spec == tf.TensorSpec([None, 2], tf.float32)
    assert [x.shape for x in dataset] == [(n, 2) for n in range(1, 5)]


def test_elements_of_several_lengths_draw_alike():
    lengths = [2, 3, 2, 3, 3, 2, 4] * 3
    rows = Dataset.from_tensor_slices(lengths).map(tf.range, vectorize=False)

    def noisy(x):
        return tf.reduce_sum(x), tf.random.uniform([], seed=3)

    expected = [float(x) for x in Dataset.range(21).map(lambda _: tf.random.uniform([], seed=3))]
    assert [float(number) for _, number in rows.map(noisy)] == expected


def test_draws_in_a_map_of_a_flat_map_continue_from_dataset_to_dataset():
    def inner(_):
        return Dataset.range(3).map(lambda x: tf.random.uniform([], seed=3))

    found = [float(x) for x in Dataset.range(4).flat_map(inner)]
    whole = [float(x) for x in Dataset.range(12).map(lambda x: tf.random.uniform([], seed=3))]
    assert found == whole


def test_truncated_numbers_of_many_rows_are_those_of_single_calls():
    def draw(x):
        return tf.random.truncated_normal([2], seed=3, dtype=tf.float64)

    drawn = np.concatenate(list(Dataset.range(20000).map(draw).batch(4096)))
    assert abs(drawn).max() < 2
    singly = list(Dataset.range(300).map(draw, vectorize=False))
    np.testing.assert_array_equal(drawn[:300], singly)
