"""tf.random in a map that several readers share: the numbers never depend on how the dataset is read."""

import numpy as np
import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def _without_seed():
    yield
    tf.random.set_seed(None)


def uniform(_):
    return tf.random.uniform([], seed=1)


def drawing(count, **how):
    return Dataset.range(count).map(uniform, **how)


def zipped(dataset):
    return Dataset.zip(dataset, dataset)


def doubled(dataset):
    return dataset.concatenate(dataset)


def in_turn(inner, **how):
    return Dataset.range(4).interleave(inner, cycle_length=3, block_length=2, **how)


def again_in_turn(dataset):
    return in_turn(lambda x: dataset)


def two_takes(dataset):
    return Dataset.zip(dataset.take(5), dataset.take(5))


def beside_prefetch(dataset):
    return Dataset.zip(dataset.prefetch(2), dataset)


def chosen(dataset):
    turns = Dataset.from_tensor_slices(np.array([0, 1, 0, 0, 1, 1, 0, 1, 0]))
    return Dataset.choose_from_datasets([dataset, dataset], turns)


def beside_one():
    return [drawing(10), Dataset.from_tensors(np.float32(-1))]


def stopping_choices():
    turns = Dataset.from_tensor_slices(np.array([0, 1, 0, 0, 1, 0, 0, 0]))
    return Dataset.choose_from_datasets(beside_one(), turns, stop_on_empty_dataset=True)


def stopping_sample():
    return Dataset.sample_from_datasets(
        beside_one(), weights=[0.8, 0.2], seed=2, stop_on_empty_dataset=True
    )


def drawn(dataset):
    return dataset.filter(lambda x: x >= 0)


def pairs(count):
    return [number for number in range(count) for _ in range(2)]


# Each dataset, and which numbers of the function's sequence TensorFlow's elements hold, one after the other.
READ_BY_SEVERAL = {
    "zip": (lambda: zipped(drawing(20)), pairs(20)),
    "zip of threads": (lambda: zipped(drawing(6, num_parallel_calls=2)), pairs(6)),
    "zip, per element": (lambda: zipped(drawing(20, vectorize=False)), pairs(20)),
    "zip of take": (lambda: zipped(drawing(20).take(5)), pairs(5)),
    "zip of two takes": (
        lambda: two_takes(drawing(20)),
        pairs(5),
    ),
    "zip of prefetch": (
        lambda: beside_prefetch(drawing(20)),
        pairs(20),
    ),
    "zip, repeated": (lambda: zipped(drawing(3)).repeat(2), pairs(6)),
    "zip of flat_map": (
        lambda: zipped(Dataset.range(3).flat_map(lambda x: drawing(2))),
        pairs(6),
    ),
    "zip of filter": (
        lambda: zipped(drawing(12).filter(lambda x: x >= 0)),
        pairs(12),
    ),
    "concatenate": (lambda: doubled(drawing(5)), [*range(5), *range(5)]),
    "concatenate, repeated": (
        lambda: doubled(drawing(2)).repeat(2),
        [0, 1, 0, 1, 2, 3, 2, 3],
    ),
    "choose": (lambda: chosen(drawing(6)), [0, 0, 1, 2, 1, 2, 3, 3, 4]),
    "interleave": (lambda: in_turn(lambda x: drawing(5)), range(20)),
    "interleave in threads": (
        lambda: in_turn(lambda x: drawing(5), num_parallel_calls=2),
        range(20),
    ),
    "interleave of a dataset that exists": (
        lambda: again_in_turn(drawing(5)),
        range(20),
    ),
    "interleave of take": (lambda: in_turn(lambda x: drawing(100).take(3)), range(12)),
    "interleave of batches": (lambda: in_turn(lambda x: drawing(8).batch(2).unbatch()), None),
    "interleave of shuffle": (lambda: in_turn(lambda x: drawing(7).shuffle(3, seed=2)), None),
    "interleave of zip": (lambda: in_turn(lambda x: zipped(drawing(5))), None),
    "two functions of one line": (
        lambda: Dataset.range(2).flat_map(
            lambda x: Dataset.range(4).map(lambda y: uniform(y) + 0).map(lambda y: (y, uniform(y)))
        ),
        pairs(8),
    ),
    "take, repeated": (
        lambda: drawing(20).filter(lambda x: x >= 0).take(3).repeat(3),
        range(9),
    ),
    "zip with a shorter one, repeated": (
        lambda: Dataset.zip(drawing(10), Dataset.range(3)).map(lambda x, _: x).repeat(3),
        [0, 1, 2, 4, 5, 6, 8, 9, 10],
    ),
    "zip of unknown sizes, repeated": (
        lambda: (
            Dataset.zip(drawing(10), Dataset.range(3).filter(lambda x: x >= 0))
            .map(lambda x, _: x)
            .repeat(3)
        ),
        [0, 1, 2, 4, 5, 6, 8, 9, 10],
    ),
    "take_while, repeated": (
        lambda: drawing(10).take_while(lambda x: x < 0.98).repeat(3),
        [0, *range(2, 12)],
    ),
    "choose that stops early, repeated": (lambda: drawn(stopping_choices()).repeat(3), range(9)),
    "sample that stops early, repeated": (lambda: drawn(stopping_sample()).repeat(4), range(16)),
    "windows": (
        lambda: Dataset.range(8).group_by_window(
            lambda x: x % 2, lambda key, window: window.map(uniform), window_size=3
        ),
        range(8),
    ),
}


def numbers(elements):
    return [float(part) for element in elements for part in tf.nest.flatten(element)]


def in_batches(size):
    def read(dataset):
        for batch in dataset.batch(size):
            yield from zip(*map(list, tf.nest.flatten(batch)), strict=True)

    return read


@pytest.fixture(scope="module")
def sequence():
    """Return the numbers that the function draws one after the other."""
    tf.random.set_seed(5)
    return numbers(drawing(60))


@pytest.mark.parametrize("name", READ_BY_SEVERAL)
def test_draws_do_not_depend_on_how_a_dataset_is_read(name, sequence):
    make, expected = READ_BY_SEVERAL[name]
    tf.random.set_seed(5)
    dataset = make()
    found = [
        [sequence.index(number) for number in numbers(read(dataset))]
        for read in (*[list] * 4, in_batches(3), in_batches(7))
    ]
    assert found == [found[0]] * 6
    if expected is not None:
        assert found[0] == list(expected)


def test_a_function_whose_spec_needs_an_element_draws_alike_in_all_places(sequence):
    def noisy(x):
        return uniform(x) + 0 * float(x)

    tf.random.set_seed(5)
    known = Dataset.range(6).map(noisy, vectorize=False).map(lambda x: (x, uniform(x)))
    dataset = Dataset.zip(Dataset.range(6).map(float), zipped(known))
    assert [numbers(pair) for _, pair in dataset] == [[sequence[n]] * 4 for n in range(6)]
