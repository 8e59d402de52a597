"""Datasets that functions make of what they compute, read at once."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from tests.plans import through_json
from tests.runtime.test_opening import WAYS, assert_same, at_once, is_template, one_by_one

import evenfeed as tf
from evenfeed.runtime.functions import finding_templates as templates
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.operators.inner import opening

Dataset = tf.data.Dataset
NUMBERS = np.random.default_rng(0).integers(0, 90, (30, 6)).astype(np.int32)
FLOATS = NUMBERS / np.float32(7)
LINES = np.array([f"a{n} b c{n % 3}"[: n + 2] for n in range(30)], object)


def numbers():
    return Dataset.range(30)


def rows():
    return Dataset.from_tensor_slices(NUMBERS)


def named():
    return Dataset.from_tensor_slices({"row": NUMBERS, "id": np.arange(30)})


def of_all_lengths():
    return numbers().map(lambda n: tf.range(n % 4))


def beside_square(n):
    square = n * n
    return Dataset.range(3).map(lambda x: x + square)


FUNCTIONS = {
    "range": (numbers, lambda n: Dataset.range(n, n + 4)),
    "remainder": (numbers, lambda n: Dataset.range(n % 5)),
    "choice": (numbers, lambda n: Dataset.range(tf.where(n % 2 == 0, n % 3, 2))),
    "stack": (rows, lambda row: Dataset.from_tensor_slices(tf.stack([row, row * 2]))),
    "list": (numbers, lambda n: Dataset.from_tensor_slices([n, n + 1, n + 2])),
    "float32": (numbers, lambda n: Dataset.from_tensor_slices(tf.cast([n, n + 1], tf.float32))),
    "slice": (rows, lambda row: Dataset.from_tensor_slices((row[:-1], row[1:]))),
    "sum": (rows, lambda row: Dataset.from_tensors((tf.reduce_sum(row), row)).repeat(2)),
    "default ints": (
        numbers,
        lambda n: Dataset.from_tensor_slices(tf.range(3) + tf.cast(n, tf.int32)),
    ),
    "arithmetic": (
        lambda: Dataset.from_tensor_slices(FLOATS),
        lambda row: Dataset.from_tensor_slices(row * 0.1 + 0.3),
    ),
    "dict": (
        named,
        lambda part: Dataset.from_tensor_slices({"a": part["row"] + 1, "b": part["row"] * 2}),
    ),
    "captured dict": (
        named,
        lambda part: Dataset.range(part["id"] % 3).map(lambda n: (n + part["id"], part["row"][0])),
    ),
    "captured value": (numbers, beside_square),
    "words": (
        lambda: Dataset.from_tensor_slices(LINES),
        lambda line: Dataset.from_tensor_slices(tf.strings.split(line)),
    ),
    "text": (
        lambda: Dataset.from_tensor_slices(LINES),
        lambda line: Dataset.from_tensors(tf.strings.join([line, "!"])).repeat(2),
    ),
    "nested": (
        lambda: Dataset.range(12),
        lambda n: Dataset.range(n % 3 + 1).flat_map(
            lambda m: Dataset.from_tensors(n * m).repeat(2)
        ),
    ),
    "rows of all lengths": (of_all_lengths, lambda row: Dataset.from_tensor_slices(row * 2)),
    "take": (numbers, lambda n: Dataset.range(4).take(n % 6 - 1)),
    "skip": (numbers, lambda n: Dataset.range(4).skip(n % 6 - 1)),
    "repeat": (numbers, lambda n: Dataset.from_tensor_slices([n, -n]).repeat(n % 3)),
    "repeat by a part": (numbers, lambda n: Dataset.range(2).repeat(n)),
    "batches": (numbers, lambda n: Dataset.range(n, n + 5).batch(3)),
    "padded batches": (numbers, lambda n: Dataset.range(n, n + 5).padded_batch(3)),
    "padded to a shape": (
        of_all_lengths,
        lambda row: Dataset.from_tensors(row).repeat(3).padded_batch(2, [5], np.int64(-1)),
    ),
    "padded windows": (
        lambda: of_all_lengths().window(4),
        lambda window: window.padded_batch(3, drop_remainder=True),
    ),
    "rows of batches": (rows, lambda row: Dataset.from_tensors(row + 1).repeat(2).unbatch()),
    "numbered windows": (
        lambda: numbers().window(3).enumerate(),
        lambda n, window: window.take(n % 3 + 1).map(lambda x: x * n),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_of_computed_values_have_the_elements_of_those_read_one_by_one(name, monkeypatch):
    source, function = FUNCTIONS[name]
    for way in ("flat_map", "interleave blocks"):
        one_by_one(monkeypatch)
        separate = WAYS[way](source(), function)
        expected = list(separate)
        at_once(monkeypatch)
        dataset = WAYS[way](source(), function)
        assert_same(dataset, expected)
        assert is_template(dataset)
        assert dataset.element_spec == separate.element_spec
        assert_same(dataset.shuffle(1).take(9), expected[:9])


@pytest.mark.parametrize("way", ["flat_map", "interleave"])
@pytest.mark.parametrize("name", ["remainder", "repeat", "padded batches", "words"])
def test_a_position_inside_a_computed_dataset_is_restored(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    expected = list(dataset)
    iterator = iter(dataset)
    for done in range(1, 9):
        next(iterator)
        state = through_json(iterator.get_state())
        for after in (0, -1):
            monkeypatch.setattr(templates, "COMPUTED_AFTER", after)
            restored = iter(WAYS[way](source(), function))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])


def test_an_element_that_cannot_be_computed_keeps_its_place(monkeypatch):
    divisors = np.array([3, 1, 2, 0, 4, 5, 1])

    def read():
        source = Dataset.from_tensor_slices(divisors)
        found, iterator = [], iter(source.flat_map(lambda n: Dataset.range(6 // n)))
        while True:
            try:
                found.append(int(next(iterator)))
            except StopIteration:
                return found
            except tf.errors.InvalidArgumentError as error:
                found.append(str(error))

    one_by_one(monkeypatch)
    expected = read()
    assert sum(type(each) is str for each in expected) == 1
    at_once(monkeypatch)
    assert read() == expected


def test_a_count_without_end_reads_one_dataset_after_the_other(monkeypatch):
    at_once(monkeypatch)
    dataset = Dataset.range(5).flat_map(lambda n: Dataset.from_tensors(n).repeat(2 - n))
    assert [int(x) for x in dataset.take(6)] == [0, 0, 1, 3, 3, 3]


@pytest.mark.parametrize(
    "function",
    [
        lambda row: Dataset.from_tensor_slices(tf.sin(row)),
        lambda row: Dataset.from_tensors(tf.reduce_sum(row)),
        lambda row: Dataset.range(int(row[0]) % 3),
        lambda row: Dataset.from_tensor_slices(row + tf.random.uniform([])),
        lambda row: Dataset.range(2).map(lambda n, factor=row[0] * 2: factor),
    ],
    ids=["rounds", "adds in any order", "uses the value", "draws", "default"],
)
def test_functions_whose_results_depend_on_the_way_to_call_them_are_called_for_each_element(
    function, monkeypatch
):
    at_once(monkeypatch)
    dataset = Dataset.from_tensor_slices(FLOATS).flat_map(function)
    list(dataset)
    assert not is_template(dataset)


def caught(n):
    try:
        return Dataset.range(int(n))
    except TypeError:  # that of a tracer is one
        return Dataset.range(n * 0)


class Catches:
    def make(self, n):
        return caught(n)

    def __call__(self, n):
        return self.make(n)


@pytest.mark.parametrize(
    "function", [caught, lambda n: caught(n + 0), partial(caught), Catches(), Catches().make]
)
def test_a_function_that_catches_the_error_for_a_missing_value_gets_each_element(
    function, monkeypatch
):
    at_once(monkeypatch)
    found = [int(x) for x in Dataset.range(4).flat_map(function)]
    assert found == [0, 0, 1, 0, 1, 2]


def test_the_number_of_elements_that_an_element_decides_is_not_known_early(monkeypatch):
    def sized(n):
        dataset = Dataset.range(9).take(n % 4)
        return dataset.map(lambda _: dataset.cardinality())

    at_once(monkeypatch)
    found = [int(x) for x in Dataset.range(4).flat_map(sized)]
    assert found == [1, 2, 2, 3, 3, 3]


def test_a_dataset_is_freed_whose_function_refers_to_it(monkeypatch):
    class Owner:
        def __init__(self):
            self.step = 2
            self.dataset = Dataset.range(20).flat_map(lambda n: Dataset.range(n, n + self.step))

    at_once(monkeypatch)
    owner = Owner()
    assert len(list(owner.dataset)) == 40
    assert is_template(owner.dataset)
    freed = weakref.ref(owner)
    del owner
    gc.collect()
    assert freed() is None


@pytest.fixture
def made(monkeypatch):
    """Count the datasets that functions are called for."""
    calls, make = [], InnerDatasets.make

    def counted(self, *args):
        calls.append(args)
        return make(self, *args)

    monkeypatch.setattr(InnerDatasets, "make", counted)
    return calls


def test_datasets_that_are_too_large_together_are_read_in_smaller_groups(made):
    def few_of_many(n):
        return Dataset.range(100).take_while(lambda x: x < n % 3)

    found = [int(x) for x in Dataset.range(3000).flat_map(few_of_many)]
    assert found == [x for n in range(3000) for x in range(n % 3)]
    assert len(made) < 100


def test_the_datasets_around_one_that_fails_are_read_at_once(made):
    table = np.arange(10)
    indices = np.arange(3000) % 10
    indices[2000] = 99
    dataset = Dataset.from_tensor_slices(indices).flat_map(
        lambda index: Dataset.range(2).map(lambda x: tf.gather(table, index + x - x))
    )
    found = [int(x) for x in dataset.ignore_errors()]
    assert found == [number % 10 for number in range(3000) if number != 2000 for _ in range(2)]
    assert len(made) < 100


def test_one_long_dataset_among_short_ones_is_the_only_one_that_is_opened_alone(monkeypatch):
    calls = []
    own = opening.OpensAtOnce.next
    monkeypatch.setattr(opening.OpensAtOnce, "next", lambda *args: calls.append(1) or own(*args))
    lengths = np.full(4000, 3)
    lengths[10] = 200_000
    dataset = tf.data.Dataset.from_tensor_slices(lengths).flat_map(tf.data.Dataset.range)
    assert sum(len(batch) for batch in dataset.batch(4096)) == lengths.sum()
    assert len(calls) < 100
