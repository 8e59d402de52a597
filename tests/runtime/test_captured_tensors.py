"""Functions that differ only in the values of small tensors that they capture are traced once for all of them."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.runtime.functions import compared_traces, vectorise
from evenfeed.runtime.functions.reach.captured_tensors import (
    key_of_straight_code,
    key_without_values,
    tensors_of,
)


def adding(held):
    return lambda x: x + held


def mapped(make, held, count=5):
    return tf.data.Dataset.range(count).map(make(held))


def compiled(dataset):
    return dataset._plan.function.traced[0]


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def test_functions_that_differ_in_a_captured_tensor_share_programs():
    made = [mapped(adding, np.int64(held)) for held in range(6)]
    assert compiled(made[4]) is compiled(made[5])
    assert [numbers(one) for one in made] == [[x + held for x in range(5)] for held in range(6)]


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
@pytest.mark.parametrize(
    "make",
    [
        adding,
        lambda held: lambda x, more=held: (x * more, more),
        lambda held: lambda x: {"a": tf.cast(held, tf.float32), "b": tf.where(x > 2, held, held)},
        lambda held: lambda x: held / 2 + tf.cast(x, held.dtype) if held.dtype != bool else x,
    ],
)
def test_results_and_specs_are_those_of_fixed_tensors(dtype, shape, make):
    chance = np.random.default_rng(0)
    for count in range(1, 6):
        held = chance.integers(0, 2 if dtype == "bool" else 9, shape).astype(dtype)
        found = mapped(make, held, 4)
        fixed = tf.data.Dataset.range(4).map(make(held), vectorize=False)
        assert found.element_spec == fixed.element_spec, count
        for one, two in zip(found, fixed, strict=True):
            tf.nest.map_structure(np.testing.assert_array_equal, one, two)


def test_another_dtype_or_shape_is_another_function():
    for held in (np.int64(1), np.float32(1.5), np.arange(2), np.arange(3)):
        for _ in range(5):
            assert numbers(mapped(adding, held, 2)) == [
                (np.int64(0) + held).tolist(),
                (np.int64(1) + held).tolist(),
            ]


@pytest.mark.parametrize(
    "make",
    [
        lambda held: lambda x: x + int(held),
        lambda held: lambda x: x + 1 if held > 2 else x,
        lambda held: lambda x: tf.zeros([held], tf.int64) + x,
        lambda held: lambda x: x * isinstance(held, np.ndarray),
        lambda held: lambda x: tf.sin(tf.cast(x * held, tf.float32)),
        lambda held: lambda x: x // (held + 1),
    ],
)
def test_functions_that_need_the_value_still_get_it(make):
    for number in range(1, 7):
        held = np.array(number)
        expected = numbers(tf.data.Dataset.range(3).map(make(held), vectorize=False))
        assert numbers(mapped(make, held, 3)) == expected


@pytest.mark.parametrize(
    "make",
    [
        lambda held: lambda x: tf.pow(x, held),
        lambda held: lambda x: x**held,
        lambda held: lambda x: tf.math.bincount(held[None], minlength=4, maxlength=4) + x,
        lambda held: lambda x: (x, 1 if held.__class__ is np.ndarray else 2),
    ],
)
def test_functions_that_check_values_check_those_of_each_function(make):
    for number in range(1, 6):
        held = np.array(number)
        expected = [tf.nest.map_structure(int_or_list, x) for x in one_by_one(make(held))]
        assert [tf.nest.map_structure(int_or_list, x) for x in mapped(make, held, 3)] == expected
    if "pow" in make(1).__code__.co_names:
        with pytest.raises(tf.errors.InvalidArgumentError):
            numbers(mapped(make, np.array(-1), 3))


def one_by_one(function):
    return tf.data.Dataset.range(3).map(function, vectorize=False)


def int_or_list(value):
    return np.asarray(value).tolist()


def test_a_later_write_to_a_captured_array_changes_nothing():
    for number in range(6):
        held = np.array([number])
        dataset = mapped(adding, held, 2)
        held[0] = 100
        assert numbers(dataset) == [[number], [number + 1]]


def test_a_function_may_capture_more_than_tensors_only_if_that_is_certain_to_stay():
    held = np.array(1)
    scale = 3
    assert key_without_values(lambda x: x * held + scale) is not None
    table = [1]
    for function in (
        lambda x: x * scale,
        lambda x: x * held + table[0],
        lambda x: x + np.zeros(1000) * held if table else x,
        lambda x: x + held + np.random.rand(),
    ):
        assert key_without_values(function) is None


def test_large_tensors_and_texts_are_not_opened():
    large, text = np.zeros(1000), np.array([b"a"], object)
    assert key_without_values(lambda x: x + large) is None
    assert key_without_values(lambda x: (x, text)) is None
    assert tensors_of(lambda x: x + large) == ()


@pytest.mark.parametrize("steps", [0, 1, 7, 25, 26])
def test_a_pass_over_inner_datasets_resumes_where_it_was(steps):
    def unlike(n):
        inner = tf.data.Dataset.range(6).map(lambda x: x * n)
        return inner.shuffle(3, seed=1).filter(lambda x: x != n).unique()

    dataset = tf.data.Dataset.range(8).flat_map(unlike)
    whole = numbers(dataset)
    iterator = iter(dataset)
    for _ in range(steps):
        next(iterator)
    later = iter(tf.data.Dataset.range(8).flat_map(unlike))
    later.restore(iterator.save())
    assert numbers(later) == whole[steps:]


def test_the_error_of_a_function_names_its_element():
    def failing(held):
        return lambda x: tf.gather(held, x)

    for _ in range(5):
        with pytest.raises(tf.errors.InvalidArgumentError, match="element 3"):
            numbers(mapped(failing, np.arange(3)))


def filling(held):
    return lambda x: tf.fill([x], held)


def test_functions_that_need_values_are_traced_once_for_all_captured_tensors(monkeypatch):
    mapped(filling, np.array(0))
    traced, trace = [], vectorise.traced
    monkeypatch.setattr(
        compared_traces, "traced", lambda *args: traced.append(args) or trace(*args)
    )
    for held in range(1, 9):
        assert numbers(mapped(filling, np.array(held), 3)) == [[], [held], [held, held]]
    assert not traced


@pytest.mark.parametrize(
    "make",
    [
        lambda held: lambda x: tf.fill([x], held),
        lambda held: lambda x: tf.boolean_mask(held, held > x),
        lambda held: lambda x: tf.zeros(x + held * 2, tf.int64),
    ],
)
def test_functions_of_straight_code_do_the_same_for_all_tensors(make):
    assert key_of_straight_code(make(np.array(1))) == key_of_straight_code(make(np.array(2)))
    assert key_of_straight_code(make(np.array(1))) is not None


@pytest.mark.parametrize(
    "make",
    [
        lambda held: lambda x: tf.fill([x], held) if held > 2 else x[None],
        lambda held: lambda x: tf.zeros([3, x][held]),
        lambda held: lambda x: tf.zeros([x] * held),
        lambda held: lambda x: tf.zeros([3 if each else x for each in held]),
        lambda held: lambda x: (held > 2 and x) * 2,
        lambda held: lambda x: tf.zeros(max(held, x)),
        lambda held: lambda x: [held, x] == [3, 4],
        lambda held: lambda x: held in (3, x),
        lambda held: lambda x: tf.cond(held > 2, lambda: tf.zeros(x), lambda: tf.zeros(3)),
    ],
)
def test_functions_that_choose_by_a_tensor_are_each_traced(make):
    assert key_of_straight_code(make(np.array(1))) is None


def test_functions_that_choose_whether_to_need_a_value_run_in_their_own_way():
    def make(held):
        return lambda x: tf.fill([x], held) if held > 2 else tf.fill([2], held)

    ways = [mapped(make, np.array(held))._plan.function.is_vectorised for held in (5, 1, 6, 2)]
    assert ways == [False, True, False, True]


def test_functions_of_rows_of_all_lengths_and_of_texts_are_traced_once(monkeypatch):
    def dense(data):
        return data.map(lambda rows: tf.reduce_sum(rows.to_tensor(), axis=1))

    def marked(data):
        return data.map(lambda text: tf.strings.join([text, "!"]))

    ragged = tf.data.Dataset.from_tensor_slices(np.arange(4)).map(tf.range)
    ragged, texts = ragged.ragged_batch(2), tf.data.Dataset.from_tensor_slices([b"a", b"b"])
    first = dense(ragged), marked(texts)
    traced, trace = [], vectorise.traced
    monkeypatch.setattr(
        compared_traces, "traced", lambda *args: traced.append(args) or trace(*args)
    )
    again = dense(ragged), marked(texts)
    assert not traced
    assert numbers(again[0]) == numbers(first[0]) == [[0, 0], [1, 3]]
    assert numbers(again[1]) == numbers(first[1]) == [b"a!", b"b!"]
