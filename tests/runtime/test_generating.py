from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import NoneTensorSpec
from evenfeed.plan.sources import FromGenerator, signature_of
from evenfeed.runtime.operators.sources import PullElements

INT = tf.TensorSpec([], tf.int32)
FLOAT = tf.TensorSpec([], tf.float32)
TEXT = tf.TensorSpec([], tf.string)
VECTOR = tf.TensorSpec([None], tf.float32)


def pulled(values, signature, most=4):
    operator = PullElements(FromGenerator(lambda: iter(values), signature))
    found = rows_of(operator, most)
    return [row if isinstance(row, type) else [part and part[2] for part in row] for row in found]


@pytest.mark.parametrize("most", [1, 3, 9])
@pytest.mark.parametrize(
    ("values", "signature", "expected"),
    [
        ([1, 2.7, True], INT, [[1], [2], [1]]),
        ([None, "1.5", 2], FLOAT, [[float("nan")], [1.5], [2.0]]),
        (["a", b"b"], TEXT, [[b"a"], [b"b"]]),
        ([(1, "x"), (2, "y")], (INT, TEXT), [[1, b"x"], [2, b"y"]]),
        ([{"b": 1, "a": 2.0}] * 2, {"a": FLOAT, "b": INT}, [[2.0, 1]] * 2),
        ([({"a": 1}, [2.0])] * 2, ({"a": INT}, VECTOR), [[1, [2.0]]] * 2),
        ([[1], [1, 2], []], VECTOR, [[[1.0]], [[1.0, 2.0]], [[]]]),
        ([np.arange(2), [3.5, 4]], VECTOR, [[[0.0, 1.0]], [[3.5, 4.0]]]),
        ([(1, None)] * 2, (INT, NoneTensorSpec()), [[1, None]] * 2),
        ([["a", "b"]], tf.TensorSpec([2], tf.string), [[[b"a", b"b"]]]),
        ([np.int64(7), np.int64(8)], INT, [[7], [8]]),
        ([True, False], tf.TensorSpec([], tf.bool), [[True], [False]]),
        ([1e300], FLOAT, [[float("inf")]]),
    ],
)
def test_what_is_yielded_is_cast_to_the_signature(values, signature, expected, most):
    found = pulled(values, signature, most)
    assert str(found) == str(expected)


@pytest.mark.parametrize("most", [1, 3, 9])
@pytest.mark.parametrize(
    ("values", "signature"),
    [
        ([1, "x", 3], INT),
        ([1, 2**40, 3], INT),
        ([1, np.int64(2**40), 3], INT),
        ([1, [2], 3], INT),
        ([1, np.array([2]), 3], INT),
        ([1, (2,), 3], INT),
        ([(1, 1), (1, 2, 3), (3, 3)], (INT, INT)),
        ([(1, 1), [1, 2], (3, 3)], (INT, INT)),
        ([(1, 1), (1,), (3, 3)], (INT, INT)),
        ([{"a": 1}, {"b": 1}, {"a": 3}], {"a": INT}),
        ([{"a": 1}, {"a": 1, "b": 2}, {"a": 3}], {"a": INT}),
        ([[1, 2], [1], [3, 3]], tf.TensorSpec([2], tf.int32)),
        (["a", 2, "c"], TEXT),
        ([(1, None), (2, 2), (3, None)], (INT, NoneTensorSpec())),
    ],
)
def test_what_does_not_fit_is_an_error_in_its_place_and_the_rest_follows(values, signature, most):
    first, error, last = pulled(values, signature, most)
    assert error is InvalidArgumentError
    assert [first] == pulled(values[:1], signature)
    assert [last] == pulled(values[2:], signature)


def test_an_error_names_the_element_and_the_line_that_gave_the_generator():
    node = FromGenerator(lambda: [1, "x"], INT)
    operator = PullElements(node)
    operator.read(9)
    with pytest.raises(InvalidArgumentError) as caught:
        operator.read(9)
    assert caught.value.message.startswith("Element 1 of the generator, 'x', does not match")
    assert caught.value.origin == node.origin


def failing():
    yield 1
    yield 2
    raise KeyError("gone")


def test_an_error_of_the_generator_comes_behind_its_elements_with_a_note():
    operator = PullElements(FromGenerator(failing, INT))
    assert operator.read(9).columns[0].tolist() == [1, 2]
    with pytest.raises(KeyError) as caught:
        operator.read(9)
    assert caught.value.__notes__[0].startswith("while pulling element 2 from the generator")
    assert operator.read(9) is None


@pytest.mark.parametrize("most", [1, 2, 7, 300])
def test_no_more_is_pulled_than_was_asked_for(most):
    numbers = iter(range(1000))
    operator = PullElements(FromGenerator(lambda: numbers, INT))
    got = operator.read(most).length
    assert next(numbers) == got <= most


def test_what_cannot_be_iterated_over_is_an_error_and_then_the_end():
    operator = PullElements(FromGenerator(lambda: 3, INT))
    assert rows_of(operator, 1) == [InvalidArgumentError]


def test_arguments_arrive_as_numpy_values():
    given_args = []
    node = FromGenerator(
        lambda *args: given_args.append(args) or [1], INT, (np.array(3), np.array([1.5]))
    )
    PullElements(node).read(1)
    (((number, vector),),) = [given_args]
    assert (type(number), vector.tolist()) == (np.int64, [1.5])


def test_a_namedtuple_is_as_good_as_a_tuple():
    pair = namedtuple("pair", "x y")
    assert pulled([pair(1, 2)], (INT, INT)) == [[1, 2]]
    assert pulled([(1, 2)], pair(INT, INT)) == [InvalidArgumentError]
    assert pulled([pair(1, 2)], pair(INT, INT)) == [[1, 2]]


def test_closing_runs_the_finally_of_a_generator():
    closed = []

    def counting():
        try:
            yield from range(9)
        finally:
            closed.append(True)

    operator = PullElements(FromGenerator(counting, INT))
    operator.read(1)
    operator.close()
    assert closed == [True]


@given(st.lists(st.one_of(st.integers(-9, 9), st.just("x"), st.floats(0, 9)), max_size=9))
def test_a_position_is_found_again_by_replay(values):
    assert_resumes(lambda: PullElements(FromGenerator(lambda: iter(values), INT)), 1, 3)


def test_a_position_behind_an_error_of_the_generator_is_found_again():
    assert_resumes(lambda: PullElements(FromGenerator(failing, INT)))


@given(st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats(width=32), st.text())))
def test_together_they_are_what_they_are_one_by_one(rows):
    signature = (tf.TensorSpec([], tf.int64), FLOAT, TEXT)
    operators = [PullElements(FromGenerator(lambda: iter(rows), signature)) for _ in range(2)]
    assert str(rows_of(operators[0], 1)) == str(rows_of(operators[1], 60))


ROWS = st.one_of(
    st.lists(st.integers(-5, 300), max_size=3),
    st.lists(st.integers(-(2**70), 2**70), max_size=2),
    st.lists(st.floats(), max_size=3),
    st.lists(st.one_of(st.integers(-9, 9), st.booleans(), st.floats(0, 9)), max_size=3),
    st.lists(st.integers(0, 9), max_size=3).map(np.array),
    st.lists(st.floats(width=32), min_size=1, max_size=3).map(np.float32),
    st.integers(0, 9),
)


@given(
    st.lists(ROWS, max_size=6),
    st.sampled_from([tf.uint8, tf.int32, tf.int64, tf.float32, tf.float64, tf.bool, tf.bfloat16]),
    st.sampled_from([[None], [2], [], None]),
)
def test_vectors_together_are_what_they_are_one_by_one(rows, dtype, shape):
    signature = tf.TensorSpec(shape, dtype)
    operators = [PullElements(FromGenerator(lambda: iter(rows), signature)) for _ in range(2)]
    assert str(rows_of(operators[0], 1)) == str(rows_of(operators[1], 60))


@pytest.mark.parametrize(
    ("types", "shapes", "signature", "expected"),
    [
        (None, None, INT, INT),
        ("int32", None, None, tf.TensorSpec(None, tf.int32)),
        ((tf.int32, "float32"), ([], [None]), None, (INT, VECTOR)),
        ({"a": tf.int32}, {"a": ()}, None, {"a": INT}),
    ],
)
def test_both_ways_to_give_a_signature(types, shapes, signature, expected):
    assert signature_of(types, shapes, signature) == expected


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((None, None, None), TypeError),
        ((None, (), None), TypeError),
        (("int32", None, INT), TypeError),
        ((None, (), INT), TypeError),
        ((("int32", "int32"), ((),), None), ValueError),
    ],
)
def test_an_unclear_signature_is_refused(arguments, kind):
    with pytest.raises(kind):
        signature_of(*arguments)


@pytest.mark.parametrize(("generator", "signature"), [([1], INT), (lambda: [1], [INT]), (list, 3)])
def test_what_is_no_generator_or_no_signature_is_refused(generator, signature):
    with pytest.raises(TypeError):
        FromGenerator(generator, signature)
