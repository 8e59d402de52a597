from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.callsite import Origin
from evenfeed.errors import InvalidArgumentError
from evenfeed.runtime.functions.ready_results import ReadyResults
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operator import FailedRow

HERE = Origin("train.py", 12)


class Pair(NamedTuple):
    first: object
    second: object


VALUES = [
    np.int64(5),
    np.int32(5),
    np.float32(0.1),
    np.float64(0.1),
    np.bool_(True),
    np.float16(0.1),
    5,
    2**40,
    True,
    0.1,
    1e300,
    float("nan"),
    np.array(5),
    np.array(0.1, np.float32),
    np.arange(3),
    np.arange(3, dtype=np.float32),
    np.arange(4),
    np.arange(0),
    np.zeros((2, 3), np.float32),
    np.zeros((3, 2), np.float32).T,
    np.zeros((3, 2), np.float32),
    np.array(5, ">i8"),
    [1, 2, 3],
    "text",
    b"text",
    None,
    (np.int64(1), np.int64(2)),
    (np.int64(1),),
    (np.int64(1), np.arange(3)),
    {"a": np.int64(1)},
    "t\u00e9xt",
    "\ud800",
    np.bytes_(b"text"),
    np.array(b"text", object),
    np.array("text", object),
    np.array([b"a", b"b"], object),
    [b"a", "b"],
    [1, 2**40, 3],
    [0.5, 1e300, 2],
    [0.5, float("inf")],
    [0.5, float("nan")],
    [np.float64(0.5), 1.0],
    [True, False],
    [True, 2],
    [],
    [[1, 2], [3, 4]],
    ([1, 2, 3], 4),
    [5, 6],
    (b"text", 5),
    ("text", np.int64(5)),
    {"a": 1, "b": [1, 2, 3]},
    {"b": np.arange(3), "a": np.int64(1)},
    {"b": np.arange(3), "c": np.int64(1)},
    {"b": np.arange(3), "a": (np.int64(1), 2)},
    {"a": np.int64(1), "b": np.arange(3), "c": 5},
    ((1, b"x"), {"a": 2.5}),
    ((1, b"x"), {"a": (2.5,)}),
    ([1, b"x"], {"a": 2.5}),
    Pair(np.int64(1), np.int64(2)),
    OrderedDict(a=np.int64(1)),
    range(2),
]
SPECS = [
    tf.TensorSpec([], tf.int64),
    tf.TensorSpec([], tf.int32),
    tf.TensorSpec([], tf.float32),
    tf.TensorSpec([], tf.float64),
    tf.TensorSpec([], tf.bool),
    tf.TensorSpec([], tf.bfloat16),
    tf.TensorSpec([], tf.string),
    tf.TensorSpec([3], tf.int64),
    tf.TensorSpec([None], tf.float32),
    tf.TensorSpec([None], tf.int64),
    tf.TensorSpec([2, None], tf.float32),
    tf.TensorSpec(None, tf.float32),
    (tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64)),
    (tf.TensorSpec([], tf.int64), tf.TensorSpec([3], tf.int64)),
    {"a": tf.TensorSpec([], tf.int64)},
    tf.TensorSpec(None, tf.int64),
    tf.TensorSpec(None, tf.string),
    tf.TensorSpec([2], tf.string),
    tf.TensorSpec([3], tf.float32),
    tf.TensorSpec([2], tf.bool),
    tf.TensorSpec([2, 2], tf.int32),
    (tf.TensorSpec([3], tf.int32), tf.TensorSpec([], tf.int32)),
    (tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64)),
    {"a": tf.TensorSpec([], tf.int64), "b": tf.TensorSpec([None], tf.int64)},
    (
        (tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.string)),
        {"a": tf.TensorSpec([], tf.float32)},
    ),
    Pair(tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64)),
    OrderedDict(a=tf.TensorSpec([], tf.int64)),
]


def elements_spec():
    return tf.TensorSpec([], tf.int64)


def outcome(call):
    """Return the parts of a result, or what its error says."""
    try:
        return [(np.asarray(part).dtype, np.asarray(part).tolist()) for part in call()]
    except Exception as error:  # noqa: BLE001 - compared
        error = error.error if isinstance(error, FailedRow) else error
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("option", ["output_signature", "returns"])
@pytest.mark.parametrize("spec", SPECS)
def test_results_in_a_block_are_those_of_single_elements(spec, option):
    elements = Block((np.arange(2),), 2)
    for value in VALUES:
        options = {option: spec, "untraced": "it is tested"}
        function = trace(lambda x, value=value: value, elements_spec(), HERE, **options)
        in_block = outcome(lambda one=function: one.rows(elements).row(1))
        alone = outcome(lambda one=function: one.one(elements.row(1), 0))
        function._results.ready = ReadyResults(None, casts=False)
        converted = outcome(lambda one=function: one.one(elements.row(1), 0))
        assert repr(in_block) == repr(alone) == repr(converted), value


def test_numbers_and_arrays_of_the_spec_need_no_conversion():
    number, row = tf.TensorSpec([], tf.int64), tf.TensorSpec([3], tf.float32)
    for value in (np.int64(7), 7, np.array(7)):
        (found,) = ReadyResults(number, casts=True).parts([value])
        assert type(found) is np.int64
        assert found == 7
    made = np.ones(3, np.float32)
    assert ReadyResults(row, casts=True).parts([made])[0].dtype == np.float32
    pair = ReadyResults((number, number), casts=True)
    assert pair.parts([(np.int64(1), np.int64(2))]) == [1, 2]


def test_lengths_that_the_spec_leaves_open_may_differ():
    ready = ReadyResults(tf.TensorSpec([2, None], tf.float32), casts=True)
    for length in (0, 1, 5):
        (found,) = ready.parts([np.zeros((2, length), np.float32)])
        assert (type(found), found.shape) == (np.ndarray, (2, length))
    others = [
        ((3, 5), np.float32),
        ((2,), np.float32),
        ((2, 1, 1), np.float32),
        ((2, 5), np.float64),
    ]
    assert [ready.parts([np.zeros(*other)]) for other in others] == [None] * 4


def test_what_others_can_write_to_is_copied():
    buffer = np.zeros(3, np.float32)
    (found,) = ReadyResults(tf.TensorSpec([3], tf.float32), casts=True).parts([buffer])
    buffer[:] = 7
    assert found.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        ((tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32)), lambda: (1, 0.5)),
        ({"a": tf.TensorSpec([], tf.string)}, lambda: {"a": "text"}),
        (({"a": tf.TensorSpec([3], tf.int32)},), lambda: [{"a": [1, 2, 3]}]),
        (
            Pair(tf.TensorSpec([], tf.bool), tf.TensorSpec(None, tf.int64)),
            lambda: Pair(True, np.arange(2)),
        ),
    ],
)
def test_structures_of_such_parts_need_no_conversion(spec, value):
    assert ReadyResults(spec, casts=False).parts([value()]) is not None


@pytest.mark.parametrize(
    "wrapped", [lambda x: (x, 1), lambda x: {"a": x}, lambda x: ({"a": (x,)},)]
)
def test_arrays_in_structures_are_copied_only_if_others_can_write_to_them(wrapped):
    buffer = np.zeros(3, np.float32)
    spec = tf.nest.map_structure(tf.type_spec_from_value, wrapped(buffer))
    ready, held = ReadyResults(spec, casts=True), wrapped(buffer)
    found = ready.parts([held])[0]
    buffer[:] = 7
    assert found.tolist() == [0, 0, 0]
    made = [wrapped(np.ones(3, np.float32))]
    address = tf.nest.flatten(made)[0].ctypes.data
    assert ready.parts(made)[0].ctypes.data == address
    shared = wrapped(np.ones(3, np.float32))
    assert ready.parts([shared])[0].ctypes.data != tf.nest.flatten(shared)[0].ctypes.data


def test_a_result_that_needs_a_conversion_is_kept():
    spec = {"a": tf.TensorSpec([3], tf.float32), "b": tf.TensorSpec([], tf.int32)}
    held = [{"b": "text", "a": np.zeros(3, np.float32)}]
    assert ReadyResults(spec, casts=True).parts(held) is None
    (kept,) = held
    assert kept["b"] == "text"
    assert kept["a"].tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        (tf.int64, [1, np.int64(2), np.array(3), 2**40, np.int32(-5), True]),
        (tf.float32, [0.1, np.float32(0.1), np.array(0.1, np.float32), float("nan"), 2]),
        (tf.bool, [True, np.bool_(False), np.array(True)]),
        (tf.string, ["t\u00e9xt", b"text", np.bytes_(b"text"), np.array(b"text", object)]),
    ],
)
def test_numbers_and_text_of_python_and_numpy_may_be_mixed(dtype, values):
    spec = tf.TensorSpec([], dtype)
    function = trace(
        lambda x: values[int(x)],
        elements_spec(),
        HERE,
        output_signature=spec,
        untraced="it is tested",
    )
    count = len(values)
    in_block = function.rows(Block((np.arange(count),), count))
    alone = [function.one([np.array(index)], index)[0] for index in range(count)]
    assert in_block.columns[0].dtype == spec.dtype
    assert repr([in_block.row(index)[0] for index in range(count)]) == repr(alone)


def test_numbers_and_text_in_structures_may_be_of_python_and_numpy():
    spec = {
        "n": (tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32)),
        "t": tf.TensorSpec([], tf.string),
        "b": tf.TensorSpec([], tf.bool),
    }
    numbers = [1, np.int64(2), np.array(3), 2**40, -(2**31) - 1]
    fractions = [0.1, np.float32(0.1), float("nan"), 2, -0.0]
    texts = ["text", b"text", "t\u00e9xt", np.array(b"text", object), "\x00"]
    values = [
        {"n": (number, fraction), "t": text, "b": number == 1}
        for number in numbers
        for fraction in fractions
        for text in texts
    ]
    options = {"output_signature": spec, "untraced": "it is tested"}
    function = trace(lambda x: values[int(x)], elements_spec(), HERE, **options)
    elements = Block((np.arange(len(values)),), len(values))
    found = function.rows(elements)
    assert [column.dtype for column in found.columns] == [bool, np.int64, np.float32, object]
    for index in range(len(values)):
        alone = function.one(elements.row(index), index)
        assert repr(found.row(index)) == repr(alone), values[index]


def test_a_text_in_a_structure_that_is_no_unicode_fails_at_its_place():
    spec = (tf.TensorSpec([], tf.string), tf.TensorSpec([], tf.int64))
    texts = ["a", "b", "\ud800", "c"]
    options = {"output_signature": spec, "untraced": "it is tested"}
    function = trace(lambda x: (texts[int(x)], 5), elements_spec(), HERE, **options)
    with pytest.raises(FailedRow) as failed:
        function.rows(Block((np.arange(4),), 4))
    assert failed.value.index == 2
    assert failed.value.before.columns[0].tolist() == [b"a", b"b"]


def test_an_element_that_does_not_fit_fails_at_its_place():
    function = trace(
        lambda x: np.int64(1) if x < 2 else np.float32(1),
        tf.TensorSpec([], tf.int64),
        HERE,
        returns=tf.TensorSpec([], tf.int64),
        untraced="it is tested",
    )
    with pytest.raises(FailedRow) as failed:
        function.rows(Block((np.arange(4),), 4))
    assert failed.value.index == 2
    assert failed.value.before.columns[0].tolist() == [1, 1]
    assert isinstance(failed.value.error, InvalidArgumentError)
