import pickle
import re
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.callsite import Origin
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.structure import DATA, flatten
from evenfeed.dataset import plan_of
from evenfeed.errors import InvalidArgumentError
from evenfeed.runtime.functions import tracing
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operator import FailedRow

HERE = Origin("train.py", 12)
Point = namedtuple("Point", "x y")


def spec(shape, dtype):
    return tf.TensorSpec(shape, dtype)


def block(*columns):
    return Block(tuple(columns), len(columns[0]))


def test_a_tuple_is_spread_and_a_dict_or_namedtuple_is_one_argument():
    number = spec([], tf.int64)
    column = np.arange(3)
    assert trace(lambda a, b: a + b, (number, number), HERE).rows(block(column, column)).columns[
        0
    ].tolist() == [0, 2, 4]
    for one in ({"x": number, "y": number}, Point(number, number)):
        found = trace(lambda e: e["x"] if isinstance(e, dict) else e.x, one, HERE)
        assert found.rows(block(column, column)).columns[0].tolist() == [0, 1, 2]
    together = trace(lambda pair: pair[1], (number, number), HERE, spread=False)
    assert together.output_spec == number


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: [x, x], (spec([], "int64"), spec([], "int64"))),
        (lambda x: (x, [x, x]), (spec([], "int64"), spec([2], "int64"))),
        (lambda x: 7, spec([], "int32")),
        (lambda x: 1.5, spec([], "float32")),
        (lambda x: np.float64(1), spec([], "float64")),
        (lambda x: {"a": x, "b": None}, {"a": spec([], "int64"), "b": tf.NoneTensorSpec()}),
        (lambda x: "text", spec([], "string")),
        (lambda x: Point(x, 1), Point(spec([], "int64"), spec([], "int32"))),
    ],
)
@pytest.mark.parametrize("vectorize", [None, False])
def test_what_the_function_returns_is_the_new_structure(function, expected, vectorize):
    found = trace(function, spec([], "int64"), HERE, vectorize=vectorize)
    assert found.output_spec == expected
    assert type(found.output_spec) is type(expected)
    done = found.rows(block(np.arange(3)))
    for column, one in zip(done.columns, flatten(expected, DATA), strict=True):
        assert column is None or (column.shape, column.dtype) == ((3, *one.shape), one.dtype)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x * 2.0, [None, 3]),
        (lambda x: x[0], [3]),
        (lambda x: x[:2], [None, 3]),
        (lambda x: tf.reduce_sum(x, axis=1), [None]),
        (tf.reduce_sum, []),
        (lambda x: tf.reshape(x, [-1]), [None]),
        (lambda x: tf.reshape(x, [-1, 4]), [None, 4]),
        (lambda x: tf.concat([x, x], axis=1), [None, 6]),
    ],
)
def test_what_follows_an_unknown_length_is_unknown(function, shape):
    assert trace(function, spec([None, 3], "float32"), HERE).output_spec == spec(shape, "float32")


def test_what_is_only_handed_on_is_neither_computed_nor_copied():
    pair = spec([None], "float32"), spec([], "int64")
    found = trace(lambda x, y: (y, x), pair, HERE)
    assert found.output_spec == pair[::-1]
    columns = np.ones((3, 2), np.float32), np.arange(3)
    assert found.rows(block(*columns)).columns == columns[::-1]
    assert found.compilations == 0


def test_text_that_is_only_handed_on_does_not_slow_numbers_down():
    given_spec = {"id": spec([], "int64"), "text": spec([], "string")}
    found = trace(lambda e: {"id": e["id"] + 1, "text": e["text"]}, given_spec, HERE)
    assert found.way == "vectorised"
    texts = np.array([b"a", b"b"], object)
    assert found.rows(block(np.arange(2), texts)).columns[1] is texts


@pytest.mark.parametrize(
    "function",
    [
        lambda e: e["text"].decode() == "b",
        lambda e: e["text"] in (b"b", b"c"),
    ],
)
def test_text_arrives_as_bytes(function):
    found = trace(function, {"id": spec([], "int64"), "text": spec([], "string")}, HERE)
    assert (found.way, found.why) == ("per element", "it works on text")
    done = found.rows(block(np.arange(2), np.array([b"a", b"b"], object)))
    assert done.columns[0].tolist() == [False, True]


def test_what_does_not_trace_runs_on_numpy_and_learns_its_spec():
    found = trace(lambda x: np.arange(x) if x > 1 else np.arange(1), spec([], "int64"), HERE)
    assert (found.way, found.why) == (
        "per element",
        "it needs the values of its arguments while it runs",
    )
    done = found.rows(block(np.arange(1, 4)))
    assert [part.tolist() for part in done.columns[0]] == [[0], [0, 1], [0, 1, 2]]
    assert found.output_spec == spec([None], "int64")


def test_the_spec_of_what_does_not_trace_comes_from_the_first_element():
    asked = []

    def first():
        asked.append(1)
        yield 0, [np.array(5)]

    found = trace(lambda x: np.arange(int(x)), spec([], "int64"), HERE, first_elements=first)
    assert asked == []
    assert found.output_spec == found.output_spec == spec([None], "int64")
    assert asked == [1]


def test_without_an_element_a_function_is_called_with_zeros():
    assert trace(int, spec([], "int64"), HERE, first_elements=list).output_spec == spec([], "int32")
    untraced = trace(lambda x: x[: int(x[0])], spec([None], "int8"), HERE, first_elements=list)
    assert untraced.output_spec == spec([None], "int8")


def test_a_function_that_zeros_do_not_suit_needs_a_signature_without_elements():
    def picky(x):
        return 1 // int(x)

    found = trace(picky, spec([], "int64"), HERE, first_elements=list)
    with pytest.raises(ValueError, match="output_signature="):
        _ = found.output_spec
    signed = trace(int, spec([], "int64"), HERE, output_signature=spec([], tf.float32))
    assert signed.rows(block(np.arange(2))).columns[0].dtype == np.float32


def test_results_that_change_their_dtype_are_refused():
    found = trace(lambda x: 1 if int(x) else 1.5, spec([], "int64"), HERE)
    with pytest.raises(FailedRow) as caught:
        found.rows(block(np.arange(2)))
    assert isinstance(caught.value.error, InvalidArgumentError)
    assert "returned int32 of shape () where TensorSpec" in str(caught.value.error)


def test_a_function_for_datasets_is_never_traced():
    found = trace(tf.data.Dataset.range, spec([], "int64"), HERE, returns_values=True)
    (dataset,) = found.one([np.array(3)])
    assert len(dataset) == 3


def test_an_error_keeps_its_type_and_names_the_element_and_the_line():
    def picky(x):
        if x == 2:
            raise KeyError("two")
        return x

    with pytest.raises(FailedRow) as caught:
        trace(picky, spec([], "int64"), HERE).rows(block(np.arange(4)), 10)
    failed = caught.value
    assert (failed.index, failed.before.columns[0].tolist()) == (2, [0, 1])
    assert isinstance(failed.error, KeyError)
    assert failed.error.__notes__[-1] == (
        "while mapping element 12 with picky, asked for at train.py:12"
    )


@pytest.mark.parametrize("vectorize", [None, False])
def test_an_index_out_of_range_is_an_error_either_way(vectorize):
    inputs = spec([4], "float32"), spec([], "int64")
    found = trace(lambda x, i: x[i], inputs, HERE, vectorize=vectorize)
    with pytest.raises(FailedRow) as caught:
        found.rows(block(np.ones((3, 4), np.float32), np.array([0, 4, 1])))
    assert caught.value.index == 1
    assert type(caught.value.error) is InvalidArgumentError
    assert "while mapping element 1 with" in caught.value.error.__notes__[-1]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda x: x[5], InvalidArgumentError),
        (lambda x: x + np.ones(3), TypeError),
        (lambda x: tf.reshape(x, [3]), InvalidArgumentError),
        (lambda x, y: x, TypeError),
        (lambda x: {}["a"], KeyError),
        (lambda x: 1 / 0, ZeroDivisionError),
    ],
)
def test_what_fails_for_every_element_fails_at_once(function, kind):
    with pytest.raises(kind):
        trace(function, spec([4], "float32"), HERE)


def test_a_missing_file_is_no_error_before_it_is_needed():
    found = trace(lambda x: open(f"/nowhere/{x}").read(), spec([], "int64"), HERE)  # noqa: SIM115
    assert found.way == "per element"


def lengths_of_a_growing_read():
    return [1, 2, 4, 8, 16, 32, 64, 100, 128, 256, 512, 777, 1024, 2048, 4096, 4096, 4096, 999, 7]


@pytest.mark.parametrize("shape", [[], [32], [100, 100]])
def test_a_function_is_compiled_once_for_one_shape(shape):
    found = trace(lambda x: jnp.maximum(x * 2, 0), spec(shape, "float32"), HERE)
    for _ in range(3):
        for length in lengths_of_a_growing_read()[: 10 if shape == [100, 100] else None]:
            column = np.arange(length, dtype=np.float32).reshape(-1, *[1] * len(shape))
            column = np.broadcast_to(column, (length, *shape))
            np.testing.assert_array_equal(found.rows(block(column)).columns[0], column * 2)
    assert found.compilations == 1


def test_elements_of_many_shapes_are_not_compiled_each():
    found = trace(jnp.cumprod, spec([None], "int32"), HERE)
    for length in [*range(1, 40), *range(1, 40), *range(1, 40)]:
        rows = np.full((1, length), 2, np.int32)
        expected = np.cumprod(rows, 1, dtype=np.int32)
        np.testing.assert_array_equal(found.rows(block(rows)).columns[0], expected)
    assert found.compilations == 3


def test_a_column_of_many_shapes_runs_one_by_one():
    found = trace(lambda x: x[0], spec([None], "int32"), HERE)
    rows = [np.array([1, 2], np.int32), np.array([], np.int32)]
    with pytest.raises(FailedRow) as caught:
        found.rows(Block((rows,), 2))
    assert caught.value.before.columns[0].tolist() == [1]
    assert type(caught.value.error) is InvalidArgumentError


FUNCTIONS = [
    lambda x: x,
    lambda x: x + 1,
    lambda x: x * 2 - 1,
    lambda x: x / 2,
    lambda x: x / 255.0,
    lambda x: x * 2.0,
    lambda x: x > 3,
    lambda x: x // 2,
    lambda x: x % 3,
    lambda x: -x,
    lambda x: x + np.float64(1),
    lambda x: x + np.arange(4),
    lambda x: tf.cast(x, tf.float32) / 255.0,
    lambda x: tf.cast(x, tf.float64) / 3,
    tf.reduce_sum,
    tf.reduce_max,
    lambda x: tf.stack([x, x]),
    lambda x: jnp.zeros(3),
    lambda x: x + jnp.ones(4),
    jnp.sum,
    lambda x: (x[0], x[1:3], 7, 1.5, np.float64(2)),
]


@given(
    st.sampled_from(FUNCTIONS),
    st.sampled_from(
        ["uint8", "int8", "int16", "int32", "uint32", "int64", "float16", "float32", "float64"]
    ),
    st.integers(0, 2**16),
)
def test_dtype_and_value_do_not_depend_on_the_way(function, dtype, seed):
    column = np.random.default_rng(seed).integers(0, 100, (3, 4)).astype(dtype)
    ways = [trace(function, spec([4], dtype), HERE, vectorize=v) for v in (None, False)]
    assert [found.way for found in ways] == ["vectorised", "per element"]
    one, two = (found.rows(block(column)) for found in ways)
    for mine, theirs in zip(one.columns, two.columns, strict=True):
        assert mine.dtype == theirs.dtype
        close = {"rtol": 2e-3 if dtype == "float16" else 1e-6}
        np.testing.assert_allclose(np.float64(mine), np.float64(theirs), **close)


def double(x):
    return x * 2


def test_a_function_is_pickled_where_the_users_is():
    found = pickle.loads(pickle.dumps(trace(double, spec([], "int64"), HERE)))
    assert found.rows(block(np.arange(3))).columns[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize("vectorize", [None, False])
def test_a_signature_is_kept_whatever_the_function_gives(vectorize):
    signed = trace(
        lambda x: x * 2,
        spec([], "int64"),
        HERE,
        vectorize=vectorize,
        output_signature=spec([], "float32"),
    )
    assert signed.rows(block(np.arange(2))).columns[0].dtype == signed.output_spec.dtype


def test_a_signature_of_another_structure_is_refused_at_once():
    with pytest.raises(ValueError, match="output_signature and the result differ"):
        trace(lambda x: x, spec([], "int64"), HERE, output_signature=(spec([], "int64"),))


def test_a_function_is_shown_by_its_name_and_the_line_that_asked_for_it():
    def double(x):
        return x * 2

    plan = plan_of(tf.data.Dataset.range(3).map(double))
    assert re.fullmatch(
        r"<function double, asked for at .*test_row_function\.py:\d+>", repr(plan.function)
    )


def test_a_function_that_always_does_the_same_is_traced_once():
    def traced(number, shape=()):
        return trace(lambda x: x * number, spec(shape, "int64"), HERE)

    one, same = traced(3), traced(3)
    others = [traced(4), traced(3.0), traced(3, (2,))]
    assert one._compiled is same._compiled
    assert one.record is not same.record
    assert all(other._compiled is not one._compiled for other in others)
    column = np.arange(3)
    assert same.rows(block(column)).columns[0].tolist() == [0, 3, 6]
    assert others[0].rows(block(column)).columns[0].tolist() == [0, 4, 8]


def test_a_function_that_does_not_trace_is_tried_once(monkeypatch):
    tried = []
    attempt = tracing._traced
    monkeypatch.setattr(tracing, "_traced", lambda asked: tried.append(1) or attempt(asked))

    def traced(number):
        return trace(lambda x: tf.fill([x % 4], number), spec([], "int64"), HERE)

    traced(7002)
    found = traced(7002).rows(block(np.arange(3)))
    assert [part.tolist() for part in found.columns[0]] == [[], [7002], [7002, 7002]]
    assert len(tried) == 1
    traced(7003)
    assert len(tried) == 2


def test_a_function_that_changes_something_is_traced_each_time():
    calls = []

    def noting(x):
        calls.append(1)
        return x + 1

    before = len(calls)
    trace(noting, spec([], "int64"), HERE)
    between = len(calls)
    trace(noting, spec([], "int64"), HERE)
    assert len(calls) - between == between - before > 0
