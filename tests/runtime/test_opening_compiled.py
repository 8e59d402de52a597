"""Functions that make datasets and call a `tf.function`: traced with what it computes, unless that rounds."""

import jax
import numpy as np
import pytest
from tests.plans import through_json
from tests.runtime.test_opening import assert_same, at_once, is_template, one_by_one

import evenfeed as tf
from evenfeed.runtime.functions import finding_templates as templates

Dataset = tf.data.Dataset
FLOATS = np.random.default_rng(0).random((300, 7)).astype(np.float32)


@tf.function
def tripled(n):
    return n * 3


@tf.function
def scaled(row):
    return row * 0.1 + 0.3


@tf.function
def guarded(n):
    try:
        return tf.constant(int(n))
    except Exception:  # noqa: BLE001 - what the test is about
        return tf.constant(2)


class Holder:
    factor = 2

    @tf.function
    def times(self, n):
        return n * self.factor


class Guarded:
    @tf.function
    def made(self, n):
        return Dataset.range(self.size(n))

    def size(self, n):
        try:
            return int(n)
        except Exception:  # noqa: BLE001 - what the test is about
            return 2


HOLDER = Holder()
FUNCTIONS = {
    "a function": lambda n: Dataset.range(tripled(n), tripled(n) + 2),
    "a method": lambda n: Dataset.range(HOLDER.times(n)),
    "a function of JAX": lambda n: Dataset.range(jax.jit(lambda x: x + 2)(n % 3)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_of_what_compiled_functions_compute_are_read_at_once(name, monkeypatch):
    one_by_one(monkeypatch)
    expected = list(Dataset.range(30).flat_map(FUNCTIONS[name]))
    at_once(monkeypatch)
    dataset = Dataset.range(30).flat_map(FUNCTIONS[name])
    assert_same(dataset, expected)
    assert is_template(dataset)


def test_compiled_functions_that_round_are_called_for_each_element(monkeypatch):
    def rows():
        return Dataset.from_tensor_slices(FLOATS).flat_map(
            lambda row: Dataset.from_tensors(scaled(row))
        )

    one_by_one(monkeypatch)
    expected = list(rows())
    at_once(monkeypatch)
    dataset = rows()
    assert_same(dataset, expected)
    assert not is_template(dataset)


@pytest.mark.parametrize("function", [lambda n: Dataset.range(guarded(n)), Guarded().made])
def test_compiled_functions_that_catch_errors_get_each_element(function, monkeypatch):
    one_by_one(monkeypatch)
    expected = list(Dataset.range(5).flat_map(function))
    at_once(monkeypatch)
    dataset = Dataset.range(5).flat_map(function)
    assert_same(dataset, expected)
    assert not is_template(dataset)


def test_what_a_compiled_function_counts_is_counted_as_without_a_template(monkeypatch):
    def read():
        calls = []

        @tf.function
        def counted(n):
            calls.append(1)
            return n * len(calls)

        found = list(Dataset.range(9).flat_map(lambda n: Dataset.range(counted(n))))
        return found, len(calls)

    one_by_one(monkeypatch)
    expected, count = read()
    at_once(monkeypatch)
    found, times = read()
    assert_same(found, expected)
    assert times == count


def test_a_position_inside_a_dataset_of_a_compiled_function_is_restored(monkeypatch):
    at_once(monkeypatch)
    expected = list(Dataset.range(9).flat_map(FUNCTIONS["a function"]))
    iterator = iter(Dataset.range(9).flat_map(FUNCTIONS["a function"]))
    for done in range(1, 12):
        next(iterator)
        state = through_json(iterator.get_state())
        for after in (1, -1):
            monkeypatch.setattr(templates, "COMPUTED_AFTER", after)
            restored = iter(Dataset.range(9).flat_map(FUNCTIONS["a function"]))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])
