import numpy as np
import pytest

import evenfeed as tf
from evenfeed.dataset import Dataset


class Seen:
    """A function that needs values, and records its arguments."""

    def __init__(self, fails_at=()):
        self.calls = []
        self.fails_at = fails_at

    def __call__(self, x):
        self.calls.append(int(x))
        if int(x) in self.fails_at:
            raise RuntimeError("not this one")
        return np.arange(int(x))


def lengths(dataset):
    return [len(x) for x in dataset]


@pytest.mark.parametrize("how", [{}, {"num_parallel_calls": 2}, {"vectorize": False}])
def test_a_function_whose_result_told_the_spec_is_not_called_again(how):
    seen = Seen()
    dataset = Dataset.range(4).map(seen, **how)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int64)
    assert seen.calls == [0]
    assert lengths(dataset) == [0, 1, 2, 3]
    assert sorted(seen.calls) == [0, 1, 2, 3]
    assert lengths(dataset) == [0, 1, 2, 3]
    assert sorted(seen.calls) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_one_of_two_passes_at_a_time_has_what_was_called_before():
    seen = Seen()
    dataset = Dataset.range(3).map(seen)
    _ = dataset.element_spec
    one, two = iter(dataset), iter(dataset)
    assert lengths(two) == lengths(one) == [0, 1, 2]
    assert seen.calls == [0, 0, 1, 2, 1, 2]


def test_an_error_of_the_first_element_is_raised_once_with_one_note():
    seen = Seen(fails_at=[0])
    dataset = Dataset.range(3).map(seen)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int64)
    iterator = iter(dataset)
    with pytest.raises(RuntimeError, match="not this one") as caught:
        next(iterator)
    assert len(caught.value.__notes__) == 1
    assert lengths(iterator) == [1, 2]
    assert seen.calls == [0, 1, 2]


def test_an_element_that_failed_below_has_a_number_too():
    seen = Seen()

    def below(x):
        if int(x) == 0:
            raise RuntimeError("below")
        return x

    dataset = Dataset.range(3).map(below, output_signature=tf.TensorSpec([], tf.int64)).map(seen)
    _ = dataset.element_spec
    assert lengths(dataset.ignore_errors()) == [1, 2]
    assert seen.calls == [1, 2]


def test_scan_calls_its_function_once_for_each_element():
    calls = []

    def fold(state, x):
        calls.append(int(x))
        return state + int(x), state

    assert [int(x) for x in Dataset.range(4).scan(np.int64(0), fold)] == [0, 0, 1, 3]
    assert calls == [0, 1, 2, 3]


def test_a_state_of_the_first_element_is_taken_up_with_a_call():
    seen = Seen()
    dataset = Dataset.range(3).map(seen)
    iterator = iter(dataset)
    state = iterator.get_state()
    assert lengths(iterator) == [0, 1, 2]
    again = iter(dataset)
    again.set_state(state)
    assert lengths(again) == [0, 1, 2]
    assert seen.calls == [0, 1, 2, 0, 1, 2]


def test_datasets_of_the_first_elements_have_the_orders_of_those_that_are_made_later():
    def mixed(x):
        return Dataset.range(8 + 0 * int(x)).shuffle(8, seed=1)

    dataset = Dataset.range(3).flat_map(mixed)
    assert dataset.element_spec == tf.TensorSpec([], tf.int64)  # from a call with the first element
    passes = [[int(x) for x in dataset] for _ in range(2)]
    assert passes[0] == passes[1] == 3 * passes[0][:8]


def test_a_first_result_without_parts_is_remembered_too():
    called = []

    def nothing(x):
        called.append(int(x))
        return ()

    dataset = Dataset.range(3).map(nothing, vectorize=False)
    assert [len(element) for element in dataset] == [0, 0, 0]
    assert called == [0, 1, 2]
